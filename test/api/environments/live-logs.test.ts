import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { KeyOptions, Person, TestKey } from '../../harness.ts';
import { openShop, page, type Shop } from './shop.ts';

/** A process and a build that write without an end. */
const processes = `version: 1
services:
  ticks:
    build: { image: 'node:24' }
    run: { command: node server.js, port: 8080 }
`;
const server = `
require('node:http').createServer((q, r) => r.end('ok')).listen(process.env.PORT);
setInterval(() => console.log('tick'), 100);
`;
const endless = `version: 1
services:
  web:
    build: { image: 'node:24', command: "while :; do echo tick; sleep 0.1; done" }
    static: {}
`;

let shop: Shop;
let port: number;
beforeAll(async () => {
  shop = await openShop();
  await shop.h.app.web.listen({ host: '127.0.0.1', port: 0 });
  ({ port } = shop.h.app.web.server.address() as AddressInfo);
  await shop.h.repository('acme/other');
  shop.repository.commit({ 'postern.yaml': endless, 'index.html': page('endless') }, 'builds');
  shop.repository.commit({ 'postern.yaml': processes, 'server.js': server }, 'runs');
});
afterAll(() => shop.close());

async function withEndlessBuild() {
  const { data } = await shop.create({ branch: 'builds', access: 'members' });
  await shop.h.app.jobs.runNow('environments');
  await shop.h.app.services.environmentServices.reconciler.idle();
  await shop.h.app.jobs.runNow('builds');
  const [build] = (await shop.call('GET', '/builds', { query: { environment: data.id } })).data;
  return { id: data.id as string, log: `/builds/${build.id}/logs` };
}

async function withProcess() {
  const { data } = await shop.create({ branch: 'runs', access: 'members' });
  await shop.settle(data.id);
  return { id: data.id as string, log: `/environments/${data.id}/logs` };
}

/** Opens a live log. Resolves with its first lines; `end` resolves with what came after them, when the response ends. */
async function follow(path: string, reader: Person | TestKey) {
  const { host, origin } = new URL('http://localhost:3000');
  const credential =
    'value' in reader
      ? { authorization: `Bearer ${reader.value}` }
      : { cookie: `__Host-postern_session=${reader.cookie}`, origin };
  const asked = request({
    port,
    path: `/api/v2${path}`,
    agent: false,
    headers: { host, accept: 'text/event-stream', ...credential },
  }).end();
  onTestFinished(() => void asked.destroy());
  const [response] = (await once(asked, 'response')) as [IncomingMessage];
  expect(response.statusCode).toBe(200);
  let first = '';
  while (!first.includes('"text":"tick"')) first += String((await once(response, 'data'))[0]);
  const end = text(response).then(
    (rest) => (rest.includes('event: end') ? 'ended' : 'closed'),
    () => 'cut',
  );
  return { end };
}

type Change = readonly [
  what: string,
  reader: KeyOptions | 'session',
  change: (reader: { person: Person; key: TestKey | null; id: string }) => Promise<{ status: number }>,
];

const everything: KeyOptions = { scopes: ['env:read', 'repos:read'] };

const changes: readonly Change[] = [
  ['the key is revoked', everything, (of) => shop.call('DELETE', `/tokens/${of.key?.id}`)],
  [
    'the key loses the scope',
    everything,
    ({ person: as, key: of }) =>
      shop.call('PATCH', `/me/tokens/${of?.id}`, { as, body: { scopes: ['repos:read'] } }),
  ],
  [
    'the key loses the repository',
    everything,
    ({ person: as, key: of }) =>
      shop.call('PATCH', `/me/tokens/${of?.id}`, {
        as,
        body: { repositoryAccess: { mode: 'selected', repositories: ['acme/other'] } },
      }),
  ],
  [
    'the user is disabled',
    'session',
    ({ person }) => shop.call('PATCH', `/users/${person.user.id}`, { body: { enabled: false } }),
  ],
  [
    'the user loses the role',
    'session',
    ({ person }) => shop.call('PATCH', `/users/${person.user.id}`, { body: { roles: [] } }),
  ],
  ['the session ends', 'session', ({ person }) => shop.call('POST', `/users/${person.user.id}/sign-out`, {})],
  [
    'the Environment becomes one of its creator alone',
    'session',
    ({ id }) => shop.call('PATCH', `/environments/${id}`, { body: { access: 'owner' } }),
  ],
];

let count = 0;

describe.each([
  ['the log of processes', withProcess],
  // Last, because nothing settles beside a build that does not end.
  ['the log of a build', withEndlessBuild],
] as const)('a live reader of %s is disconnected when', (_, open) => {
  let environment: { id: string; log: string };
  beforeAll(async () => {
    environment = await open();
  });

  test.each(changes)('%s', async (_what, reader, change) => {
    const person = await shop.h.person(`Reader${(count += 1)}`);
    const made = reader === 'session' ? null : await shop.h.key(person, reader);
    const { end } = await follow(environment.log, made ?? person);
    const { status } = await change({ person, key: made, id: environment.id });
    expect(status).toBeLessThan(300);
    expect(await end).toBe('cut');
  });
});
