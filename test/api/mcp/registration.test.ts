// @module-tag sql
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { hour, minute, second } from '../../../src/core/clock.ts';
import { type Harness, type Person, uiOrigin } from '../../harness.ts';
import { Browser } from '../../identity.ts';
import { openFrozenHarness } from '../access/cast.ts';
import { connectAgent, fetchOf, setMcpPolicy } from './agent.ts';

/** MCP clients that register themselves (RFC 7591): what they get, and what they cannot get. */
let h: Harness;
let root: Person;
let ada: Person;
beforeAll(async () => {
  h = await openFrozenHarness();
  await setMcpPolicy(h);
  root = await h.person('Root', { admin: true });
  ada = await h.person('Ada');
});
beforeEach(() => {
  // The limit of sign-ins counts registrations of one address, too.
  h.clock.advance(2 * minute);
  vi.setSystemTime(h.clock.now());
  return setMcpPolicy(h, { clients: { registration: 'open', metadataHosts: [] } });
});
afterAll(async () => {
  vi.useRealTimers();
  await h.close();
});

const redirect = 'http://127.0.0.1:45123/callback';
const register = async (body: unknown, from = fetchOf(h)) =>
  await from(`${uiOrigin}/identity/reg`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
const endpointIn = async (path: string) =>
  ((await (await fetchOf(h)(uiOrigin + path)).json()) as { registration_endpoint?: string })
    .registration_endpoint;

test('a client registers itself, a person sees that its name is unverified, and it then reads for the person', async () => {
  const agent = await connectAgent(h, 'Ada', { registersAs: 'Totally Official Postern' });
  expect(agent.clientId).toMatch(/^mcp_/);
  expect(agent.consent).toContain('Nobody has checked this name.');
  expect(agent.consent).toContain('Totally Official Postern');
  expect(agent.consent).toContain('127.0.0.1:45123');
  expect(await agent.use('get_context')).toMatchObject({ client: agent.clientId });
  const { data } = await h.call('GET', '/me/clients', { as: ada });
  expect(data).toMatchObject([{ clientId: agent.clientId, name: 'Totally Official Postern' }]);
  h.clock.advance(2 * hour);
  vi.setSystemTime(h.clock.now());
  expect((await connectAgent(h, 'Ada', { client: agent.clientId })).accessToken).not.toBe('');
});

test('a client gets access to the MCP endpoint only, and no secret, whatever it requests', async () => {
  const answer = await register({
    redirect_uris: [redirect, 'https://client.example/callback'],
    client_name: 'x',
    scope: 'openid admin sites:write',
    grant_types: ['client_credentials', 'urn:ietf:params:oauth:grant-type:device_code', 'implicit'],
    token_endpoint_auth_method: 'client_secret_basic',
    jwks_uri: 'http://169.254.169.254/latest',
    logo_uri: 'http://127.0.0.1/logo',
  });
  expect(answer.status).toBe(201);
  expect(await answer.json()).toEqual({
    client_id: expect.stringMatching(/^mcp_/),
    client_name: 'x',
    redirect_uris: [redirect, 'https://client.example/callback'],
    application_type: 'native',
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    token_endpoint_auth_method: 'none',
    scope: 'openid offline_access mcp',
  });
});

describe('MC-07 a registration is refused', () => {
  test.each([
    ['javascript:alert(1)'],
    ['data:text/html,x'],
    ['http://client.example/callback'],
    ['http://169.254.169.254/'],
    ['http://10.0.0.1/'],
    ['https://user:password@client.example/'],
    ['https://client.example/#fragment'],
    ['https://localhost/callback'],
    ['com.example.app:/callback'],
    [`https://client.example/${'x'.repeat(500)}`],
    [7],
  ])('with the redirect %j', async (uri) => {
    const answer = await register({ redirect_uris: [uri] });
    expect([answer.status, (await answer.json()) as unknown]).toEqual([
      400,
      { error: 'invalid_redirect_uri', error_description: expect.any(String) },
    ]);
  });

  test('without redirects, without JSON, and when it is large', async () => {
    for (const body of [{}, { redirect_uris: [] }, '', '[]', 'null', '{'])
      expect((await register(body)).status).toBe(400);
    expect((await register({ redirect_uris: [redirect], more: 'x'.repeat(9_000) })).status).toBe(413);
  });
});

describe('administrators', () => {
  const path = '/config/mcp/clients';
  type Listed = { clientId: string; name: string; status: string; confirmedAt: string | null };
  const listed = async (name: string) => {
    const { data } = await h.call('GET', path, { as: root });
    return (data.clients as Listed[]).find((client) => client.name === name);
  };
  const decide = (clientId: string, status: string) =>
    h.call('PATCH', `${path}/${clientId}`, { as: root, body: { status } });

  test('see every client, block it, and allow it again, from its next request on', async () => {
    const agent = await connectAgent(h, 'Ada', { registersAs: 'Code assistant' });
    await agent.use('get_context');
    expect(await listed('Code assistant')).toEqual({
      clientId: agent.clientId,
      name: 'Code assistant',
      redirectHosts: ['127.0.0.1:45123'],
      status: 'allowed',
      registeredAt: expect.any(String),
      confirmedAt: expect.any(String),
      lastUsedAt: expect.any(String),
      people: 1,
    });
    expect(await listed('postern-mcp')).toMatchObject({ status: 'allowed', registeredAt: null });
    expect((await decide(agent.clientId, 'blocked')).data).toMatchObject({ status: 'blocked' });
    await expect(agent.use('get_context')).rejects.toThrow(/client_not_allowed/);
    const other = await connectAgent(h, 'Ada');
    await other.use('get_context');
    await decide(agent.clientId, 'allowed');
    await agent.use('get_context');
    await decide('postern-mcp', 'blocked');
    await expect(other.use('get_context')).rejects.toThrow(/client_not_allowed/);
    await decide('postern-mcp', 'allowed');
    expect((await decide('unheard-of', 'blocked')).status).toBe(404);
    const { events } = await h.app.services.audit.search(
      { event: 'config.mcp.client_changed', target: agent.clientId },
      undefined,
      10,
    );
    expect(events.map(({ reason }) => reason)).toEqual(['allowed', 'blocked']);
  });

  test.each([
    ['once it hears of it', (other: Harness) => other.app.services.feed.poll()],
    ['once it has heard nothing for a second', async () => h.clock.advance(second + 1)],
  ])('block a client in another process as well, %s', async (_when, pass) => {
    const { accessToken, clientId } = await connectAgent(h, 'Ada', { registersAs: 'Elsewhere' });
    const other = await h.another();
    const statusThere = async () => {
      const headers = { authorization: `Bearer ${accessToken}`, 'content-type': 'application/json' };
      return (await fetchOf(other)(`${uiOrigin}/mcp`, { method: 'POST', headers, body: '{}' })).status;
    };
    await other.app.services.feed.poll();
    expect(await statusThere()).toBe(400);
    await decide(clientId, 'blocked');
    await pass(other);
    expect(await statusThere()).toBe(403);
    await other.close();
  });

  test('must allow each new client if the policy requires it; earlier clients keep their access', async () => {
    const before = await connectAgent(h, 'Ada', { registersAs: 'From before' });
    await setMcpPolicy(h, { clients: { registration: 'approval', metadataHosts: [] } });
    await before.use('get_context');
    await expect(connectAgent(h, 'Ada', { registersAs: 'New here' })).rejects.toThrow(/HTTP 403/);
    const client = await listed('New here');
    expect(client).toMatchObject({ status: 'waiting', confirmedAt: expect.any(String) });
    expect((await h.call('GET', path, { as: root })).data.clients[0]).toEqual(client);
    const id = client?.clientId ?? '';
    await decide(id, 'allowed');
    await (await connectAgent(h, 'Ada', { client: id })).use('get_context');
  });

  test('a client without access to any account is removed; a blocked one stays blocked', async () => {
    const pruned = () => h.app.services.mcpClients.prune(h.app.services.provider ?? nothing);
    const [used, left, bad] = [
      await connectAgent(h, 'Ada', { registersAs: 'Used' }),
      await connectAgent(h, 'Ada', { registersAs: 'Left' }),
      await connectAgent(h, 'Ada', { registersAs: 'Bad' }),
    ];
    await register({ redirect_uris: [redirect], client_name: 'Never allowed' });
    await decide(bad.clientId, 'blocked');
    for (const { clientId } of [left, bad]) await h.call('DELETE', `/me/clients/${clientId}`, { as: ada });
    await pruned();
    expect(await listed('Left')).toBeDefined();
    h.clock.advance(2 * hour + minute);
    vi.setSystemTime(h.clock.now());
    await pruned();
    expect([await listed('Left'), await listed('Never allowed')]).toEqual([undefined, undefined]);
    expect(await listed('Bad')).toMatchObject({ status: 'blocked' });
    expect(await listed('Used')).toMatchObject({ status: 'allowed' });
    const start = async (client_id: string) => {
      const query = new URLSearchParams({ client_id, response_type: 'code', redirect_uri: redirect });
      return (await fetchOf(h)(`${uiOrigin}/identity/auth?${query.toString()}`)).status;
    };
    expect([await start(left.clientId), await start(bad.clientId)]).toEqual([400, 400]);
    expect(await start(used.clientId)).not.toBe(400);
  });

  test('a client that an administrator blocks while clients are removed stays blocked', async () => {
    await register({ redirect_uris: [redirect], client_name: 'Late' });
    const id = (await listed('Late'))?.clientId ?? '';
    h.clock.advance(2 * hour + minute);
    vi.setSystemTime(h.clock.now());
    const removeClient = async (clientId: string) => {
      if (clientId === id) await decide(id, 'blocked');
    };
    await h.app.services.mcpClients.prune({ clientsInUse: async () => [], removeClient });
    expect(await listed('Late')).toMatchObject({ status: 'blocked' });
  });

  test('KF-03 a client cannot call itself a key', async () => {
    const { value } = await h.key(ada);
    const answer = await register({ redirect_uris: [redirect], client_name: value });
    expect(await answer.json()).toMatchObject({ client_name: 'MCP client' });
  });
});

const nothing = { clientsInUse: async () => [], removeClient: async () => undefined };

test('while it is closed, off or not yet set, no client can register, and no metadata names the endpoint', async () => {
  const paths = [
    '/identity/.well-known/openid-configuration',
    '/.well-known/oauth-authorization-server/identity',
    '/.well-known/oauth-authorization-server',
  ];
  for (const path of paths) expect(await endpointIn(path)).toBe(`${uiOrigin}/identity/reg`);
  for (const policy of [
    {},
    { enabled: false, clients: { registration: 'open' as const, metadataHosts: [] } },
  ]) {
    await setMcpPolicy(h, policy);
    expect((await register({ redirect_uris: [redirect] })).status).toBe(404);
    for (const path of paths) expect(await endpointIn(path)).toBeUndefined();
  }
});

test('a client without a consent is removed after an hour, and at most 200 of them wait', async () => {
  const { register: directly } = h.app.services.provider ?? {};
  if (directly === undefined) throw new Error('No built-in provider.');
  const first = (await directly({ redirect_uris: [redirect] })) as { client_id: string };
  let made = 1;
  while ((await directly({ redirect_uris: [redirect] })) !== null) made += 1;
  expect(made).toBeLessThanOrEqual(200);
  expect((await register({ redirect_uris: [redirect] })).status).toBe(429);
  h.clock.advance(hour + minute);
  vi.setSystemTime(h.clock.now());
  expect((await register({ redirect_uris: [redirect] })).status).toBe(201);
  const query = new URLSearchParams({
    client_id: first.client_id,
    response_type: 'code',
    redirect_uri: redirect,
  });
  expect((await fetchOf(h)(`${uiOrigin}/identity/auth?${query.toString()}`)).status).toBe(400);
});

test.each([
  ['no scope', null],
  ['an empty scope', ''],
  ['scopes that nobody knows', 'claudeai unknown'],
  ['openid alone', 'openid'],
])(
  'a client of an older revision that asks for %s may call tools once a person allowed it',
  async (_, scope) => {
    const agent = await connectAgent(h, 'Ada', { registersAs: 'Older agent', scope });
    expect(agent.consent).toContain('Older agent');
    expect(agent.consent).not.toContain('unknown unknown');
    expect(await agent.use('get_context')).toMatchObject({ person: { name: 'Ada' } });
    expect(agent.refreshToken).not.toBe('');
  },
);

test.each(['', 'unknown'])(
  'a program that asks for the scope "%s" is refused before a page is shown',
  async (scope) => {
    const query = new URLSearchParams({
      client_id: 'postern-cli',
      redirect_uri: 'http://127.0.0.1:45123/callback',
      response_type: 'code',
      scope,
      code_challenge: 'x'.repeat(43),
      code_challenge_method: 'S256',
    });
    const answer = await new Browser(h.app.web).get(`/identity/auth?${query.toString()}`);
    expect(new URL(answer.location ?? '').searchParams.get('error')).toBe('invalid_scope');
  },
);

test('no client can redirect to an address of Postern itself, on any port', async () => {
  for (const path of ['/auth/callback', '/anywhere']) {
    const answer = await register({ redirect_uris: [redirect, uiOrigin + path] });
    expect([answer.status, await answer.json()]).toMatchObject([400, { error: 'invalid_redirect_uri' }]);
  }
  const { hostname } = new URL(uiOrigin);
  const known = (await (
    await register({ redirect_uris: [`http://${hostname}:1/auth/callback`] })
  ).json()) as {
    client_id: string;
  };
  const query = new URLSearchParams({
    client_id: known.client_id,
    redirect_uri: `${uiOrigin}/auth/callback`,
    response_type: 'code',
    resource: `${uiOrigin}/mcp`,
    code_challenge: 'x'.repeat(43),
    code_challenge_method: 'S256',
  });
  const answer = await new Browser(h.app.web).get(`/identity/auth?${query.toString()}`);
  expect([answer.status, answer.location]).toEqual([400, undefined]);
});
