import type { Response } from 'light-my-request';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { hour } from '../../src/core/clock.ts';
import { systemRandom } from '../../src/core/ids.ts';
import { generateLabel } from '../../src/features/sites/site/labels.ts';
import { sql } from '../../src/platform/database/sql.ts';
import { type Harness, openHarness, type Person } from '../harness.ts';
import { upload } from '../api/sites/uploads.ts';
import { browserOf, navigation, privateSite, subresource } from './private.ts';

let h: Harness;
let ada: Person;
beforeAll(async () => {
  h = await openHarness({ changesPerMinute: 10_000 });
  ada = await h.person('Ada');
});
afterAll(() => h.close());

/** An answer without what is random in it or says back what was asked for. */
function shapeOf({ statusCode, headers, payload }: Response, label: string): string {
  const { date: _date, ...sent } = headers;
  return JSON.stringify([statusCode, Object.entries(sent), payload])
    .replaceAll(label, '(label)')
    .replace(/(binding=)[\w-]{43}\b/, '$1(random)')
    .replace(/(ticket=)([\w-]+)/, (_whole, name, ticket) => `${name}(${ticket.length})`)
    .replace(/(__Host-postern_browser=)[\w-]{22}\b/, '$1(random)');
}

const asked = [
  ['', navigation],
  ['docs/a.html?q=1', navigation],
  ['index.html', { ...subresource, range: 'bytes=0-3', 'if-none-match': '*' }],
] as const;

async function shapesOf(labels: readonly string[]): Promise<Set<string>[]> {
  const shapes = asked.map(() => new Set<string>());
  for (const label of labels) {
    for (const [nth, [path, headers]] of asked.entries()) {
      const answer = await h.open(`http://${label}.sites.localhost:3001/${path}`, { headers });
      shapes[nth]?.add(shapeOf(answer, label));
    }
  }
  return shapes;
}

/** Inserts the site at each of these labels: publishing so many takes half a minute. */
async function copySite(id: string, labels: readonly string[]): Promise<void> {
  const copies = sql`unnest(${labels}::text[]) as copy(to_label)`;
  await sql`
    insert into sites (id, name, owner_kind, owner_id, visibility, label, spa, live_version, next_version, created_at,
                       updated_at, expires_at)
    select right(to_label, 10), name, owner_kind, owner_id, visibility, to_label, spa, live_version, next_version,
           created_at, updated_at, expires_at
      from sites, ${copies} where id = ${id}`.run(h.database.sql);
  await sql`
    insert into site_labels (label, site_id, minted_at)
    select to_label, right(to_label, 10), minted_at
      from site_labels, ${copies} where site_id = ${id}`.run(h.database.sql);
  await sql`
    insert into site_versions (site_id, number, digest, manifest, file_count, size_bytes, created_at, published_at)
    select right(to_label, 10), number, digest, manifest, file_count, size_bytes, created_at, published_at
      from site_versions, ${copies} where site_id = ${id}`.run(h.database.sql);
}

test('T31 a thousand used labels and a thousand unknown ones get the same bytes', {
  tags: 'flood',
}, async () => {
  const { id } = await privateSite(h, ada);
  const real = Array.from({ length: 1_000 }, () => generateLabel(systemRandom, 'private'));
  const madeUp = Array.from({ length: 1_000 }, () => generateLabel(systemRandom, 'private'));
  await copySite(id, real);
  const browser = browserOf(h, ada);
  const last = `http://${real[999]}.sites.localhost:3001/`;
  expect((await browser.open(last)).status).toBe(200);

  const one = await shapesOf(real);
  expect(one.map(({ size }) => size)).toEqual(asked.map(() => 1));
  expect(await shapesOf(madeUp)).toEqual(one);
});

test('T31 a private site that is expired, deleted, taken down, public now or empty is answered like an unknown one', async () => {
  const boss = await h.person('Boss', { admin: true });
  const bob = await h.person('Bob');
  const labelOf = async (ttl: Record<string, string> = {}) => {
    const { data } = await upload(h, bob, { 'index.html': 'x' }, { visibility: 'private', ...ttl });
    return { id: data.id, label: new URL(data.url).host.split('.', 1)[0] ?? '' };
  };
  const expired = await labelOf({ ttlHours: '1' });
  const [deleted, down, shown] = [await labelOf(), await labelOf(), await labelOf()];
  const empty = await h.call('POST', '/sites', { as: bob, body: { visibility: 'private' } });
  await h.call('DELETE', `/sites/${deleted.id}`, { as: bob });
  await h.call('POST', `/sites/${down.id}/take-down`, { as: boss, body: { reason: 'phishing' } });
  await h.call('PATCH', `/sites/${shown.id}`, { as: bob, body: { visibility: 'public' } });
  h.clock.advance(hour);
  const unlike = await shapesOf([generateLabel(systemRandom, 'private')]);
  const url: string = empty.data.url;
  const gone = [expired, deleted, down, shown, { label: new URL(url).host.split('.', 1)[0] ?? '' }];
  expect(await shapesOf(gone.map(({ label }) => label))).toEqual(unlike);
});
