import { expect, test } from 'vitest';
import { systemRandom } from '../../../core/ids.ts';
import { visibilityOfLabel } from '../../sites/site/labels.ts';
import { generateEnvironmentLabel, readServiceLabel, serviceLabel } from './labels.ts';

test('a host name of a service is one DNS label, and no site has such a name', () => {
  const label = generateEnvironmentLabel(systemRandom);
  const service = 'a'.repeat(40);
  const text = serviceLabel(service, label);
  expect(text.length).toBeLessThanOrEqual(63);
  expect(readServiceLabel(text)).toEqual({ service, label });
  expect(visibilityOfLabel(text)).toBeUndefined();
  // The shortest label, which is closest to that of a private site.
  expect(visibilityOfLabel(serviceLabel('p', label))).toBeUndefined();
});

test.each([
  ['a label alone', 'eabcdefghijklmnopq'],
  ['no service', '-eabcdefghijklmnopq'],
  ['a service that ends with a hyphen', 'web--eabcdefghijklmnopq'],
  ['too few characters', 'web-eabcdefghijklmnop'],
  ['another first letter', 'web-fabcdefghijklmnopq'],
  ['a digit that no label has', 'web-eabcdefghijklmnop1'],
  ['a capital', 'web-eabcdefghijklmnopQ'],
  ['too long a service', `${'a'.repeat(41)}-eabcdefghijklmnopq`],
  ['more after it', 'web-eabcdefghijklmnopq-x'],
])('%s is no host name of a service', (_, text) => {
  expect(readServiceLabel(text)).toBeUndefined();
});

test('the last hyphen separates', () => {
  expect(readServiceLabel('web-eabcdefghijklmnopq-eabcdefghijklmnopq')).toEqual({
    service: 'web-eabcdefghijklmnopq',
    label: 'eabcdefghijklmnopq',
  });
});
