import { copyFile, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { allRoutes } from '../src/composition/app.ts';
import { version } from '../src/platform/version.ts';
import { buildOpenApi } from '../src/surfaces/web/openapi/openapi.ts';
import { verbsFile, verbsText } from '../cli/generate.ts';
import { apiTypes, apiTypesFile } from '../ui/api-types.ts';
import { chartCopies, chartReadme, renderChartReadme } from './chart-values.ts';
import { references } from './references.ts';

// Writes the generated pages of docs/reference, the web app's API types, the verbs of the command line and the chart's table of values.
// test/docs.test.ts fails while one of them is out of date.
const root = join(import.meta.dirname, '..');
const folder = join(root, 'docs/reference');
await mkdir(folder, { recursive: true });
for (const [name, text] of await references()) {
  await writeFile(join(folder, name), text);
  console.log(`docs/reference/${name}`);
}
const document = buildOpenApi({ routes: await allRoutes(), version, serverUrl: 'https://postern.example' });
await writeFile(join(root, apiTypesFile), await apiTypes(document));
console.log(apiTypesFile);
await writeFile(join(root, verbsFile), verbsText(document));
console.log(verbsFile);
// It reads the verbs that were just written.
const { commandLinePages } = await import('../cli/reference.ts');
for (const [name, text] of commandLinePages()) {
  await writeFile(join(folder, name), text);
  console.log(`docs/reference/${name}`);
}
await writeFile(join(root, chartReadme), renderChartReadme());
console.log(chartReadme);
for (const [from, to] of chartCopies) await copyFile(join(root, from), join(root, to));
