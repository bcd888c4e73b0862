import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { references } from './references.ts';

// Writes the generated pages of docs/reference. test/docs.test.ts fails while one of them is out of date.
const folder = join(import.meta.dirname, '../docs/reference');
await mkdir(folder, { recursive: true });
for (const [name, text] of await references()) {
  await writeFile(join(folder, name), text);
  console.log(`docs/reference/${name}`);
}
