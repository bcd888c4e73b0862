import { type AddressInfo, connect } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemAuditContext } from '../../../src/core/caller.ts';
import { type Harness, openHarness } from '../../harness.ts';

// An upload that is refused before its end, on a connection that is used again, as a proxy does.
let h: Harness;
beforeAll(async () => {
  h = await openHarness();
  await h.app.web.listen({ host: '127.0.0.1', port: 0 });
});
afterAll(() => h.close());

test('the request after an upload that was too large is answered, on the same connection', async () => {
  const { sitesConfig } = h.app.services.sitesServices;
  const { value, etag } = await sitesConfig.read();
  const upload = { ...value.upload, maxUploadBytes: 100_000 };
  await sitesConfig.put(systemAuditContext, etag, { ...value, upload });
  const { value: key } = await h.serviceKey({ scopes: ['sites:write'] });
  const head = (line: string, ...more: string[]) =>
    `${[line, 'host: localhost:3000', `authorization: Bearer ${key}`, ...more].join('\r\n')}\r\n\r\n`;

  const { port } = h.app.web.server.address() as AddressInfo;
  const socket = connect({ host: '127.0.0.1', port });
  let answers = '';
  socket.on('data', (chunk: Buffer) => (answers += chunk.toString()));
  const statuses = () => [...answers.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status));

  const body = Buffer.alloc(4_000_000);
  const type = 'content-type: application/zip';
  socket.write(head('POST /api/v2/sites?visibility=public HTTP/1.1', type, `content-length: ${body.length}`));
  socket.write(body.subarray(0, 3_000_000));
  await expect.poll(statuses).toEqual([413]);
  socket.write(body.subarray(3_000_000));
  socket.write(head('GET /api/v2/auth/context HTTP/1.1'));
  await expect.poll(statuses).toEqual([413, 200]);
  socket.destroy();
});
