// @module-tag sql
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { minute } from '../../../src/core/clock.ts';
import { ordered, othersOf, placeOf, siteSorts } from '../../../src/features/sites/site/site-list.ts';
import { sql } from '../../../src/platform/database/sql.ts';
import { type Harness, openHarness, type Person } from '../../harness.ts';
import { page, replace, upload } from './uploads.ts';

/** Lists of sites in the order that people ask for. */
let h: Harness;
let ada: Person;
let bob: Person;
beforeAll(async () => {
  h = await openHarness();
  [ada, bob] = [await h.person('Ada'), await h.person('Bob')];
  const isPublic = { visibility: 'public' };
  const notes = await upload(h, ada, files(1), { name: 'notes', ttlHours: '48', ...isPublic });
  h.clock.advance(minute);
  await upload(h, ada, files(3_000), { name: 'Atlas', ttlHours: '24' });
  h.clock.advance(minute);
  await upload(h, bob, files(2_000), { name: 'menu', ttlHours: '72', ...isPublic });
  h.clock.advance(minute);
  await replace(h, ada, notes.data.id, files(1_000));
  await h.call('POST', '/sites', { as: ada, body: { name: 'later', ttlHours: 96 } });
});
afterAll(() => h.close());

const files = (length: number) => ({ 'index.html': page('x'.repeat(length)) });
type Query = Readonly<Record<string, string>>;

async function names(query: Query, as = ada): Promise<string[]> {
  const { data } = await h.call('GET', '/sites', { as, query });
  return data.map(({ name }: { name: string }) => name);
}

describe('the list of sites', () => {
  test.each([
    [{}, ['later', 'menu', 'Atlas', 'notes']],
    [{ order: 'asc' }, ['notes', 'Atlas', 'menu', 'later']],
    [{ sort: 'name' }, ['Atlas', 'later', 'menu', 'notes']],
    [{ sort: 'publishedAt' }, ['notes', 'menu', 'Atlas', 'later']],
    [{ sort: 'expiresAt' }, ['Atlas', 'menu', 'later', 'notes']],
    [{ sort: 'sizeBytes' }, ['Atlas', 'menu', 'notes', 'later']],
    [{ sort: 'sizeBytes', mine: 'true' }, ['Atlas', 'notes', 'later']],
  ])('%j has the expected order', async (query, order) => {
    expect(await names(query)).toEqual(order);
  });

  test.each(siteSorts)('descending by %s is ascending reversed', async (sort) => {
    const [up, down] = [await names({ sort, order: 'asc' }), await names({ sort, order: 'desc' })];
    expect(up.toReversed()).toEqual(down);
  });

  test.each(siteSorts)('by %s shows each site on one page', async (sort) => {
    const whole = await names({ sort });
    const paged = [];
    for (const number of ['1', '2', '3', '4'])
      paged.push(...(await names({ sort, page: number, limit: '1' })));
    expect(paged).toEqual(whole);
  });

  test('in any order has no hidden site of another person', async () => {
    for (const sort of siteSorts) expect((await names({ sort }, bob)).sort()).toEqual(['menu', 'notes']);
  });

  test.each([{ sort: 'owner' }, { order: 'up' }])('%j is refused', async (query) => {
    const answer = await h.call('GET', '/sites', { as: ada, query });
    expect([answer.status, answer.error.code]).toEqual([400, 'invalid_query']);
  });
});

test('size and last publication follow the live version, even after a rollback', async () => {
  const cara = await h.person('Cara');
  const small = await upload(h, cara, files(10), { name: 'small' });
  h.clock.advance(minute);
  const back = await upload(h, cara, files(9_000), { name: 'back' });
  await replace(h, cara, back.data.id, files(1));
  h.clock.advance(minute);
  await replace(h, cara, small.data.id, files(20));
  expect(await names({ sort: 'sizeBytes', mine: 'true' }, cara)).toEqual(['small', 'back']);
  expect(await names({ sort: 'publishedAt', mine: 'true' }, cara)).toEqual(['small', 'back']);
  h.clock.advance(minute);
  await h.call('POST', `/sites/${back.data.id}/versions/1/publish`, { as: cara });
  expect(await names({ sort: 'sizeBytes', mine: 'true' }, cara)).toEqual(['back', 'small']);
  expect(await names({ sort: 'publishedAt', mine: 'true' }, cara)).toEqual(['back', 'small']);
});

test('every order of all sites has an index, so that a million sites are listed as fast', async () => {
  const filter = { viewer: { kind: 'user', id: bob.user.id }, mine: false } as const;
  const plans = await h.database.tx(async (inside) => {
    // Without sorting by hand, unless there is no other way.
    await sql`set local enable_sort = off`.run(inside);
    await sql`set local enable_seqscan = off`.run(inside);
    const found: string[] = [];
    for (const sort of siteSorts)
      for (const direction of ['asc', 'desc'] as const) {
        const order = { sort, direction };
        const rows = await sql<{ 'QUERY PLAN': string }>`
          explain select s.id from sites s where ${othersOf({ ...filter, order }, h.clock.now())}
           order by ${ordered(order, placeOf(order))} limit 20`.all(inside);
        found.push(rows.map((row) => row['QUERY PLAN']).join('\n'));
      }
    return found;
  });
  for (const plan of plans) expect(plan).toMatch(/Index Scan(?: Backward)? using sites_public/);
  for (const plan of plans) expect(plan).not.toContain('Sort');
});
