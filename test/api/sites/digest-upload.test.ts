// @module-tag sql
import { randomBytes } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { day } from '../../../src/core/clock.ts';
import { systemAuditContext } from '../../../src/core/caller.ts';
import { contentStore } from '../../../src/features/sites/stores/content-store.ts';
import { tarBlocks, tarEnd, type TarPart } from '../../archives/tar.ts';
import { type Answer, type Harness, openHarness, type Person, type TestKey } from '../../harness.ts';
import { announced, type Files, page, send, sha256, start, upload } from './uploads.ts';

let h: Harness;
let ada: Person;
let key: TestKey;
beforeAll(async () => {
  h = await openHarness({ changesPerMinute: 10_000 });
  ada = await h.person('Ada');
  key = await h.key(ada, { scopes: ['sites:write'] });
});
afterAll(() => h.close());

async function emptySite(as: Person | TestKey = ada): Promise<string> {
  const visibility = 'value' in as && as.type === 'service' ? { visibility: 'public' } : {};
  return (await h.call('POST', '/sites', { as, body: visibility })).data.id;
}

/** A site with a digest upload of these files under way. */
async function begun(
  files: Files,
  as: Person | TestKey = ada,
): Promise<{ site: string; path: string; answer: Answer }> {
  const site = await emptySite(as);
  const answer = await start(h, as, site, files);
  return { site, path: `/sites/${site}/uploads/${answer.data?.id}`, answer };
}

function sendTar(as: Person | TestKey, path: string, parts: readonly TarPart[]): Promise<Answer> {
  const bytes = Buffer.concat([tarBlocks(parts), tarEnd]);
  return h.call('PUT', `${path}/blobs`, { as, raw: { type: 'application/x-tar', bytes } });
}

const publish = (as: Person | TestKey | string, path: string, body: object = {}, headers = {}) =>
  h.call('POST', `${path}/publish`, { as, body, headers });

const problemsOf = ({ error }: Answer): [string, string][] =>
  error.details.files.map((file: { path: string; code: string }) => [file.path, file.code]);

test('a new version is announced, missing contents are sent, and it goes live as announced', async () => {
  const files = { 'index.html': page('one'), 'a/b.css': 'p{}', 'a/same.css': 'p{}', empty: '' };
  const { site, path, answer } = await begun(files);
  expect(answer.status).toBe(201);
  expect(answer.data).toMatchObject({
    id: expect.stringMatching(/^upl_\w{20}$/),
    expiresAt: '2026-01-02T00:00:00.000Z',
  });
  expect(answer.data.missing).toEqual([sha256(page('one')), sha256('p{}'), sha256('')].sort());
  for (const content of ['p{}', '', page('one')])
    expect((await send(h, ada, path, content)).status).toBe(204);
  expect((await h.call('GET', path, { as: ada })).data.missing).toEqual([]);
  const live = await publish(ada, path);
  expect(live.data).toMatchObject({ status: 'active', fileCount: 4, version: { number: 1 } });
  const zip = await upload(h, ada, files);
  expect(zip.data.version.digest).toBe(live.data.version.digest);
  const file = await h.call('GET', `/sites/${site}/files/index.html`, { as: ada });
  expect(file.text).toBe(page('one'));
});

test('P8 with one of many files changed, one body is sent', async () => {
  const files: Record<string, string> = { 'index.html': page('before') };
  for (let at = 0; at < 200; at += 1) files[`assets/${at}.css`] = `p{order:${at}}`;
  const made = await upload(h, ada, files);
  const changed = await start(h, ada, made.data.id, { ...files, 'index.html': page('after') });
  expect(changed.data.missing).toEqual([sha256(page('after'))]);
  const path = `/sites/${made.data.id}/uploads/${changed.data.id}`;
  await send(h, ada, path, page('after'));
  expect((await publish(ada, path)).data.version.number).toBe(2);
});

test('many contents arrive in one tar, named by their SHA-256, and an upload resumes where it stopped', async () => {
  const contents = Array.from({ length: 300 }, (_, at) => `body ${at}`);
  const { path } = await begun(Object.fromEntries(contents.map((text, at) => [`${at}.txt`, text])));
  const parts = contents.map((content) => ({ name: sha256(content), content }));
  const cut = { type: 'application/x-tar', bytes: tarBlocks(parts).subarray(0, 700) };
  const broken = await h.call('PUT', `${path}/blobs`, { as: ada, raw: cut });
  expect(problemsOf(broken)).toEqual([['', 'bad_archive']]);
  const first = await sendTar(ada, path, parts.slice(0, 250));
  expect([first.status, first.data.missing.length]).toEqual([200, 50]);
  expect((await h.call('GET', path, { as: key })).data).toEqual(first.data);
  const rest = await sendTar(key, path, parts.slice(250));
  expect([rest.status, rest.data.missing]).toEqual([200, []]);
  expect((await publish(key, path)).data.fileCount).toBe(300);
});

test('T50 contents of another owner count as missing, and so do removed ones', async () => {
  const content = page('of Ada alone');
  await upload(h, ada, { 'index.html': content });
  const bob = await h.person('Bob');
  const robot = await h.serviceKey({ scopes: ['sites:write'] });
  for (const other of [bob, robot]) {
    const { answer, path } = await begun({ 'index.html': content }, other);
    expect(answer.data.missing).toEqual([sha256(content)]);
    const early = await publish(other, path);
    expect([early.status, problemsOf(early)]).toEqual([422, [['index.html', 'missing']]]);
  }
});

test('UP-01 T38 T42 T43 names, kinds and sizes follow the same rules as in an archive', async () => {
  const site = await emptySite();
  const files = {
    '../evil.html': 'a',
    '/abs.html': 'b',
    'C:/x.html': 'c',
    'a\\b.html': 'd',
    '.env': 'e',
    '.git/config': 'f',
    'Same.html': 'h',
    'same.html': 'i',
    dir: 'm',
    'dir/x.html': 'j',
    '.postern/x.html': 'k',
    'good.html': 'l',
  };
  const refused = await start(h, ada, site, files);
  expect([refused.status, refused.error.code]).toEqual([422, 'upload_rejected']);
  expect(problemsOf(refused).map(([, code]) => code)).toEqual([
    'bad_path',
    'bad_path',
    'bad_path',
    'bad_path',
    'private_file',
    'private_file',
    'name_collision',
    'reserved_path',
  ]);
  const huge = { 'a.html': { sha256: sha256('a'), size: 60 * 1024 * 1024 } };
  const tooLarge = await h.call('POST', `/sites/${site}/uploads`, { as: ada, body: { files: huge } });
  expect(problemsOf(tooLarge)).toEqual([['a.html', 'file_too_large']]);
  const none = await h.call('POST', `/sites/${site}/uploads`, { as: ada, body: { files: {} } });
  expect(problemsOf(none)).toEqual([['', 'empty']]);
  const bad = { 'a.html': { sha256: 'A'.repeat(64), size: 1 } };
  const shape = await h.call('POST', `/sites/${site}/uploads`, { as: ada, body: { files: bad } });
  expect(shape.error.code).toBe('invalid_body');
});

test('UP-05 a wrong hash, a wrong length and an unannounced content are refused and not stored', async () => {
  const [one, two] = [randomBytes(40_000), randomBytes(40_000)];
  const { path } = await begun({ 'one.bin.png': one, 'two.png': two });
  const swapped = await send(h, ada, path, two, sha256(one));
  expect(problemsOf(swapped)).toEqual([['one.bin.png', 'wrong_content']]);
  const short = await send(h, ada, path, one.subarray(1), sha256(one));
  expect(problemsOf(short)).toEqual([['one.bin.png', 'wrong_content']]);
  const long = await send(h, ada, path, Buffer.concat([one, one]), sha256(one));
  expect(problemsOf(long)).toEqual([['one.bin.png', 'wrong_content']]);
  expect((await send(h, ada, path, 'never announced')).status).toBe(404);
  const tar = await sendTar(ada, path, [
    { name: 'readme', content: 'x' },
    { name: sha256(one), content: two },
    { name: sha256(two), content: two },
  ]);
  expect(problemsOf(tar)).toEqual([
    ['readme', 'wrong_content'],
    ['one.bin.png', 'wrong_content'],
  ]);
  expect((await h.call('GET', path, { as: ada })).data.missing).toEqual([sha256(one)]);
  const kept = new Set<string>();
  for await (const { digest } of h.blobs.list()) kept.add(digest);
  expect([kept.has(sha256(two)), kept.has(sha256(one.subarray(1)))]).toEqual([true, false]);
  expect(await readdir(h.incoming)).toEqual([]);
});

test('T37 an API key is found in one content and in a tar, and is not stored', async () => {
  const leak = `token = "${key.value}"`;
  const other = `other = "${key.value}"`;
  const { path } = await begun({ 'index.html': leak, 'js/leak.js': leak, 'js/other.js': other });
  const one = await send(h, ada, path, leak);
  expect([one.error.code, one.text.includes(key.value)]).toEqual(['credential_in_content', false]);
  // Every file with the content is named by its path, and all that is wrong at once.
  const leaks = ['index.html', 'js/leak.js'].map((name) => [name, 'credential_in_content']);
  expect(problemsOf(one)).toEqual(leaks);
  const many = await sendTar(
    ada,
    path,
    [leak, other].map((content) => ({ name: sha256(content), content })),
  );
  expect(many.error.code).toBe('credential_in_content');
  expect(problemsOf(many)).toEqual([...leaks, ['js/other.js', 'credential_in_content']]);
  for await (const { digest } of h.blobs.list()) expect(digest).not.toBe(sha256(leak));
});

test('OW-06 another owner’s upload does not exist, even under one’s own site', async () => {
  const { path } = await begun({ 'index.html': page('mine') });
  const bob = await h.person('Bea');
  const own = await emptySite(bob);
  const borrowed = `/sites/${own}/uploads/${path.split('/').at(-1)}`;
  for (const [where, code] of [
    [path, 'site_not_found'],
    [borrowed, 'not_found'],
  ] as const) {
    const answers = [
      await h.call('GET', where, { as: bob }),
      await send(h, bob, where, page('mine')),
      await sendTar(bob, where, [{ name: sha256(page('mine')), content: page('mine') }]),
      await publish(bob, where),
    ];
    expect(answers.map(({ status, error }) => [status, error.code])).toEqual(answers.map(() => [404, code]));
  }
});

test('a dry run shows the result of a publication and changes nothing', async () => {
  const { site, path } = await begun({ 'index.html': page('dry') });
  const early = await publish(ada, path, { dryRun: true });
  expect(problemsOf(early)).toEqual([['index.html', 'missing']]);
  await send(h, ada, path, page('dry'));
  const dry = await publish(ada, path, { dryRun: true });
  expect(dry.data).toMatchObject({ status: 'active', version: { number: 1 } });
  expect((await h.call('GET', `/sites/${site}`, { as: ada })).data).toMatchObject({
    status: 'empty',
    version: null,
  });
  expect((await publish(ada, path)).data.version.number).toBe(1);
  const again = await publish(ada, path);
  expect([again.status, again.error.code]).toEqual([409, 'state_conflict']);
});

test('content that was removed with its last version after the upload began is requested at the publication', async () => {
  const kept = page('kept elsewhere');
  const elsewhere = await upload(h, ada, { 'index.html': kept });
  const { path, answer } = await begun({ 'index.html': kept, 'new.css': 'only{here:1}' });
  expect(answer.data.missing).toEqual([sha256('only{here:1}')]);
  expect((await send(h, ada, path, kept)).status).toBe(204);
  await send(h, ada, path, 'only{here:1}');
  await h.database.tx((tx) => contentStore(tx).release({ kind: 'user', id: ada.user.id }, [sha256(kept)]));
  expect(elsewhere.status).toBe(201);
  const early = await publish(ada, path);
  expect(problemsOf(early)).toEqual([['index.html', 'missing']]);
  expect((await h.call('GET', path, { as: ada })).data.missing).toEqual([sha256(kept)]);
  await send(h, ada, path, kept);
  expect((await publish(ada, path)).status).toBe(200);
});

test('UP-04 limits that were tightened meanwhile apply at the publication', async () => {
  const { path } = await begun({ 'index.html': page('x'.repeat(600)), 'more.css': 'p{}' });
  await send(h, ada, path, page('x'.repeat(600)));
  await send(h, ada, path, 'p{}');
  const { sitesConfig } = h.app.services.sitesServices;
  const before = await sitesConfig.read();
  const tight = { ...before.value.upload, maxFileBytes: 500, allowedExtensions: ['html'] };
  const set = await sitesConfig.put(systemAuditContext, before.etag, { ...before.value, upload: tight });
  const refused = await publish(ada, path);
  await sitesConfig.put(systemAuditContext, set.etag, before.value);
  expect(problemsOf(refused)).toEqual([
    ['index.html', 'file_too_large'],
    ['more.css', 'extension_not_allowed'],
  ]);
  expect((await publish(ada, path)).status).toBe(200);
});

test('UP-08 more than the quota can neither be announced nor published', async () => {
  const cleo = await h.person('Cleo');
  const { sitesConfig } = h.app.services.sitesServices;
  const before = await sitesConfig.read();
  const quotas = { ...before.value.quotas, bytesPerOwner: 1_000 };
  const { site, path } = await begun({ 'a.txt': 'a'.repeat(900) }, cleo);
  await send(h, cleo, path, 'a'.repeat(900));
  const set = await sitesConfig.put(systemAuditContext, before.etag, { ...before.value, quotas });
  const more = await start(h, cleo, site, { 'b.txt': 'b'.repeat(900) });
  expect([more.status, more.error.code]).toEqual([422, 'quota_exceeded']);
  expect((await publish(cleo, path)).status).toBe(200);
  await sitesConfig.put(systemAuditContext, set.etag, before.value);
  const next = await start(h, cleo, site, { 'b.txt': 'b'.repeat(900) });
  const nextPath = `/sites/${site}/uploads/${next.data.id}`;
  await send(h, cleo, nextPath, 'b'.repeat(900));
  const now = await sitesConfig.read();
  const reset = await sitesConfig.put(systemAuditContext, now.etag, { ...before.value, quotas });
  const refused = await publish(cleo, nextPath);
  await sitesConfig.put(systemAuditContext, reset.etag, before.value);
  expect([refused.status, refused.error.code]).toEqual([422, 'quota_exceeded']);
  expect((await h.call('GET', `/sites/${site}`, { as: cleo })).data.version.number).toBe(1);
});

test('with If-Match an upload is refused after another publication', async () => {
  const made = await upload(h, ada, { 'index.html': page('seen') });
  const { data } = await start(h, ada, made.data.id, { 'index.html': page('late') });
  const path = `/sites/${made.data.id}/uploads/${data.id}`;
  await send(h, ada, path, page('late'));
  const late = await publish(ada, path, {}, { 'if-match': '"another"' });
  expect([late.status, late.error.code]).toEqual([412, 'precondition_failed']);
  expect((await publish(ada, path, {}, { 'if-match': made.headers['etag'] })).status).toBe(200);
});

test('RV-02 EX-02 a key that was revoked, or has expired, publishes none of its uploads', async () => {
  for (const end of ['revoke', 'expire'] as const) {
    const mortal = await h.key(ada, { scopes: ['sites:write'], ttlHours: 1 });
    const { site, path } = await begun({ 'index.html': page(end) }, mortal);
    await send(h, mortal, path, page(end));
    if (end === 'revoke') await h.call('DELETE', `/me/tokens/${mortal.id}`, { as: ada });
    else h.clock.advance(3_600_000);
    const refused = await publish(mortal, path);
    expect([refused.status, refused.error.code]).toEqual([401, 'invalid_credential']);
    expect((await h.call('GET', `/sites/${site}`, { as: ada })).data.status).toBe('empty');
  }
});

test('a thousand announced files fit into a body, and a body beyond its limit is refused', async () => {
  const site = await emptySite();
  const many = Object.fromEntries(
    Array.from({ length: 5_000 }, (_, at) => [`folder/file-${at}.html`, `${at}`]),
  );
  const started = await h.call('POST', `/sites/${site}/uploads`, {
    as: ada,
    body: { files: announced(many) },
  });
  expect(started.data.missing).toHaveLength(5_000);
  const huge = await h.call('POST', `/sites/${site}/uploads`, {
    as: ada,
    body: { files: {}, more: 'x'.repeat(4 * 1024 * 1024) },
  });
  expect([huge.status, huge.error.code]).toEqual([413, 'body_too_large']);
});

test('an upload lives for 24 hours, and a site has ten at most', async () => {
  const { site, path } = await begun({ 'index.html': page('slow') }, key);
  h.clock.advance(day - 1);
  expect((await h.call('GET', path, { as: key })).status).toBe(200);
  h.clock.advance(1);
  expect((await h.call('GET', path, { as: key })).status).toBe(404);
  const ids: string[] = [];
  for (let at = 0; at < 11; at += 1) {
    h.clock.advance(1);
    ids.push((await start(h, key, site, { 'index.html': page(String(at)) })).data.id);
  }
  const states = await Promise.all(
    ids.map((id) => h.call('GET', `/sites/${site}/uploads/${id}`, { as: key })),
  );
  expect(states.map(({ status }) => status)).toEqual([404, ...Array.from({ length: 10 }, () => 200)]);
});
