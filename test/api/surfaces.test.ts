import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { appPaths } from '../../src/surfaces/web/pages/web-app.ts';
import { type Harness, openHarness } from '../harness.ts';

let h: Harness;
type Surface = {
  owner: string;
  isHere: boolean;
  isOutside: boolean;
  places: { kind: string; title: string; address: string; href: string | null }[];
};
let found: Surface[];
beforeAll(async () => {
  h = await openHarness();
  found = (await h.call('GET', '/config/surfaces', { as: await h.person('Ada') })).data;
});
afterAll(() => h.close());

const addresses = (kind: string) =>
  found.flatMap(({ places }) => places.filter((one) => one.kind === kind).map(({ address }) => address));

test('every page, route and document of the map exists', () => {
  const routes = h.app.routes.map(({ method, path }) => `${method} ${path}`);
  const root = join(import.meta.dirname, '../..');
  expect(addresses('page').filter((path) => !appPaths.includes(path))).toEqual([]);
  expect(addresses('route').filter((route) => !routes.includes(route))).toEqual([]);
  expect(addresses('document').filter((path) => !existsSync(join(root, path)))).toEqual([]);
  for (const kind of ['page', 'route', 'document']) expect(addresses(kind).length).toBeGreaterThan(0);
});

test('every configuration document that can be changed is on the map', () => {
  const changes = h.app.routes
    .filter(({ method, path }) => method === 'PUT' && path.startsWith('/config/'))
    .map(({ method, path }) => `${method} ${path}`);
  expect(changes.filter((route) => !addresses('route').includes(route))).toEqual([]);
});

test('every feature of this installation is on the map, and no missing one', () => {
  const missing = found.filter(({ isHere }) => !isHere);
  expect(missing.every(({ places }) => places.length === 0)).toBe(true);
  expect(found.filter(({ isHere }) => isHere).every(({ places }) => places.length > 0)).toBe(true);
});

test('settings outside Postern are not shown as missing', () => {
  const outside = found.filter(({ isOutside }) => isOutside);
  expect(outside.map(({ owner }) => owner)).toEqual([
    'The selected installation and infrastructure workflow',
  ]);
  expect(outside.every(({ isHere }) => !isHere)).toBe(true);
});

test('settings of this installation come first', () => {
  const isHere = found.map((one) => one.isHere);
  expect(isHere).toEqual(isHere.toSorted((a, b) => Number(b) - Number(a)));
});

test('pages and routes have a working link, and a document, which is not served, has none', async () => {
  const { body: reference } = await h.app.web.inject('/api/v2/docs');
  const places = found.flatMap((one) => one.places);
  const hrefs = (kind: string) => places.filter((one) => one.kind === kind).map(({ href }) => href);
  expect(hrefs('page')).toEqual(addresses('page'));
  expect(new Set(hrefs('document'))).toEqual(new Set([null]));
  const operationOf = (address: string) =>
    h.app.routes.find(({ method, path }) => `${method} ${path}` === address)?.operationId ?? 'missing';
  const operations = addresses('route').map(operationOf);
  expect(hrefs('route')).toEqual(operations.map((id) => `/api/v2/docs#${id}`));
  expect(operations.filter((id) => !reference.includes(`id="${id}"`))).toEqual([]);
});
