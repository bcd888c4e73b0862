import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { systemAuditContext } from '../../../src/core/caller.ts';
import { day, hour } from '../../../src/core/clock.ts';
import { defaultSitesConfig, type SitesConfig } from '../../../src/features/sites/site/sites-config.ts';
import { type Harness, openHarness, type TestKey } from '../../harness.ts';
import { formOf, page, replace, upload } from './uploads.ts';

/** The visibilities and lifetimes that an administrator allows, as a publisher meets them. */
let h: Harness;
/** A personal key and a service key. */
let mine: TestKey;
let service: TestKey;
beforeAll(async () => {
  h = await openHarness({ changesPerMinute: 10_000 });
  mine = await h.key(await h.person('Ada'), { scopes: ['sites:write'] });
  service = await h.serviceKey({ scopes: ['sites:write'] });
});
afterEach(() => configure({}));
afterAll(() => h.close());

const files = { 'index.html': page('x') };

/** The configuration of a new installation, but for this. */
async function configure(change: Partial<SitesConfig>): Promise<void> {
  const { sitesConfig } = h.app.services.sitesServices;
  const { etag } = await sitesConfig.read();
  await sitesConfig.put(systemAuditContext, etag, { ...defaultSitesConfig, ...change });
}

describe('where no new public sites are allowed', () => {
  const closed = { visibility: { allowPublic: false, allowPrivate: true } };

  test('neither a person nor a service key creates or makes a public site', async () => {
    const hidden = await upload(h, mine, files);
    await configure(closed);
    const refused = [
      await upload(h, mine, files, { visibility: 'public' }),
      await h.call('POST', '/sites', { as: mine, body: { visibility: 'public' } }),
      await upload(h, mine, files, { visibility: 'public', dryRun: 'true' }),
      await upload(h, service, files),
      await h.call('POST', '/sites', { as: service, body: { visibility: 'public' } }),
      await h.call('PATCH', `/sites/${hidden.data.id}`, { as: mine, body: { visibility: 'public' } }),
    ];
    expect(refused.map(({ status, error }) => [status, error?.code])).toEqual(
      refused.map(() => [422, 'visibility_not_allowed']),
    );
    const after = await h.call('GET', `/sites/${hidden.data.id}`, { as: mine });
    expect(after.data).toMatchObject({ visibility: 'private', url: hidden.data.url });
  });

  test('the upload is refused before it is read, and private sites work as before', async () => {
    await configure(closed);
    const { data } = await h.call('GET', '/sites/capabilities', { as: mine });
    expect([data.allowedVisibility, Object.keys(data.visibilityReasons)]).toEqual([['private'], ['public']]);
    expect((await upload(h, mine, files)).data.visibility).toBe('private');
  });

  test('a site that is already public is served and accepts new content', async () => {
    const open = await upload(h, service, files);
    await configure(closed);
    expect((await replace(h, service, open.data.id, { 'index.html': page('newer') })).status).toBe(200);
    expect((await h.open(open.data.url)).payload).toContain('newer');
  });
});

describe('where sites do not expire', () => {
  const endless = { ttl: { ...defaultSitesConfig.ttl, enabled: false } };

  test('a new site has no expiry, and a requested lifetime is refused', async () => {
    await configure(endless);
    const made = await upload(h, service, files);
    expect([made.status, made.data.expiresAt]).toEqual([201, null]);
    const form = formOf([
      { name: 'ttlHours', value: '24' },
      { name: 'file', fileName: 'index.html', type: 'text/html', value: files['index.html'] },
    ]);
    for (const refused of [
      await upload(h, service, files, { ttlHours: '24' }),
      await h.call('POST', '/sites', { as: service, raw: form }),
      await h.call('POST', '/sites', { as: service, body: { visibility: 'public', ttlHours: 24 } }),
    ])
      expect([refused.status, refused.error?.code]).toEqual([409, 'expiry_conflict']);
    expect((await h.call('GET', '/sites/capabilities', { as: service })).data.ttl.enabled).toBe(false);
    h.clock.advance(400 * day);
    for (const job of ['site-expiry', 'site-cleanup']) await h.app.jobs.runNow(job);
    expect((await h.open(made.data.url)).statusCode).toBe(200);
  });

  test('no site is extended: an earlier one keeps its expiry', async () => {
    const before = await upload(h, service, files, { ttlHours: '24' });
    await configure(endless);
    const without = await upload(h, service, files);
    for (const { data } of [before, without]) {
      const extended = await h.call('POST', `/sites/${data.id}/extend`, { as: service });
      expect([extended.status, extended.error?.code]).toEqual([409, 'expiry_conflict']);
      const after = await h.call('GET', `/sites/${data.id}`, { as: service });
      expect(after.data.expiresAt).toBe(data.expiresAt);
      const actions = await h.call('GET', `/sites/${data.id}/actions`, { as: service });
      expect([actions.data.extendsTo, actions.data.reasons.extend]).toEqual([null, expect.any(String)]);
    }
    h.clock.advance(24 * hour - 1);
    expect((await h.open(before.data.url)).statusCode).toBe(200);
    h.clock.advance(1);
    expect((await h.open(before.data.url)).statusCode).toBe(404);
    expect((await h.open(without.data.url)).statusCode).toBe(200);
  });

  test('a site without an expiry gets none when sites expire again, and is not extended', async () => {
    await configure(endless);
    const made = await upload(h, service, files);
    await configure({});
    const extended = await h.call('POST', `/sites/${made.data.id}/extend`, { as: service });
    expect([extended.status, extended.error?.code]).toEqual([409, 'expiry_conflict']);
    expect((await h.call('GET', `/sites/${made.data.id}`, { as: service })).data.expiresAt).toBeNull();
  });
});

describe('a deleted site', () => {
  test('can be restored until the time that its deletion named', async () => {
    await configure({ deletion: { restoreDays: 3 } });
    const restore = (id: string) => h.call('POST', `/sites/${id}/restore`, { as: service });
    const [saved, lost] = [await upload(h, service, files), await upload(h, service, files)];
    const deletedAt = h.clock.now();
    for (const { data } of [saved, lost]) {
      const gone = await h.call('DELETE', `/sites/${data.id}`, { as: service });
      expect(Date.parse(gone.data.restorableUntil)).toBe(deletedAt + 3 * day);
    }
    await configure({ deletion: { restoreDays: 30 } });
    h.clock.set(deletedAt + 3 * day - 1);
    const back = await restore(saved.data.id);
    expect([back.status, back.data.status, back.data.restorableUntil]).toEqual([200, 'active', null]);
    h.clock.advance(1);
    const late = await restore(lost.data.id);
    expect([late.status, late.error?.code]).toEqual([404, 'site_not_found']);
    expect((await h.open(saved.data.url)).statusCode).toBe(200);
    expect((await h.open(lost.data.url)).statusCode).toBe(404);
  });
});
