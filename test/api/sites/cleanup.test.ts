// @module-tag sql
import { readdir, utimes } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import fc from 'fast-check';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemAuditContext } from '../../../src/core/caller.ts';
import { day, hour, minute, second } from '../../../src/core/clock.ts';
import type { SitesConfig } from '../../../src/features/sites/sites.ts';
import { sql } from '../../../src/platform/database/sql.ts';
import { type Harness, openHarness, type Person, type TestKey } from '../../harness.ts';
import { page, replace, send, sha256, start, upload } from './uploads.ts';

let h: Harness;
let ada: Person;
let key: TestKey;
beforeEach(async () => {
  h = await openHarness({ changesPerMinute: 10_000 });
  ada = await h.person('Ada');
  key = await h.key(ada, { scopes: ['sites:write'] });
});
afterEach(() => h.close());

const cleanUp = () => h.app.services.sitesServices.siteCleanup.run();

/** Every blob was written `ms` ago, by the clock of the test. */
async function ageBlobs(ms: number): Promise<void> {
  const root = dirname(h.incoming);
  const at = new Date(h.clock.now() - ms);
  for await (const { digest } of h.blobs.list())
    await utimes(join(root, digest.slice(0, 2), digest.slice(2)), at, at);
}

async function stored(): Promise<Set<string>> {
  const found = new Set<string>();
  for await (const { digest } of h.blobs.list()) found.add(digest);
  return found;
}

async function configure(change: (config: SitesConfig) => SitesConfig): Promise<void> {
  const { sitesConfig } = h.app.services.sitesServices;
  const { etag, value } = await sitesConfig.read();
  await sitesConfig.put(systemAuditContext, etag, change(value));
}

async function eventsOf(id: string): Promise<string[]> {
  const rows = await sql<{ event: string }>`
    select event from audit_events where target_id = ${id} order by at, id`.all(h.database.sql);
  return rows.map(({ event }) => event);
}

test('unused bytes are removed an hour after they arrived, and not before', async () => {
  await upload(h, key, { 'index.html': page('kept') });
  const refused = await upload(h, key, { 'index.html': page('refused'), '.env': 'A=1' });
  expect(refused.status).toBe(422);
  await h.blobs.write(Readable.from([Buffer.from('of an upload that was never published')]));
  expect(await stored()).toEqual(
    new Set([sha256(page('kept')), sha256('of an upload that was never published')]),
  );
  await ageBlobs(hour - minute);
  await cleanUp();
  expect((await stored()).size).toBe(2);
  await ageBlobs(hour);
  await cleanUp();
  expect(await stored()).toEqual(new Set([sha256(page('kept'))]));
});

test('T49 content is kept while any version of anyone points to it', async () => {
  const shared = page('shared');
  const bob = await h.key(await h.person('Bob'), { scopes: ['sites:write'] });
  const one = await upload(h, key, { 'index.html': shared });
  const two = await upload(h, bob, { 'index.html': shared });
  await configure((config) => ({ ...config, deletion: { restoreDays: 1 } }));
  h.clock.advance(1);
  await h.call('DELETE', `/sites/${one.data.id}`, { as: key });
  h.clock.advance(day);
  await ageBlobs(2 * hour);
  await cleanUp();
  expect((await h.call('GET', `/sites/${one.data.id}`, { as: key })).status).toBe(404);
  expect(await eventsOf(one.data.id)).toEqual(['site.created', 'site.deleted', 'site.purged']);
  const file = await h.call('GET', `/sites/${two.data.id}/files/index.html`, { as: bob });
  expect(file.text).toBe(shared);
  await h.call('DELETE', `/sites/${two.data.id}`, { as: bob });
  h.clock.advance(day);
  await ageBlobs(2 * hour);
  await cleanUp();
  expect(await stored()).toEqual(new Set());
});

test('the owner of a deleted site can restore it until its last moment', async () => {
  const made = await upload(h, key, { 'index.html': page('back') });
  await h.call('DELETE', `/sites/${made.data.id}`, { as: key });
  h.clock.advance(7 * day - 1);
  await cleanUp();
  const back = await h.call('POST', `/sites/${made.data.id}/restore`, { as: key });
  expect(back.data.status).toBe('active');
});

test('an expired site can be extended for the restore period and is then removed permanently', async () => {
  const made = await upload(h, key, { 'index.html': page('late') }, { ttlHours: '1' });
  h.clock.advance(hour + 7 * day - 1);
  await cleanUp();
  expect((await h.call('GET', `/sites/${made.data.id}`, { as: key })).data.status).toBe('expired');
  h.clock.advance(1);
  await cleanUp();
  expect((await h.call('GET', `/sites/${made.data.id}`, { as: key })).status).toBe(404);
});

test('versions over the limit are removed when their hashed files are out of reach, but never the live one', async () => {
  await configure((config) => ({ ...config, versions: { retain: 2, skewGraceMinutes: 60 } }));
  const { id } = (await upload(h, key, { 'index.html': page('1') })).data;
  for (const text of ['2', '3', '4']) await replace(h, key, id, { 'index.html': page(text) });
  await h.call('POST', `/sites/${id}/versions/1/publish`, { as: key });
  const numbers = async () =>
    (await h.call('GET', `/sites/${id}/versions`, { as: key })).data.map(
      (one: { number: number }) => one.number,
    );
  h.clock.advance(hour);
  await cleanUp();
  expect(await numbers()).toEqual([4, 3, 2, 1]);
  h.clock.advance(1);
  await ageBlobs(2 * hour);
  await cleanUp();
  expect(await numbers()).toEqual([4, 3, 1]);
  expect((await stored()).has(sha256(page('2')))).toBe(false);
  expect((await h.call('GET', `/sites/${id}/files/index.html`, { as: key })).text).toBe(page('1'));
});

test('UP-05 announced contents are kept until the upload ends, and then removed', async () => {
  const site = (await h.call('POST', '/sites', { as: key, body: {} })).data.id;
  const begun = await start(h, key, site, { 'index.html': page('half') });
  const path = `/sites/${site}/uploads/${begun.data.id}`;
  await send(h, key, path, page('half'));
  h.clock.advance(day - 1);
  await ageBlobs(20 * hour);
  await cleanUp();
  expect(await stored()).toEqual(new Set([sha256(page('half'))]));
  h.clock.advance(1);
  await cleanUp();
  expect(await stored()).toEqual(new Set());
  expect(await readdir(h.incoming)).toEqual([]);
});

test('a removal that a killed process left is finished, and until then those bytes cannot be published', async () => {
  const content = page('going');
  await h.blobs.write(Readable.from([Buffer.from(content)]));
  await h.database.tx(async (tx) => {
    await sql`insert into blob_removals (digest, decided_at) values (${sha256(content)}, ${new Date(h.clock.now())})`.run(
      tx,
    );
  });
  const refused = await upload(h, key, { 'index.html': content });
  expect([refused.status, refused.error.code]).toEqual([503, 'store_unavailable']);
  h.clock.advance(minute);
  await cleanUp();
  expect(await stored()).toEqual(new Set());
  h.clock.advance(1);
  const made = await upload(h, key, { 'index.html': content });
  expect((await h.call('GET', `/sites/${made.data.id}/files/index.html`, { as: key })).text).toBe(content);
});

test('an upload whose known bytes were removed while it ran publishes nothing', async () => {
  const content = page('raced');
  const { sites } = h.app.services.sitesServices;
  const caller = {
    kind: 'session',
    user: ada.user,
    sessionId: ada.sessionId,
    expiresAt: 0,
    authenticatedAt: null,
  } as const;
  const received = await sites.receive(caller, systemAuditContext, {
    kind: 'html',
    stream: Readable.from([content]),
    fileName: '',
    left: AbortSignal.any([]),
  });
  await ageBlobs(2 * hour);
  await cleanUp();
  expect(await stored()).toEqual(new Set());
  await expect(sites.create(caller, systemAuditContext, {}, received)).rejects.toMatchObject({
    code: 'store_unavailable',
  });
});

test('the job keeps to the configured interval', async () => {
  const { siteCleanup } = h.app.services.sitesServices;
  await configure((config) => ({
    ...config,
    cleanup: { intervalMinutes: 10 },
    deletion: { restoreDays: 0 },
  }));
  await siteCleanup.runInTurn();
  const made = await upload(h, key, { 'index.html': page('x') });
  await h.call('DELETE', `/sites/${made.data.id}`, { as: key });
  const isThere = async () => (await h.call('GET', `/sites/${made.data.id}`, { as: key })).status === 200;
  h.clock.advance(10 * minute - 1);
  await siteCleanup.runInTurn();
  expect(await isThere()).toBe(true);
  h.clock.advance(1);
  await siteCleanup.runInTurn();
  expect(await isThere()).toBe(false);
});

test('an expiry leaves one event, and its owner gets notices 7 days and 1 day before, and at the expiry', async () => {
  const made = await upload(h, key, { 'index.html': page('x') }, { ttlHours: String(24 * 10) });
  const robot = await h.serviceKey({ scopes: ['sites:write'] });
  await upload(h, robot, { 'index.html': page('x') }, { visibility: 'public', ttlHours: String(24 * 10) });
  await upload(h, key, { 'index.html': page('x') }, { ttlHours: '20' });
  const told = async (recipient: { kind: 'user'; userId: string } | { kind: 'administrators' }) => {
    await h.app.jobs.runNow('site-expiry');
    await h.app.jobs.runNow('site-expiry');
    const { notices } = await h.app.services.notices.list(recipient, { page: 1, limit: 25 });
    return notices
      .filter((one) => 'siteId' in one)
      .map(({ kind }) => kind)
      .sort();
  };
  const mine = { kind: 'user', userId: ada.user.id } as const;
  expect(await told(mine)).toEqual([]);
  h.clock.advance(3 * day);
  expect(await told(mine)).toEqual(['site_expired', 'site_expires_7d']);
  h.clock.advance(6 * day);
  expect(await told(mine)).toEqual(['site_expired', 'site_expires_1d', 'site_expires_7d']);
  await h.call('POST', `/sites/${made.data.id}/extend`, { as: key });
  h.clock.advance(day);
  expect(await told({ kind: 'administrators' })).toEqual([
    'site_expired',
    'site_expires_1d',
    'site_expires_7d',
  ]);
  expect(await eventsOf(made.data.id)).toEqual(['site.created', 'site.extended']);
  h.clock.advance(30 * day);
  await told(mine);
  expect(await eventsOf(made.data.id)).toEqual(['site.created', 'site.extended', 'site.expired']);
});

/** How often each owner keeps each content by the count, and by what the versions hold; and the bytes of it, summed up. */
async function counts() {
  const counted = await sql<{ ownerId: string; digest: string; runs: number }>`
    select owner_id, digest, runs from owner_blobs order by owner_id, digest`.all(h.database.sql);
  const row = await sql<{ kept: string; summed: string }>`
    select (select coalesce(sum(bytes), 0) from owner_storage)::text as kept,
           (select coalesce(sum(size), 0) from owner_blobs)::text as summed`.first(h.database.sql);
  expect(row?.kept).toBe(row?.summed);
  const held = await sql`
    with placed as (
      select s.owner_id, v.site_id, v.manifest, row_number() over (partition by v.site_id order by v.number) as place
        from site_versions v join sites s on s.id = v.site_id),
    held as (
      select distinct owner_id, site_id, place, file ->> 1 as digest
        from placed, jsonb_array_elements(manifest) as file)
    select owner_id, digest, count(*)::int as runs
      from held h
     where not exists (select 1 from held e
                        where e.site_id = h.site_id and e.digest = h.digest and e.place = h.place - 1)
     group by owner_id, digest order by owner_id, digest`.all(h.database.sql);
  return { counted, held };
}

test('after any publications, rollbacks, deletions and purges, an owner’s storage is the content of the versions', {
  tags: 'flood',
}, async () => {
  await configure((config) => ({
    ...config,
    versions: { retain: 2, skewGraceMinutes: 1 },
    deletion: { restoreDays: 1 },
  }));
  const step = fc.oneof(
    fc.record({ kind: fc.constant('create'), content: fc.integer({ min: 0, max: 4 }) }),
    fc.record({ kind: fc.constant('replace'), content: fc.integer({ min: 0, max: 4 }) }),
    fc.record({
      kind: fc.constantFrom('back', 'delete', 'restore', 'clean', 'later', 'day'),
      content: fc.nat(9),
    }),
  );
  const filesOf = (content: number) => ({
    'index.html': page(String(content)),
    'copy.html': page(String(content)),
    'same.css': `p{order:${content % 2}}`,
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 25 }), async (steps) => {
      const ids: string[] = [];
      for (const { kind, content } of steps) {
        // A key asks for 600 requests a minute at most.
        h.clock.advance(second);
        const id = ids[content % Math.max(1, ids.length)] ?? 'none';
        if (kind === 'create') ids.push((await upload(h, key, filesOf(content))).data.id);
        else if (kind === 'replace') await replace(h, key, id, filesOf(content));
        else if (kind === 'back')
          await h.call('POST', `/sites/${id}/versions/${1 + (content % 3)}/publish`, { as: key });
        else if (kind === 'delete') await h.call('DELETE', `/sites/${id}`, { as: key });
        else if (kind === 'restore') await h.call('POST', `/sites/${id}/restore`, { as: key });
        else if (kind === 'later') h.clock.advance(2 * minute);
        else if (kind === 'day') h.clock.advance(day);
        else await cleanUp();
        const { counted, held } = await counts();
        expect(counted).toEqual(held);
      }
      await ageBlobs(2 * hour);
      await cleanUp();
      const rows = await sql<{ digest: string }>`select digest from owner_blobs`.all(h.database.sql);
      const kept = await stored();
      for (const { digest } of rows) expect(kept).toContain(digest);
      for (const id of ids) await h.call('DELETE', `/sites/${id}`, { as: key });
      h.clock.advance(2 * day);
    }),
    { numRuns: 8 },
  );
});

test('a site without a version is removed a day after its last change, unless an upload is open', async () => {
  const empty = async () => (await h.call('POST', '/sites', { as: key, body: {} })).data.id as string;
  const [left, renamed, waiting, filled, stopped] = [
    await empty(),
    await empty(),
    await empty(),
    await empty(),
    await empty(),
  ];
  await replace(h, key, filled, { 'index.html': page('x') });
  const boss = await h.person('Boss', { admin: true });
  await h.call('POST', `/sites/${stopped}/take-down`, { as: boss, body: { reason: 'reported' } });
  h.clock.advance(12 * hour);
  await h.call('PATCH', `/sites/${renamed}`, { as: key, body: { name: 'soon' } });
  await start(h, key, waiting, { 'index.html': page('y') });
  h.clock.advance(12 * hour - second);
  const ids = async () => {
    await cleanUp();
    const { data } = await h.call('GET', '/sites', { as: key, query: { mine: 'true' } });
    return new Set(data.map(({ id }: { id: string }) => id));
  };
  expect(await ids()).toEqual(new Set([left, renamed, waiting, filled, stopped]));
  h.clock.advance(second);
  expect(await ids()).toEqual(new Set([renamed, waiting, filled, stopped]));
  expect((await h.call('GET', `/sites/${left}`, { as: key })).error.code).toBe('site_not_found');
  expect(await eventsOf(left)).toEqual(['site.created', 'site.purged']);
  h.clock.advance(12 * hour);
  expect(await ids()).toEqual(new Set([filled, stopped]));
});
