// @module-tag sql
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { readdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { hour, minute } from '../../../src/core/clock.ts';
import { zipOf } from '../../archives/zip.ts';
import { type Harness, openHarness, type Person, type TestKey } from '../../harness.ts';
import { page, upload } from './uploads.ts';

let h: Harness;
let ada: Person;
let port: number;
beforeAll(async () => {
  h = await openHarness();
  ada = await h.person('Ada');
  await h.app.web.listen({ host: '127.0.0.1', port: 0 });
  ({ port } = h.app.web.server.address() as AddressInfo);
});
afterAll(() => h.close());

/** Sends a replacement in two halves, with `meanwhile` between them. */
async function replaceInHalves(id: string, key: TestKey, meanwhile: () => Promise<unknown>) {
  const bytes = zipOf([{ name: 'index.html', content: page('too late') }]);
  const temporaryFiles = join(dirname(dirname(h.incoming)), 'uploads-0');
  const sent = request({
    port,
    method: 'PUT',
    path: `/api/v2/sites/${id}/content`,
    headers: {
      host: 'localhost:3000',
      authorization: `Bearer ${key.value}`,
      'content-type': 'application/zip',
      'content-length': bytes.length,
    },
  });
  const answered = once(sent, 'response');
  sent.write(bytes.subarray(0, 50));
  await expect.poll(() => readdir(temporaryFiles)).not.toEqual([]);
  await meanwhile();
  sent.end(bytes.subarray(50));
  const [response] = (await answered) as [IncomingMessage];
  response.resume();
  return response.statusCode;
}

test.each(['RV-02 is revoked', 'EX-02 expires'])(
  '%s: a key whose upload is under way publishes nothing',
  async (end) => {
    const key = await h.key(ada, { scopes: ['sites:write'], ttlHours: 1 });
    const made = await upload(h, key, { 'index.html': page('before') });
    const status = await replaceInHalves(made.data.id, key, async () => {
      if (end.startsWith('EX')) h.clock.advance(hour);
      else await h.call('DELETE', `/me/tokens/${key.id}`, { as: ada });
    });
    expect(status).toBe(401);
    const after = await h.call('GET', `/sites/${made.data.id}`, { as: ada });
    expect(after.data.version).toEqual(made.data.version);
  },
);

test.each([
  ['/content', 'application/zip'],
  ['/content', 'multipart/form-data; boundary=x'],
  ['/uploads/upl_none/blobs', 'application/x-tar'],
  [`/uploads/upl_none/blobs/${'0'.repeat(64)}`, 'application/octet-stream'],
])(
  'T51 a refused upload to %s of %s whose client stops sending is disconnected, and leaves the server unchanged',
  async (where, type) => {
    const key = await h.key(ada, { scopes: ['sites:write'] });
    const made = await upload(h, key, { 'index.html': page('before') });
    await h.call('DELETE', `/sites/${made.data.id}`, { as: key });
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    try {
      const sent = request({
        port,
        method: 'PUT',
        path: `/api/v2/sites/${made.data.id}${where}`,
        headers: {
          host: 'localhost:3000',
          authorization: `Bearer ${key.value}`,
          'content-type': type,
          'content-length': 620_000,
        },
      });
      sent.write(Buffer.alloc(100_000));
      const [response] = (await once(sent, 'response')) as [IncomingMessage];
      expect(response.statusCode).toBe(409);
      response.resume();
      const cut = once(sent, 'close');
      sent.on('error', () => undefined);
      vi.advanceTimersByTime(minute);
      await cut;
    } finally {
      vi.useRealTimers();
    }
    // An unhandled error ends the process, and this run with it.
    expect((await h.call('GET', `/sites/${made.data.id}`, { as: ada })).status).toBe(200);
  },
);

test('GW-06 Sites switched off while an upload runs publishes nothing', async () => {
  const key = await h.key(ada, { scopes: ['sites:write'] });
  const made = await upload(h, key, { 'index.html': page('before') });
  const { sitesConfig } = h.app.services.sitesServices;
  const auditContext = {
    actor: { kind: 'system', id: null, name: 'test', credential: null },
    origin: { requestId: null, address: null, agent: null },
  } as const;
  const before = await sitesConfig.read();
  let etag = '';
  const status = await replaceInHalves(made.data.id, key, async () => {
    ({ etag } = await sitesConfig.put(auditContext, before.etag, { ...before.value, enabled: false }));
  });
  expect(status).toBe(403);
  await sitesConfig.put(auditContext, etag, before.value);
  const after = await h.call('GET', `/sites/${made.data.id}`, { as: ada });
  expect(after.data.version).toEqual(made.data.version);
});
