// @module-tag sql
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PGlite, type PGliteOptions } from '@electric-sql/pglite';
import { pg_trgm } from '@electric-sql/pglite/contrib/pg_trgm';
import { dataDir } from '@electric-sql/pglite-prepopulatedfs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sql } from '../../src/platform/database/sql.ts';
import { type Harness, openHarness, type Person } from '../harness.ts';
import { page, upload } from './sites/uploads.ts';

/** Keys, sites and repositories are found by a part of their names. */
let h: Harness;
let ada: Person;
const names = ['Website-Deploy', 'deploy_100%', 'de', 'nightly'];
const namesOf = {
  '/me/tokens': names,
  '/sites': names,
  '/repositories': names.map((name) => `acme/${name.replaceAll('%', '')}`),
};

beforeAll(async () => {
  h = await openHarness();
  ada = await h.person('Ada', { admin: true });
  for (const name of names) {
    await h.key(ada, { name });
    await upload(h, ada, { 'index.html': page('here') }, { name });
  }
  for (const name of namesOf['/repositories']) await h.repository(name);
});
afterAll(() => h.close());

async function found(path: keyof typeof namesOf, search: string): Promise<string[]> {
  const { data } = await h.call('GET', path, { as: ada, query: { search } });
  return data.map(({ name, fullName }: { name?: string; fullName?: string }) => name ?? fullName).sort();
}

describe.each(['/me/tokens', '/sites'] as const)('a search in %s', (path) => {
  test.each([
    ['deploy', ['Website-Deploy', 'deploy_100%']],
    ['EPLO', ['Website-Deploy', 'deploy_100%']],
    ['e-deploy', ['Website-Deploy']],
    ['100%', ['deploy_100%']],
    ['y_100', ['deploy_100%']],
    ['yx100', []],
    ['%', []],
    ['___', []],
    // Shorter than a trigram: what begins with it.
    ['de', ['de', 'deploy_100%']],
    ['ly', []],
    ['n', ['nightly']],
  ])('for %s finds exactly those names', async (search, expected) => {
    expect(await found(path, search)).toEqual(expected);
  });
});

test.each([
  ['deploy', ['acme/Website-Deploy', 'acme/deploy_100']],
  ['me/nigh', ['acme/nightly']],
  ['ac', ['acme/Website-Deploy', 'acme/de', 'acme/deploy_100', 'acme/nightly']],
  ['ly', []],
])('a search in /repositories for %s finds exactly those names', async (search, expected) => {
  expect(await found('/repositories', search)).toEqual(expected);
});

describe('the trigrams', () => {
  const folder = join(import.meta.dirname, '../../migrations');
  const indexes = async (query: (text: string) => Promise<{ name: string }[]>) =>
    (
      await query(
        `select indexname as name from pg_indexes where indexname like '%\\_name\\_parts' order by 1`,
      )
    ).map(({ name }) => name);
  const all = ['api_keys_name_parts', 'repositories_name_parts', 'sites_name_parts'];

  test('have an index for each list', async () => {
    expect(await indexes((text) => sql.raw<{ name: string }>(text).all(h.database.sql))).toEqual(all);
  });

  test.each<[string, PGliteOptions['extensions'], string, string[]]>([
    ['are left out where the server has no pg_trgm', {}, '', []],
    [
      'are those of another schema where it stands there',
      { pg_trgm },
      'create extension pg_trgm schema x',
      all,
    ],
  ])('%s', async (_, extensions = {}, before, expected) => {
    const database = await PGlite.create({ extensions, loadDataDir: await dataDir() });
    await database.exec(`create schema x; ${before}`);
    await database.exec(`
      create table repositories (full_name_key text); create table sites (name text); create table api_keys (name text)`);
    for (const name of (await readdir(folder)).filter((one) => one.includes('_parts_of_')).sort())
      await database.exec(await readFile(join(folder, name), 'utf8'));
    expect(await indexes(async (text) => (await database.query<{ name: string }>(text)).rows)).toEqual(
      expected,
    );
    await database.close();
  });
});
