import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { hour, minute } from '../../../src/core/clock.ts';
import { type Harness, type Person, uiOrigin } from '../../harness.ts';
import { openFrozenHarness } from '../access/cast.ts';
import { connectAgent, fetchOf, setMcpPolicy } from './agent.ts';

/** MCP clients that register themselves (RFC 7591): what they get, and what they cannot get. */
let h: Harness;
let ada: Person;
beforeAll(async () => {
  h = await openFrozenHarness();
  ada = await h.person('Ada');
});
beforeEach(() => {
  // The limit of sign-ins counts registrations of one address, too.
  h.clock.advance(2 * minute);
  vi.setSystemTime(h.clock.now());
  return setMcpPolicy(h, { clients: { registration: 'open' } });
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

test('a client registers itself, a person sees that nobody checked its name, and it then reads for the person', async () => {
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

test('whatever it asks for, a client gets the MCP endpoint only, and no secret', async () => {
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

test('closed, off or at first, nothing can be registered, and no metadata names the endpoint', async () => {
  const paths = [
    '/identity/.well-known/openid-configuration',
    '/.well-known/oauth-authorization-server/identity',
  ];
  for (const path of paths) expect(await endpointIn(path)).toBe(`${uiOrigin}/identity/reg`);
  for (const policy of [{}, { enabled: false, clients: { registration: 'open' as const } }]) {
    await setMcpPolicy(h, policy);
    expect((await register({ redirect_uris: [redirect] })).status).toBe(404);
    for (const path of paths) expect(await endpointIn(path)).toBeUndefined();
  }
});

test('a client that nobody allowed anything is gone after an hour, and at most 200 of them wait', async () => {
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
