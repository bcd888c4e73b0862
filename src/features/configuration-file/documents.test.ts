import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readConfigurationFile } from './read.ts';
import { unsupportedIn } from './unsupported.ts';

const page = readFileSync(join(import.meta.dirname, '../../../docs/how-to/write-a-postern-yaml.md'), 'utf8');
const examples = [...page.matchAll(/```yaml\n(.*?)```/gs)].map(([, text = '']) => text);

test('every example of the guide is valid, and uses nothing that comes later', () => {
  expect(examples.length).toBeGreaterThan(2);
  for (const example of examples) {
    const read = readConfigurationFile(example);
    expect(read).toMatchObject({ kind: 'valid' });
    expect(read.kind === 'valid' && unsupportedIn(read.file)).toEqual([]);
  }
});
