import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { hour, minute } from '../../../src/core/clock.ts';
import type { McpPolicy } from '../../../src/features/agents/mcp-policy.ts';
import { DocumentRefused } from '../../../src/platform/public-document.ts';
import { type Harness, type Person, uiOrigin } from '../../harness.ts';
import { Browser } from '../../identity.ts';
import { openFrozenHarness } from '../access/cast.ts';
import { connectAgent, fetchOf, setMcpPolicy } from './agent.ts';

/** MCP clients whose id is the address of their metadata: which documents are read, and what such a client gets. */
let h: Harness;
let root: Person;
const fetched: string[] = [];
const documents = new Map<string, unknown>();
const redirect = 'http://127.0.0.1:45123/callback';

beforeAll(async () => {
  h = await openFrozenHarness({
    async readDocument(url) {
      fetched.push(url.href);
      const found = documents.get(url.href);
      if (found === undefined)
        throw new DocumentRefused('is answered with the status 404, and must be with 200');
      return { text: typeof found === 'string' ? found : JSON.stringify(found), cacheControl: 'max-age=1' };
    },
  });
  await setMcpPolicy(h);
  root = await h.person('Root', { admin: true });
  await h.person('Ada');
});
/** The library caches documents, so each test has separate clients. */
let count = 0;
let id = '';
beforeEach(async () => {
  count += 1;
  id = `https://client.example/agents/${count}.json`;
  fetched.length = 0;
  documents.clear();
  h.clock.advance(2 * minute);
  vi.setSystemTime(h.clock.now());
  await listing();
});
afterAll(async () => {
  vi.useRealTimers();
  await h.close();
});

const listing = (clients: Partial<McpPolicy['clients']> = {}, more: Partial<McpPolicy> = {}) =>
  setMcpPolicy(h, {
    clients: { registration: 'open', metadataHosts: ['client.example'], ...clients },
    ...more,
  });
const describes = (more: Record<string, unknown> = {}, at = id) =>
  documents.set(at, { client_id: at, client_name: 'Document agent', redirect_uris: [redirect], ...more });
/** The start of a sign-in, as a browser sees it. */
const start = async (more: Record<string, string> = {}) => {
  const query = new URLSearchParams({
    client_id: id,
    response_type: 'code',
    redirect_uri: redirect,
    scope: 'mcp',
    resource: `${uiOrigin}/mcp`,
    code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
    code_challenge_method: 'S256',
    ...more,
  });
  const answer = await new Browser(h.app.web).get(`/identity/auth?${query.toString()}`);
  return { status: answer.status, location: answer.location ?? '', text: answer.text };
};
const metadata = async () =>
  (await (await fetchOf(h)(`${uiOrigin}/identity/.well-known/openid-configuration`)).json()) as Record<
    string,
    unknown
  >;
const listed = async () => {
  const { data } = await h.call('GET', '/config/mcp/clients', { as: root });
  return (data.clients as { clientId: string; status: string }[]).find(({ clientId }) => clientId === id);
};

test('a client describes itself: the person sees an unverified name and the redirect host, an administrator sees the client', async () => {
  describes({ scope: 'openid admin', grant_types: ['client_credentials'], jwks_uri: 'http://127.0.0.1/' });
  const agent = await connectAgent(h, 'Ada', { client: id });
  expect(agent.consent).toContain('Nobody has checked this name.');
  expect(agent.consent).toContain('Document agent');
  expect(agent.consent).toContain('127.0.0.1:45123');
  expect(await agent.use('get_context')).toMatchObject({ client: id });
  expect(await listed()).toMatchObject({
    name: 'Document agent',
    redirectHosts: ['127.0.0.1:45123'],
    status: 'allowed',
    registeredAt: expect.any(String),
    confirmedAt: expect.any(String),
    people: 1,
  });
  expect(new Set(fetched)).toEqual(new Set([id]));
  fetched.length = 0;
  const ada = await h.person('Bea');
  await connectAgent(h, 'Bea', { client: id });
  expect((await h.call('GET', '/me/clients', { as: ada })).data).toMatchObject([
    { clientId: id, name: 'Document agent', scopes: ['mcp'] },
  ]);
  expect(fetched).toEqual([]);
  const blocked = await h.call('PATCH', `/config/mcp/clients/${encodeURIComponent(id)}`, {
    as: root,
    body: { status: 'blocked' },
  });
  expect(blocked.data).toMatchObject({ clientId: id, status: 'blocked' });
  await expect(agent.use('get_context')).rejects.toThrow(/client_not_allowed/);
});

test('with approval, a new client waits for an administrator', async () => {
  await listing({ registration: 'approval' });
  describes();
  await expect(connectAgent(h, 'Ada', { client: id })).rejects.toThrow(/HTTP 403/);
  expect(await listed()).toMatchObject({ status: 'waiting' });
});

test('with approval, a client that a person allows again while clients are removed still waits', async () => {
  await listing({ registration: 'approval' });
  describes();
  const isRefused = () => expect(connectAgent(h, 'Ada', { client: id })).rejects.toThrow(/HTTP 403/);
  await isRefused();
  h.clock.advance(2 * hour + minute);
  vi.setSystemTime(h.clock.now());
  // The consents were read before the person allowed the client again.
  const removeClient = async (clientId: string) => {
    if (clientId === id) await isRefused();
  };
  await h.app.services.mcpClients.prune({ clientsInUse: async () => [], removeClient });
  expect(await listed()).toMatchObject({ status: 'waiting' });
  await isRefused();
});

test('no document is read from an unlisted host, while the registration is closed, or while /mcp is off', async () => {
  describes();
  for (const [change, isNamed] of [
    [() => listing({ metadataHosts: [] }), undefined],
    [() => listing({ metadataHosts: ['other.example', 'client.example.org'] }), true],
    [() => listing({ registration: 'closed' }), undefined],
    [() => listing({}, { enabled: false }), undefined],
  ] as const) {
    await change();
    expect((await start()).status).toBe(400);
    expect((await metadata())['client_id_metadata_document_supported']).toBe(isNamed);
  }
  expect(fetched).toEqual([]);
  await listing();
  expect((await metadata())['client_id_metadata_document_supported']).toBe(true);
  expect((await start()).status).toBe(303);
  // Read once, it is refused all the same when its host is no longer listed.
  await listing({ metadataHosts: [] });
  expect((await start()).status).toBe(400);
});

test.each([
  ['https://client.example:8443/a.json'],
  ['https://sub.client.example/a.json'],
  ['https://client.example.evil.example/a.json'],
  ['https://user@client.example/a.json'],
  ['https://client.example/a/../b.json'],
  ['https://client.example/a.json#part'],
  ['https://CLIENT.example/a.json'],
  ['https://client.example/'],
  ['http://client.example/a.json'],
  ['https://127.0.0.1/a.json'],
  [`https://client.example/${'x'.repeat(300)}`],
])('MC-07 no document is read for the client id %s', async (clientId) => {
  describes({}, clientId);
  expect((await start({ client_id: clientId })).status).toBe(400);
  expect(fetched).toEqual([]);
});

test.each([
  ['is missing', undefined],
  ['is no JSON', '{'],
  ['is a list', []],
  ['has another client_id', { client_id: 'https://client.example/other.json' }],
  ['has a redirect to a script', { redirect_uris: ['javascript:alert(1)'] }],
  ['has a redirect to a private address', { redirect_uris: ['http://10.0.0.1/callback'] }],
  ['has no redirect', { redirect_uris: [] }],
])(
  'MC-07 a document that %s is refused, and an administrator finds the reason in the log',
  async (_title, sent) => {
    if (typeof sent === 'string' || Array.isArray(sent)) documents.set(id, sent);
    else if (sent !== undefined) describes(sent);
    expect((await start()).status).toBe(400);
    const said = h.logged.filter((line) => line.includes(id) && line.includes('metadata document'));
    expect(said.join()).toContain('"reason":"The document ');
    expect(await listed()).toBeUndefined();
  },
);

test('a client gets neither another redirect, nor another resource, nor more scopes, nor the device flow', async () => {
  describes();
  expect((await start({ redirect_uri: 'https://evil.example/' })).status).toBe(400);
  expect((await start({ scope: 'openid admin sites:write' })).location).toContain('error=invalid_scope');
  expect((await start({ resource: `${uiOrigin}/api/v2` })).location).toContain('error=invalid_target');
  const device = await fetchOf(h)(`${uiOrigin}/identity/device/auth`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ client_id: id, scope: 'mcp', resource: `${uiOrigin}/mcp` }),
  });
  expect(await device.json()).toMatchObject({
    error_description: 'urn:ietf:params:oauth:grant-type:device_code is not allowed for this client',
  });
});

test('one address causes at most ten fetches in a minute', async () => {
  const statuses: number[] = [];
  for (let number = 0; number < 12; number += 1) {
    const clientId = `https://client.example/many/${number}.json`;
    describes({}, clientId);
    statuses.push((await start({ client_id: clientId })).status);
  }
  expect(fetched).toHaveLength(10);
  expect(statuses.slice(9)).toEqual([303, 400, 400]);
});
