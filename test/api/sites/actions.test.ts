// @module-tag sql
import { afterAll, beforeAll, expect, test } from 'vitest';
import { day } from '../../../src/core/clock.ts';
import { type Harness, openHarness, type Person } from '../../harness.ts';
import { archiveOf, page, replace, upload } from './uploads.ts';

// What pages show before something is tried: what one may do and why not, what a version would change, a dry run.
let h: Harness;
let ada: Person;
let eve: Person;
beforeAll(async () => {
  h = await openHarness();
  ada = await h.person('Ada');
  eve = await h.person('Eve');
});
afterAll(() => h.close());

const actions = (id: string, as: Parameters<typeof upload>[1] = ada) =>
  h.call('GET', `/sites/${id}/actions`, { as });
const files = { 'index.html': page('one'), 'same.html': page('same'), 'gone.html': page('gone') };

test('an owner reads which actions a site allows now, and the result of an extension', async () => {
  const { data } = await upload(h, ada, files, { ttlHours: '24' });
  const open = await actions(data.id);
  expect(open.data.reasons).toEqual({
    publish: null,
    change: null,
    change_visibility: null,
    extend: null,
    delete: null,
    restore: 'The site is not deleted.',
    see_versions: null,
    end_grants: null,
  });
  expect(Date.parse(open.data.extendsTo)).toBe(Date.parse(data.expiresAt) + 30 * day);
  const extended = await h.call('POST', `/sites/${data.id}/extend`, { as: ada });
  expect(extended.data.expiresAt).toBe(open.data.extendsTo);
});

test('every reason is the one with which the verb would refuse', async () => {
  const { data } = await upload(h, ada, files, { visibility: 'public', ttlHours: '8760' });
  expect((await actions(data.id)).data.reasons.extend).toContain('as far ahead as allowed');
  expect((await h.call('POST', `/sites/${data.id}/extend`, { as: ada })).error.code).toBe('expiry_conflict');
  expect((await actions(data.id)).data.reasons.end_grants).toContain('no grants to end');
  await h.call('DELETE', `/sites/${data.id}`, { as: ada });
  const { reasons } = (await actions(data.id)).data;
  expect([reasons.publish, reasons.delete, reasons.restore]).toEqual([
    'The site is deleted. Restore it first.',
    'The site is already deleted.',
    null,
  ]);
  const short = await upload(h, ada, files, { ttlHours: '1' });
  h.clock.advance(3_600_000);
  expect((await actions(short.data.id)).data.reasons.publish).toBe('The site has expired. Extend it first.');
  expect((await replace(h, ada, short.data.id, files)).error.code).toBe('site_expired');
});

test('other people read who owns a site, a reading key which scope it lacks, and neither reads anything of hidden sites', async () => {
  const own = await upload(h, ada, files, { visibility: 'public' });
  expect((await actions(own.data.id, eve)).data.reasons.publish).toBe('Only its owner can change it.');
  const reader = await h.key(ada, { scopes: ['sites:read'] });
  expect((await actions(own.data.id, reader)).data.reasons.change).toBe(
    'This action needs the scope sites:write.',
  );
  const service = await h.serviceKey({ scopes: ['sites:write'] });
  const theirs = await upload(h, service, files);
  expect((await actions(theirs.data.id)).data.reasons.delete).toContain('Only the service key');
  expect((await actions(theirs.data.id, service)).data.reasons.delete).toBeNull();
  const hidden = await upload(h, ada, files);
  expect((await actions(hidden.data.id, eve)).error.code).toBe('site_not_found');
});

test('a version is compared with the live one, file by file and page by page', async () => {
  const { data } = await upload(h, ada, files);
  await replace(h, ada, data.id, {
    'index.html': page('two!'),
    'same.html': page('same'),
    'new.html': page('new'),
  });
  const back = await h.call('GET', `/sites/${data.id}/versions/1/changes`, { as: ada });
  expect(back.data).toEqual({
    against: 2,
    added: 1,
    changed: 1,
    removed: 1,
    files: [
      { path: 'gone.html', change: 'added', size: page('gone').length, sizeBefore: null },
      { path: 'index.html', change: 'changed', size: page('one').length, sizeBefore: page('two!').length },
      { path: 'new.html', change: 'removed', size: null, sizeBefore: page('new').length },
    ],
  });
  const query = { limit: '1', page: '2', against: '1' };
  const forward = await h.call('GET', `/sites/${data.id}/versions/2/changes`, { as: ada, query });
  expect(forward.data).toMatchObject({ against: 1, added: 1, files: [{ path: 'index.html' }] });
  expect(forward.metadata.pagination.total).toBe(3);
  const live = await h.call('GET', `/sites/${data.id}/versions/2/changes`, { as: ada });
  expect(live.data).toMatchObject({ added: 0, changed: 0, removed: 0, files: [] });
  expect((await h.call('GET', `/sites/${data.id}/versions/9/changes`, { as: ada })).status).toBe(404);
});

test('a search finds the files of a site by a part of their path', async () => {
  const { data } = await upload(h, ada, files);
  const found = await h.call('GET', `/sites/${data.id}/files`, { as: ada, query: { search: 'AM' } });
  expect(found.data.map(({ path }: { path: string }) => path)).toEqual(['same.html']);
  expect(found.metadata.pagination.total).toBe(1);
});

test('a dry run checks everything and keeps nothing', async () => {
  const count = async () => (await h.call('GET', '/sites', { as: eve, query: { mine: 'true' } })).data.length;
  const before = await count();
  const would = await upload(h, eve, files, { dryRun: 'true', name: 'Only looking' });
  expect(would.data).toMatchObject({ name: 'Only looking', fileCount: 3, status: 'active' });
  expect((await h.call('GET', `/sites/${would.data.id}`, { as: eve })).status).toBe(404);
  expect(await count()).toBe(before);
  const bad = await upload(h, eve, { ...files, '.env': 'A=1' }, { dryRun: 'true' });
  expect(bad.error.details.files).toMatchObject([{ path: '.env', code: 'private_file' }]);
  const { data } = await upload(h, eve, files);
  const raw = archiveOf({ 'index.html': page('other') });
  const next = await h.call('PUT', `/sites/${data.id}/content`, { as: eve, query: { dryRun: 'true' }, raw });
  expect(next.data.version.number).toBe(2);
  expect((await h.call('GET', `/sites/${data.id}`, { as: eve })).data.version.number).toBe(1);
});
