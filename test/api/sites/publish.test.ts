// @module-tag sql
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { systemAuditContext } from '../../../src/core/caller.ts';
import { day, hour } from '../../../src/core/clock.ts';
import { type Answer, type Harness, openHarness, type Person, type TestKey } from '../../harness.ts';
import { tarGzOf } from '../../archives/tar.ts';
import { archiveOf, formOf, page, replace, start, upload } from './uploads.ts';

let h: Harness;
let ada: Person;
let key: TestKey;
beforeAll(async () => {
  h = await openHarness({ changesPerMinute: 10_000 });
  ada = await h.person('Ada');
  key = await h.key(ada, { scopes: ['sites:write'] });
});
afterAll(() => h.close());

test('a ZIP becomes a private site that its owner reads, with a link, a receipt and an expiry', async () => {
  const made = await upload(h, ada, { 'index.html': page('one'), 'a/b.css': 'p{}' });
  expect(made.status).toBe(201);
  expect(made.data).toMatchObject({
    visibility: 'private',
    status: 'active',
    fileCount: 2,
    owner: { kind: 'user', id: ada.user.id, name: 'Ada' },
    link: `http://localhost:3000/s/${made.data.id}`,
    version: { number: 1 },
    expiresAt: '2026-01-31T00:00:00.000Z',
  });
  expect(made.data.id).toMatch(/^[a-z0-9]{10}$/);
  expect(made.data.url).toMatch(/^http:\/\/p-[a-z2-7]{17}\.sites\.localhost:3001\/$/);
  expect(made.headers['etag']).toBe(`"${made.data.version.digest}"`);
  const read = await h.call('GET', `/sites/${made.data.id}`, { as: ada });
  const { warnings: _warnings, leftOut: _leftOut, ...site } = made.data;
  expect(read.data).toEqual(site);
});

test('UP-07 a page, a tar.gz and a form are accepted like a ZIP', async () => {
  const html = await h.call('POST', '/sites', { as: key, raw: { type: 'text/html', bytes: page('alone') } });
  expect(html.data).toMatchObject({ fileCount: 1, name: expect.stringMatching(/^site /) });
  const tar = tarGzOf([{ name: 'index.html', content: page('tar') }]);
  const gzip = await h.call('POST', '/sites', { as: key, raw: { type: 'application/gzip', bytes: tar } });
  expect(gzip.status).toBe(201);
  const form = formOf([
    { name: 'file', fileName: 'My handbook.zip', value: archiveOf({ 'index.html': page('form') }).bytes },
    { name: 'visibility', value: 'public' },
    { name: 'ttlHours', value: '48' },
  ]);
  const sent = await h.call('POST', '/sites', { as: key, raw: form });
  expect(sent.data).toMatchObject({
    name: 'My handbook',
    visibility: 'public',
    expiresAt: '2026-01-03T00:00:00.000Z',
  });
});

test('a site can be created without content, and serves nothing until its first version', async () => {
  const empty = await h.call('POST', '/sites', { as: ada, body: { name: 'later' } });
  expect(empty.data).toMatchObject({ status: 'empty', version: null, fileCount: 0 });
  const filled = await replace(h, ada, empty.data.id, { 'index.html': page('now') });
  expect(filled.data).toMatchObject({ status: 'active', version: { number: 1 } });
});

test('a replacement is a new version, and every version can be restored', async () => {
  const made = await upload(h, key, { 'index.html': page('one') });
  const { id } = made.data;
  const next = await replace(h, key, id, { 'index.html': page('two'), 'new.txt': 'new' });
  expect(next.data.version.number).toBe(2);
  const ids = [made.data.version.id, next.data.version.id];
  expect(new Set(ids).size).toBe(2);
  const listed = (await h.call('GET', `/sites/${id}/versions`, { as: key })).data;
  expect(listed.map((version: { id: string }) => version.id)).toEqual(ids.toReversed());
  const one = await h.call('GET', `/sites/${id}/versions/1`, { as: key });
  expect(one.data.id).toBe(ids[0]);
  const back = await h.call('POST', `/sites/${id}/versions/1/publish`, { as: key });
  expect(back.data.version).toMatchObject({ number: 1, digest: made.data.version.digest });
  const forward = await h.call('POST', `/sites/${id}/versions/2/publish`, { as: key });
  expect(forward.data.version.number).toBe(2);
  const { data } = await h.call('GET', `/sites/${id}/versions`, { as: key });
  expect(
    data.map((version: { number: number; isLive: boolean }) => [version.number, version.isLive]),
  ).toEqual([
    [2, true],
    [1, false],
  ]);
});

test('with If-Match a publication is refused after another one', async () => {
  const made = await upload(h, key, { 'index.html': page('one') });
  const seen = made.headers['etag'] ?? '';
  await replace(h, key, made.data.id, { 'index.html': page('between') });
  const late = await replace(h, key, made.data.id, { 'index.html': page('late') }, { 'if-match': seen });
  expect([late.status, late.error.code]).toEqual([412, 'precondition_failed']);
});

test('UP-01 an invalid upload is refused as a whole, every file is named, and the live version stays', async () => {
  const made = await upload(h, key, { 'index.html': page('good') });
  const bad = await replace(h, key, made.data.id, {
    'index.html': page('worse'),
    '../evil.html': 'x',
    'a\\b.html': 'x',
    '.env': 'SECRET=1',
  });
  expect([bad.status, bad.error.code]).toEqual([422, 'upload_rejected']);
  expect(
    bad.error.details.files.map((file: { path: string; code: string }) => [file.path, file.code]),
  ).toEqual([
    ['../evil.html', 'bad_path'],
    ['a\\b.html', 'bad_path'],
    ['.env', 'private_file'],
  ]);
  const after = await h.call('GET', `/sites/${made.data.id}`, { as: key });
  expect(after.data.version).toEqual(made.data.version);
});

test('T37 an API key in the content refuses the upload, and its exposure is in the audit log', async () => {
  const refused = await upload(h, ada, { 'index.html': `<script>token="${key.value}"</script>` });
  expect([refused.status, refused.error.code]).toEqual([422, 'credential_in_content']);
  expect(refused.text).not.toContain(key.value);
  await h.app.services.alarms.flush();
  await h.app.services.denials.flush({ all: true });
  const boss = await h.person('Boss', { admin: true });
  const { data } = await h.call('GET', '/audit/events', { as: boss, query: { event: 'api_key.exposed' } });
  expect(data[0]?.target.id).toBe(key.id);
});

test('an upload beyond the limits is refused with the limit named', async () => {
  const large = 'x'.repeat(1_000);
  const { sitesConfig } = h.app.services.sitesServices;
  const before = await sitesConfig.read();
  const auditContext = {
    actor: { kind: 'system', id: null, name: 'test', credential: null },
    origin: { requestId: null, address: null, agent: null },
  } as const;
  const tight = { ...before.value.upload, maxUploadBytes: 2_000, maxFileBytes: 500, maxFiles: 3 };
  const set = await sitesConfig.put(auditContext, before.etag, { ...before.value, upload: tight });
  const file = await upload(h, ada, { 'index.html': large });
  expect(file.error.details.files).toEqual([
    { path: 'index.html', code: 'file_too_large', problem: 'is larger than 500 bytes' },
  ]);
  const many = await upload(h, ada, { 'a.html': '', 'b.html': '', 'c.html': '', 'd.html': '' });
  expect(many.error.details.files[0].problem).toContain('more than 3');
  const noise = Buffer.from(Array.from({ length: 4_000 }, (_, at) => (at * 7_919) % 251));
  const body = await h.call('POST', '/sites', { as: ada, raw: { type: 'text/html', bytes: noise } });
  expect([body.status, body.error.code, body.error.details]).toEqual([
    413,
    'upload_too_large',
    { maxUploadBytes: 2_000 },
  ]);
  await sitesConfig.put(auditContext, set.etag, before.value);
});

test.each(['{}', '{"name":"x"}', '{"broken'])('new content as JSON is 415: %s', async (bytes) => {
  const { id } = (await h.call('POST', '/sites', { as: ada, body: {} })).data;
  const raw = { type: 'application/json', bytes };
  const answer = await h.call('PUT', `/sites/${id}/content`, { as: ada, raw });
  expect([answer.status, answer.error.code]).toEqual([415, 'unsupported_media_type']);
  expect(answer.error.details.accepted).toEqual([
    'multipart/form-data',
    'application/zip',
    'application/gzip',
    'text/html',
  ]);
});

test('the answer distinguishes an invalid archive, a form without a file and an unknown type', async () => {
  const garbage = await h.call('POST', '/sites', {
    as: ada,
    raw: { type: 'application/zip', bytes: 'hello' },
  });
  expect(garbage.error).toMatchObject({ code: 'upload_rejected' });
  const empty = await h.call('POST', '/sites', { as: ada, raw: formOf([{ name: 'name', value: 'x' }]) });
  expect(empty.error).toMatchObject({ code: 'invalid_body', message: 'The form contains no file.' });
  const picture = await h.call('POST', '/sites', {
    as: ada,
    raw: formOf([{ name: 'file', fileName: 'logo.png', type: 'image/png', value: 'x' }]),
  });
  expect(picture.error).toMatchObject({
    code: 'unsupported_media_type',
    message: 'Postern cannot publish a file of this type. Send a .zip, .tar.gz or .html file.',
  });
  const png = await h.call('POST', '/sites', { as: ada, raw: { type: 'image/png', bytes: 'x' } });
  expect(png.error.code).toBe('unsupported_media_type');
  // Also one that is larger than a JSON body may be.
  const text = await h.call('POST', '/sites', {
    as: ada,
    raw: { type: 'text/plain', bytes: 'x'.repeat(100_000) },
  });
  expect([text.status, text.error.message]).toEqual([
    415,
    'The request has Content-Type text/plain; this route accepts multipart/form-data, application/zip, application/gzip, text/html, or application/json.',
  ]);
  expect(text.error.hint).not.toContain('json');
  const typo = await h.call('POST', '/sites', {
    as: ada,
    query: { visiblity: 'public' },
    raw: archiveOf({ 'index.html': 'x' }),
  });
  expect(typo.error.code).toBe('invalid_query');
});

test('one file is downloaded as an attachment that no browser runs', async () => {
  const made = await upload(h, ada, { 'index.html': page('safe'), 'a b/ü.html': '<script>1</script>' });
  const file = await h.call('GET', `/sites/${made.data.id}/files/a%20b/%C3%BC.html`, { as: ada });
  expect(file.text).toBe('<script>1</script>');
  expect(file.headers).toMatchObject({
    'content-type': 'application/octet-stream',
    'x-content-type-options': 'nosniff',
    'content-security-policy': "sandbox; default-src 'none'",
    'cross-origin-resource-policy': 'same-origin',
    'content-disposition': `attachment; filename="_.html"; filename*=UTF-8''%C3%BC.html`,
  });
  const { data } = await h.call('GET', `/sites/${made.data.id}/files`, { as: ada });
  expect(data.map(({ path }: { path: string }) => path)).toEqual(['a b/ü.html', 'index.html']);
  expect((await h.call('GET', `/sites/${made.data.id}/files/none.txt`, { as: ada })).status).toBe(404);
});

test('extending moves the expiry from now or from the expiry, up to the cap, and past it says so', async () => {
  const made = await upload(h, ada, { 'index.html': page('x') }, { ttlHours: '24' });
  const { id } = made.data;
  const once = await h.call('POST', `/sites/${id}/extend`, { as: ada });
  expect(once.data.expiresAt).toBe('2026-02-01T00:00:00.000Z');
  h.clock.advance(hour);
  const site = await h.call('POST', '/sites', { as: ada, query: {}, body: { ttlHours: 8_760 } });
  const capped = await h.call('POST', `/sites/${site.data.id}/extend`, { as: ada });
  expect([capped.status, capped.error.code]).toEqual([409, 'expiry_conflict']);
  const tooLong = await h.call('POST', '/sites', { as: ada, body: { ttlHours: 8_761 } });
  expect(tooLong.error).toMatchObject({ code: 'lifetime_too_long', details: { maxTtlHours: 8_760 } });
});

test('a publish keeps the site for the default lifetime from now, never shorter, and a preview does not', async () => {
  const short = await upload(h, ada, { 'index.html': page('a') }, { ttlHours: '24' });
  const long = await upload(h, ada, { 'index.html': page('b') }, { ttlHours: '8760' });
  const days = (answer: { data: { expiresAt: string } }) =>
    (Date.parse(answer.data.expiresAt) - h.clock.now()) / day;
  const read = async (id: string) => await h.call('GET', `/sites/${id}`, { as: ada });
  const { id } = short.data;
  await h.call('POST', `/sites/${id}/versions/1/preview`, { as: ada });
  expect(days(await read(id))).toBe(1);
  expect(days(await replace(h, ada, id, { 'index.html': page('c') }))).toBe(30);
  expect(days(await replace(h, ada, long.data.id, { 'index.html': page('d') }))).toBe(365);
  h.clock.advance(hour);
  expect(days(await h.call('POST', `/sites/${id}/versions/1/publish`, { as: ada }))).toBe(30);
  const boss = await h.person('Boss of sites', { admin: true });
  const query = { target: id, event: 'site.rolled_back' };
  const [event] = (await h.call('GET', '/audit/events', { as: boss, query })).data;
  const { details } = (await h.call('GET', `/audit/events/${event.id}`, { as: boss })).data;
  expect(details.expiresAt).toBe((await read(id)).data.expiresAt);
});

test('a publish sets the lifetime that it asks for, up to the maximum', async () => {
  const { data } = await upload(h, ada, { 'index.html': page('a') });
  const publish = async (ttlHours: string) =>
    await h.call('PUT', `/sites/${data.id}/content`, {
      as: ada,
      query: { ttlHours },
      raw: archiveOf({ 'index.html': page('a') }),
    });
  expect(Date.parse((await publish('48')).data.expiresAt) - h.clock.now()).toBe(48 * hour);
  expect((await publish('8761')).error.code).toBe('lifetime_too_long');
  const files = { 'index.html': page('a') };
  const begun = await start(h, ada, data.id, files);
  const at = `/sites/${data.id}/uploads/${begun.data.id}/publish`;
  const sent = await h.call('POST', at, { as: ada, body: { ttlHours: 72 } });
  expect(Date.parse(sent.data.expiresAt) - h.clock.now()).toBe(72 * hour);
});

test.each(['site.zip', 'page.html', 'site.tar.gz'])(
  'T51 a form that stops inside %s is answered without waiting',
  async (fileName) => {
    const { type, bytes } = formOf([{ name: 'file', fileName, value: 'x'.repeat(1_000) }]);
    const cut = await h.call('POST', '/sites', { as: ada, raw: { type, bytes: bytes.subarray(0, 500) } });
    expect([cut.status, cut.error.code]).toEqual([408, 'request_timeout']);
  },
);

test('with If-Match a roll-back is refused after another publication', async () => {
  const made = await upload(h, key, { 'index.html': page('one') });
  const { id } = made.data;
  const second = await replace(h, key, id, { 'index.html': page('two') });
  const back = (etag: string | undefined) =>
    h.call('POST', `/sites/${id}/versions/1/publish`, { as: key, headers: { 'if-match': etag ?? '' } });
  for (const stale of [made.headers['etag'], '"another"', '']) {
    const late = await back(stale);
    expect([stale, late.status, late.error?.code]).toEqual([stale, 412, 'precondition_failed']);
  }
  expect((await h.call('GET', `/sites/${id}`, { as: key })).data.version.number).toBe(2);
  const done = await back(second.headers['etag']);
  expect([done.status, done.data.version.number]).toEqual([200, 1]);
});

describe('extensions of files', () => {
  const files = {
    'index.html': page('x'),
    'objects.inv': 'x',
    'rss.xsl': '<x/>',
    'lab.ipynb': '{}',
    'run.exe': 'MZ',
    LICENSE: 'x',
  };
  /** Publishes under these lists. */
  async function published(
    lists: { allowedExtensions?: string[]; forbiddenExtensions?: string[] },
    sent = files,
  ) {
    const { sitesConfig } = h.app.services.sitesServices;
    const before = await sitesConfig.read();
    const next = { ...before.value, upload: { ...before.value.upload, ...lists } };
    const { etag } = await sitesConfig.put(systemAuditContext, before.etag, next);
    const answer = await upload(h, ada, sent, { visibility: 'public' });
    await sitesConfig.put(systemAuditContext, etag, before.value);
    return answer;
  }
  const refused = ({ error }: Answer) => error.details.files.map(({ path }: { path: string }) => path);

  test('T44 any extension is published by default, and one that the gateway does not know is a download', async () => {
    const { status, data } = await upload(h, ada, files, { visibility: 'public' });
    expect(status).toBe(201);
    for (const name of ['objects.inv', 'run.exe']) {
      expect((await h.open(data.url + name)).headers).toMatchObject({
        'content-type': 'application/octet-stream',
        'content-disposition': 'attachment',
        'x-content-type-options': 'nosniff',
      });
    }
  });

  test('a list of allowed extensions refuses all others, and a list of forbidden ones refuses its own', async () => {
    expect(refused(await published({ allowedExtensions: ['html', 'inv', 'xsl'] }))).toEqual([
      'lab.ipynb',
      'run.exe',
    ]);
    expect(refused(await published({ forbiddenExtensions: ['exe', 'inv'] }))).toEqual([
      'objects.inv',
      'run.exe',
    ]);
    const both = { allowedExtensions: ['html', 'exe'], forbiddenExtensions: ['exe'] };
    expect(refused(await published(both))).toEqual(['objects.inv', 'rss.xsl', 'lab.ipynb', 'run.exe']);
  });
});
