import { readFile, readdir } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { existsSync } from 'node:fs';
import { expect, test } from 'vitest';
import { chartCopies, chartReadme, renderChartReadme } from '../scripts/chart-values.ts';
import { references } from '../scripts/references.ts';
import { commandLinePages } from '../cli/reference.ts';
import { allRoutes } from '../src/composition/all-routes.ts';
import { version } from '../src/platform/version.ts';
import { buildOpenApi } from '../src/surfaces/web/openapi/openapi.ts';
import { renderReference } from '../src/surfaces/web/reference/reference.ts';
import { problemsOf } from './openapi-problems.ts';

const root = resolve(import.meta.dirname, '..');

test('the generated references match the program (otherwise: npm run docs)', async () => {
  for (const [name, text] of [...(await references()), ...commandLinePages()]) {
    expect({ name, text: await readFile(join(root, 'docs/reference', name), 'utf8') }).toEqual({
      name,
      text,
    });
  }
});

test('the chart’s page has every value with its meaning (otherwise: npm run docs)', async () => {
  expect(await readFile(join(root, chartReadme), 'utf8')).toBe(renderChartReadme());
});

test('alerts and dashboard of the chart are those of deploy/ (otherwise: npm run docs)', async () => {
  for (const [from, to] of chartCopies)
    expect(await readFile(join(root, to), 'utf8')).toBe(await readFile(join(root, from), 'utf8'));
});

test('the OpenAPI document of the whole program is complete, and the reference page can show it', async () => {
  const routes = await allRoutes();
  const document = buildOpenApi({ routes, version, serverUrl: 'https://postern.example' });
  expect(problemsOf(document)).toEqual([]);
  const page = renderReference(document);
  expect(routes.filter(({ operationId }) => !page.includes(`id="${operationId}"`))).toEqual([]);
});

test('no link in the documents leads to a missing file', async () => {
  const missing: string[] = [];
  for (const file of await documents()) {
    const text = await readFile(file, 'utf8');
    for (const [, target = ''] of text.matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)) {
      if (/^[a-z]+:/.test(target)) continue;
      if (!existsSync(join(dirname(file), target)))
        missing.push(`${file.slice(root.length + 1)} → ${target}`);
    }
  }
  expect(missing).toEqual([]);
});

test('no document shows a value that could be a live key', async () => {
  const found: string[] = [];
  for (const file of await documents()) {
    const text = await readFile(file, 'utf8');
    if (/[a-z]+_(?:pat|svc|fed)_[0-9A-Za-z]{20,}/.test(text)) found.push(file);
  }
  expect(found).toEqual([]);
});

async function documents(): Promise<string[]> {
  const inside = await readdir(join(root, 'docs'), { recursive: true });
  const top = await readdir(root);
  return [...top, chartReadme, ...inside.map((name) => join('docs', name))]
    .filter((name) => name.endsWith('.md'))
    .map((name) => join(root, name));
}
