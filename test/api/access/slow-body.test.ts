// @module-tag sql
import { type AddressInfo, connect, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemAuditContext } from '../../../src/core/caller.ts';
import { type Harness, openHarness, type Person } from '../../harness.ts';

/** Rights are judged when something is changed, not when the request began. */
let h: Harness;
let boss: Person;
beforeAll(async () => {
  h = await openHarness();
  boss = await h.person('Boss', { admin: true });
  await h.app.web.listen({ host: '127.0.0.1', port: 0 });
});
afterAll(() => h.close());

/** A request whose body stops after its first byte, until finish() sends the rest. */
async function begin(path: string, headers: string[], body: object) {
  const text = JSON.stringify(body);
  const { port } = h.app.web.server.address() as AddressInfo;
  const socket: Socket = connect({ host: '127.0.0.1', port });
  const head = [
    `POST /api/v2${path} HTTP/1.1`,
    'host: localhost:3000',
    'connection: close',
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(text)}`,
    ...headers,
  ];
  const admitted = new Promise<void>((resolve) => h.app.web.server.once('request', () => resolve()));
  socket.write(`${head.join('\r\n')}\r\n\r\n${text.slice(0, 1)}`);
  await admitted;
  // A request is authorized before its body is read; an answer to another client proves that this has happened.
  await h.call('GET', '/me/tokens', { as: boss });
  return async (): Promise<number> => {
    let answer = '';
    socket.on('data', (chunk) => (answer += chunk.toString()));
    socket.write(text.slice(1));
    await new Promise((resolve) => socket.once('close', resolve));
    return Number(answer.split(' ')[1]);
  };
}

const sessionOf = (person: Person) => [
  `cookie: __Host-postern_session=${person.cookie}`,
  'origin: http://localhost:3000',
];
const wish = { name: 'left behind', scopes: ['env:write'], repositoryAccess: { mode: 'all' } };

test('SO-05 an administrator who is disabled during a request gets nothing from it', async () => {
  const mallory = await h.person('Mallory', { admin: true });
  const finish = await begin('/tokens', sessionOf(mallory), wish);
  await h.app.services.identity.accounts.change(systemAuditContext, mallory.user.id, { enabled: false });
  await h.settle();
  expect([401, 403]).toContain(await finish());
  const { data } = await h.call('GET', '/tokens', { as: boss });
  expect(data).toEqual([]);
});

test('a key that is narrowed while its request is under way writes nothing', async () => {
  const key = await h.serviceKey({ scopes: ['repos:write'] });
  const finish = await begin('/repositories', [`authorization: Bearer ${key.value}`], {
    fullName: 'acme/late',
    cloneUrl: 'https://git.example.com/acme/late.git',
  });
  await h.call('PATCH', `/tokens/${key.id}`, { as: boss, body: { scopes: ['repos:read'] } });
  expect(await finish()).toBe(403);
  expect((await h.call('GET', '/repositories', { as: boss })).data).toEqual([]);
});

test('a request that keeps its rights is answered when its body arrives', async () => {
  const finish = await begin('/tokens', sessionOf(boss), wish);
  expect(await finish()).toBe(201);
});
