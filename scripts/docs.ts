import { copyFile, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { commandLinePages } from '../cli/reference.ts';
import { chartCopies, chartReadme, renderChartReadme } from './chart-values.ts';
import { references } from './references.ts';

// Writes the generated pages of docs/reference and the chart's table of values. scripts/run.mjs has built the verbs that it reads.
// test/docs.test.ts fails while one of them is out of date.
const root = join(import.meta.dirname, '..');
const folder = join(root, 'docs/reference');
await mkdir(folder, { recursive: true });
for (const [name, text] of [...(await references()), ...commandLinePages()]) {
  await writeFile(join(folder, name), text);
  console.log(`docs/reference/${name}`);
}
await writeFile(join(root, chartReadme), renderChartReadme());
console.log(chartReadme);
for (const [from, to] of chartCopies) await copyFile(join(root, from), join(root, to));
