import { expect, test } from 'vitest';
import { keyFormat } from '../../../src/features/keys/key-value.ts';
import { keySamples } from '../../../test/key-samples.ts';
import { findKeys } from './find-keys.ts';

const shown = (value: string) => value.slice(0, value.lastIndexOf('_') + (value.length > 50 ? 13 : 1));

test.each(keySamples())('$title: it finds what the server takes for a key', ({ text, keys }) => {
  expect(findKeys(text, 'app').map(({ key }) => key)).toEqual(keys.map(shown));
  // The sample says what the server says, which knows one product word.
  const known = keys.filter((key) => key.startsWith('app_'));
  expect(keyFormat('app').valuesIn(text)).toEqual(known);
});

test('the position, the type and the form are said, and never the secret', () => {
  const [, service, , upload, exchanged, older] = keySamples();
  const text = `é\r\n  ${service?.text}\n\n${older?.text}\n${upload?.keys[0]}\n${exchanged?.keys[0]}`;
  expect(findKeys(text, 'app')).toEqual([
    { line: 2, column: 9, key: shown(service?.keys[0] ?? ''), type: 'service', form: 'current' },
    { line: 4, column: 1, key: 'app_pat_', type: 'personal', form: 'older' },
    { line: 5, column: 1, key: shown(upload?.keys[0] ?? ''), type: 'upload', form: 'current' },
    { line: 6, column: 1, key: shown(exchanged?.keys[0] ?? ''), type: 'exchanged', form: 'current' },
  ]);
});

test('older keys have the product word that is given', () => {
  const text = `web_svc_${'0af3'.repeat(10)}`;
  expect(findKeys(text, 'web')).toMatchObject([{ key: 'web_svc_', form: 'older' }]);
});

test('a thousand keys are found on the right lines', () => {
  const [{ text } = { text: '' }] = keySamples();
  const found = findKeys(`\n${text}\n`.repeat(1_000), 'app');
  expect(found.map(({ line }) => line)).toEqual(Array.from({ length: 1_000 }, (_, at) => 2 * at + 2));
});
