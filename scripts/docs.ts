import { copyFile, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { chartCopies, chartReadme, renderChartReadme } from './chart-values.ts';
import { references } from './references.ts';
import { contract, contractFile } from './ui-contract.ts';

// Writes the generated pages of docs/reference, the web app's API types and the chart's table of values.
// test/docs.test.ts fails while one of them is out of date.
const root = join(import.meta.dirname, '..');
const folder = join(root, 'docs/reference');
await mkdir(folder, { recursive: true });
for (const [name, text] of await references()) {
  await writeFile(join(folder, name), text);
  console.log(`docs/reference/${name}`);
}
await writeFile(join(root, contractFile), await contract());
console.log(contractFile);
await writeFile(join(root, chartReadme), renderChartReadme());
console.log(chartReadme);
for (const [from, to] of chartCopies) await copyFile(join(root, from), join(root, to));
