// @module-tag sql
import { randomBytes } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { type AddressInfo, connect } from 'node:net';
import { PassThrough } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemAuditContext } from '../../../src/core/caller.ts';
import { takeBlob } from '../../../src/features/sites/content/receive-blob.ts';
import { lookBudget } from '../../../src/features/sites/content/key-scan.ts';
import { type Harness, openHarness, type Person } from '../../harness.ts';
import { archiveOf, page, replace, send, sha256, start, upload } from './uploads.ts';

/** Contents that came and are not published: how much of them there may be, and what they tell. */
let h: Harness;
let ada: Person;
beforeAll(async () => {
  h = await openHarness({ changesPerMinute: 10_000 });
  ada = await h.person('Ada');
  const { sitesConfig } = h.app.services.sitesServices;
  const { etag, value } = await sitesConfig.read();
  const quotas = { ...value.quotas, bytesPerOwner: 3_000_000 };
  const limits = { ...value.upload, maxUploadBytes: 2_000_000 };
  await sitesConfig.put(systemAuditContext, etag, { ...value, quotas, upload: limits });
});
afterAll(() => h.close());

const emptySite = async (owner: Person) => (await h.call('POST', '/sites', { as: owner, body: {} })).data.id;

test('T51 digest uploads that end unpublished fill the disk no further than the quota and one archive', async () => {
  const bo = await h.person('Bo');
  const site = await emptySite(bo);
  const codes: (string | number)[] = [];
  for (let round = 0; round < 4; round++) {
    const big = randomBytes(2_000_000);
    const { id } = (await start(h, bo, site, { 'a.txt': big })).data;
    const sent = await send(h, bo, `/sites/${site}/uploads/${id}`, big);
    codes.push(sent.error?.code ?? sent.status);
    // Ten more end the first, and with it what its quota counted.
    for (let nth = 0; nth < 10; nth++) {
      h.clock.advance(1);
      await start(h, bo, site, { 'x.txt': `tiny ${round} ${nth}` });
    }
  }
  expect(codes).toEqual([204, 204, 'quota_exceeded', 'quota_exceeded']);
  let onDisk = 0;
  for await (const { digest } of h.blobs.list()) onDisk += (await buffer(await h.blobs.read(digest))).length;
  expect(onDisk).toBeLessThanOrEqual(5_000_000);
});

test('repeated attempts with the same content do not affect the next publication', async () => {
  const eve = await h.person('Eve');
  const files = { 'index.html': page('x'), 'a.txt': randomBytes(400_000).toString('hex') };
  const fresh = () => h.call('POST', '/sites', { as: eve, query: { dryRun: 'true' }, raw: archiveOf(files) });
  for (let nth = 0; nth < 8; nth++) expect((await fresh()).status).toBe(201);
  const made = await upload(h, eve, files);
  expect(made.status).toBe(201);
  const again = { as: eve, query: { dryRun: 'true' }, raw: archiveOf(files) };
  for (let nth = 0; nth < 8; nth++)
    expect((await h.call('PUT', `/sites/${made.data.id}/content`, again)).status).toBe(200);
  expect((await replace(h, eve, made.data.id, { ...files, 'index.html': page('y') })).status).toBe(200);
});

test('T50 the answer to wrong bytes is the same, whether the announced ones are being removed or unknown', async () => {
  const words = 'what only someone else had '.repeat(50);
  const site = await emptySite(ada);
  await h.app.services.read.content.decideRemovals([sha256(words)], h.clock.now());
  const files = Object.fromEntries(
    [sha256(words), sha256('nobody')].map((digest, nth) => [`${nth}.txt`, { sha256: digest, size: 7 }]),
  );
  const { id } = (await h.call('POST', `/sites/${site}/uploads`, { as: ada, body: { files } })).data;
  const answers: unknown[] = [];
  for (const { sha256: digest } of Object.values(files)) {
    const { status, error } = await send(h, ada, `/sites/${site}/uploads/${id}`, 'garbage', digest);
    answers.push([status, error.code, error.details.files[0].code]);
  }
  expect(answers).toEqual([
    [422, 'upload_rejected', 'wrong_content'],
    [422, 'upload_rejected', 'wrong_content'],
  ]);
});

test('content that was being removed while it arrived must be sent again', async () => {
  const words = 'going and coming back '.repeat(50);
  const site = await emptySite(ada);
  const { id } = (await start(h, ada, site, { 'a.txt': words })).data;
  const { content } = h.app.services.read;
  const { goingAmong } = content;
  Object.assign(content, { goingAmong: async (digests: string[]) => digests });
  const sent = await send(h, ada, `/sites/${site}/uploads/${id}`, words);
  Object.assign(content, { goingAmong });
  expect([sent.status, sent.error.code]).toEqual([503, 'store_unavailable']);
  const state = await h.call('GET', `/sites/${site}/uploads/${id}`, { as: ada });
  expect(state.data.missing).toEqual([sha256(words)]);
  expect((await send(h, ada, `/sites/${site}/uploads/${id}`, words)).status).toBe(204);
});

test('a content whose client disconnected before its first byte leaves nothing', async () => {
  const body = new PassThrough().on('error', () => undefined);
  body.write('half');
  body.destroy(new Error('the client went away'));
  const taking = takeBlob(
    body,
    { digest: sha256('half and half'), size: 13 },
    {
      write: h.blobs.write,
      format: h.app.services.format,
      onKey: () => undefined,
      budget: lookBudget(1_000),
    },
  );
  await expect(taking).rejects.toThrow('the client went away');
  expect(await readdir(h.incoming)).toEqual([]);
});

test('T51 a client that disconnects before its answer ends the work on its archive', async () => {
  const { sites } = h.app.services.sitesServices;
  const { receive } = sites;
  let left: AbortSignal | undefined;
  Object.assign(sites, {
    receive: (...[caller, auditContext, sent]: Parameters<typeof receive>) => {
      left = sent.left;
      // Work that takes until the client is gone.
      return new Promise((_, reject) =>
        sent.left.addEventListener('abort', () => reject(sent.left.reason)),
      ).then(() => receive(caller, auditContext, sent));
    },
  });
  await h.app.web.listen({ host: '127.0.0.1', port: 0 });
  const { port } = h.app.web.server.address() as AddressInfo;
  const { bytes } = archiveOf({ 'index.html': 'x' });
  const socket = connect({ host: '127.0.0.1', port });
  const key = await h.key(ada, { scopes: ['sites:write'] });
  socket.write(
    `POST /api/v2/sites HTTP/1.1\r\nhost: localhost:3000\r\nauthorization: Bearer ${key.value}\r\ncontent-type: application/zip\r\ncontent-length: ${bytes.length}\r\n\r\n`,
  );
  socket.write(bytes);
  await expect.poll(() => left).toBeDefined();
  expect(left?.aborted).toBe(false);
  socket.destroy();
  await expect.poll(() => left?.aborted).toBe(true);
  Object.assign(sites, { receive });
});

test('a site without a version has no ETag that could match', async () => {
  const site = await emptySite(ada);
  for (const sent of ['"abc",', ',', '""'])
    expect(
      (
        await h.call('PUT', `/sites/${site}/content`, {
          as: ada,
          raw: archiveOf({ 'index.html': 'x' }),
          headers: { 'if-match': sent },
        })
      ).status,
    ).toBe(412);
});
