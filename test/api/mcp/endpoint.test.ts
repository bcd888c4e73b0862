import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { systemAuditContext } from '../../../src/core/caller.ts';
import { minute, second } from '../../../src/core/clock.ts';
import { defaultMcpPolicy } from '../../../src/features/agents/mcp-policy.ts';
import type { Harness, Person } from '../../harness.ts';
import { uiOrigin } from '../../harness.ts';
import { Browser } from '../../identity.ts';
import { commandLine, openFrozenHarness, setPolicy } from '../access/cast.ts';
import { type Agent, connectAgent, fetchOf, setMcpPolicy } from './agent.ts';

/** The MCP endpoint: who reaches it, with which token, and when it does not exist. */
let h: Harness;
let ada: Person;
let agent: Agent;
beforeAll(async () => {
  h = await openFrozenHarness();
  await setPolicy(h, { failedAuthenticationsPerMinute: 1_000 });
  await setMcpPolicy(h);
  ada = await h.person('Ada');
  agent = await connectAgent(h, 'Ada');
});
beforeEach(() => setMcpPolicy(h, { callsPerMinute: 1_000 }));
afterAll(async () => {
  vi.useRealTimers();
  await h.close();
});

const listTools = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} };
const send = async (
  token: string | null,
  {
    body = JSON.stringify(listTools),
    method = 'POST',
    headers = {},
  }: { body?: string | Buffer; method?: string; headers?: Record<string, string> } = {},
) =>
  await fetchOf(h)(`${uiOrigin}/mcp`, {
    method,
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...(token === null ? {} : { authorization: `Bearer ${token}` }),
      ...headers,
    },
    ...(method === 'POST' ? { body: body as string } : {}),
  });
// Parsed JSON; a wrong field name shows as a failing expectation.
// oxlint-disable-next-line typescript/no-explicit-any
const bodyOf = async (response: Response) => (await response.json()) as any;
const codeOf = async (response: Response) => (await bodyOf(response)).error?.code as unknown;

describe('while /mcp is off', () => {
  test.each([
    ['POST', '/mcp'],
    ['GET', '/mcp'],
    ['DELETE', '/mcp'],
    ['OPTIONS', '/mcp'],
    ['GET', '/.well-known/oauth-protected-resource'],
    ['GET', '/.well-known/oauth-protected-resource/mcp'],
  ])('%s %s answers 404, with and without a token', async (method, path) => {
    await setMcpPolicy(h, { enabled: false });
    for (const token of [null, agent.accessToken]) {
      const answer = await fetchOf(h)(uiOrigin + path, {
        method,
        headers: token === null ? {} : { authorization: `Bearer ${token}` },
      });
      expect(answer.status).toBe(404);
      expect(Object.fromEntries(answer.headers)).not.toHaveProperty('access-control-allow-origin');
    }
  });

  test('another process answers 404 within a second', async () => {
    const other = await h.another();
    expect((await fetchOf(other)(`${uiOrigin}/.well-known/oauth-protected-resource/mcp`)).status).toBe(200);
    await setMcpPolicy(h, { enabled: false });
    h.clock.advance(second + 1);
    expect((await fetchOf(other)(`${uiOrigin}/.well-known/oauth-protected-resource/mcp`)).status).toBe(404);
    await other.close();
  });

  test('the identity provider issues and renews no token for it', async () => {
    await setMcpPolicy(h, { enabled: false });
    const form = { client_id: 'postern-mcp', grant_type: 'refresh_token', refresh_token: agent.refreshToken };
    const program = { origin: '', accept: 'application/json' };
    const renew = async () => (await new Browser(h.app.web).post('/identity/token', form, program)).json();
    expect(await renew()).toMatchObject({ error: 'invalid_target' });
    expect(await authorizationError({ resource: `${uiOrigin}/mcp` })).toBe('invalid_target');
    await setMcpPolicy(h);
    expect(await renew()).toMatchObject({ scope: 'mcp', token_type: 'Bearer' });
  });
});

test('a tool that an administrator hides is gone from the next answer, in another process within a second', async () => {
  const other = await h.another();
  const hasListSites = async (process: Harness) => {
    const answer = await fetchOf(process)(`${uiOrigin}/mcp`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json',
        authorization: `Bearer ${agent.accessToken}`,
      },
      body: JSON.stringify(listTools),
    });
    const { tools } = (await bodyOf(answer)).result as { tools: { name: string }[] };
    return tools.some(({ name }) => name === 'list_sites');
  };
  expect([await hasListSites(h), await hasListSites(other)]).toEqual([true, true]);
  const tools = { ...defaultMcpPolicy.tools, list_sites: 'hidden' as const };
  await setMcpPolicy(h, { callsPerMinute: 1_000, tools });
  expect(await hasListSites(h)).toBe(false);
  h.clock.advance(second + 1);
  expect(await hasListSites(other)).toBe(false);
  await other.close();
});

/** The error with which the provider sends the browser back. */
async function authorizationError(more: Record<string, string>, clientId = 'postern-mcp') {
  const query = new URLSearchParams({
    client_id: clientId,
    redirect_uri: 'http://127.0.0.1:45123/callback',
    response_type: 'code',
    scope: 'openid offline_access mcp',
    prompt: 'consent',
    code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
    code_challenge_method: 'S256',
    ...more,
  });
  const { location } = await new Browser(h.app.web).get(`/identity/auth?${query.toString()}`);
  return new URL(location ?? '', uiOrigin).searchParams.get('error');
}

describe('tokens', () => {
  test('MC-01 without a token the answer names the metadata and the scope, and a page of any origin may read both', async () => {
    const answer = await send(null, { headers: { origin: 'https://inspector.example' } });
    expect(answer.status).toBe(401);
    expect(answer.headers.get('www-authenticate')).toBe(
      `Bearer realm="postern", scope="mcp", resource_metadata="${uiOrigin}/.well-known/oauth-protected-resource/mcp"`,
    );
    expect(answer.headers.get('access-control-allow-origin')).toBe('*');
    expect(answer.headers.get('access-control-expose-headers')).toBe('www-authenticate');
    for (const path of ['', '/mcp']) {
      const metadata = await fetchOf(h)(`${uiOrigin}/.well-known/oauth-protected-resource${path}`);
      expect(metadata.headers.get('access-control-allow-origin')).toBe('*');
      expect(await metadata.json()).toEqual({
        resource: `${uiOrigin}/mcp`,
        authorization_servers: [`${uiOrigin}/identity`],
        scopes_supported: ['mcp'],
        bearer_methods_supported: ['header'],
        resource_name: 'Postern',
      });
    }
  });

  test('a browser may ask whether it may call, without a token', async () => {
    const answer = await send(null, { method: 'OPTIONS', headers: { origin: 'https://inspector.example' } });
    expect([answer.status, answer.headers.get('access-control-allow-methods')]).toEqual([204, 'POST']);
  });

  test('MC-02 API keys are refused with a sentence, and so is every token for something else', async () => {
    const key = await h.key(ada, { scopes: ['sites:read'] });
    const refused = await send(key.value);
    expect(refused.status).toBe(401);
    expect((await bodyOf(refused)).error).toMatchObject({
      code: 'invalid_credential',
      message: 'The MCP endpoint does not accept API keys.',
    });
    const ofCommandLine = await commandLine(h, 'Ada').connect(['sites:read']);
    for (const token of [
      ofCommandLine.access,
      ofCommandLine.refresh,
      agent.refreshToken,
      'x'.repeat(43),
      'a.b.c',
    ])
      expect([token.length, await codeOf(await send(token))]).toEqual([token.length, 'invalid_credential']);
    const { hint } = (await bodyOf(await send('x'.repeat(43)))).error;
    expect([hint, String(hint).includes('key')]).toEqual([expect.stringContaining('sign in again'), false]);
    expect((await send(agent.accessToken)).status).toBe(200);
  });

  test('a browser session is no credential here', async () => {
    const page = await fetchOf(h)(`${uiOrigin}/mcp`, {
      method: 'POST',
      headers: { cookie: `__Host-postern_session=${ada.cookie}`, origin: uiOrigin },
    });
    expect([page.status, await codeOf(page)]).toEqual([401, 'authentication_required']);
  });

  test('MC-02 a token for the MCP endpoint opens nothing of the API', async () => {
    for (const path of ['/auth/context', '/sites', '/environments'])
      expect((await h.call('GET', path, { as: `Bearer ${agent.accessToken}` })).error.code).toBe(
        'invalid_credential',
      );
    const userinfo = await fetchOf(h)(`${uiOrigin}/identity/me`, {
      headers: { authorization: `Bearer ${agent.accessToken}` },
    });
    expect(userinfo.status).toBe(403);
  });

  test('an MCP client gets tokens only for this resource, and other clients get none for it', async () => {
    expect(await authorizationError({})).toBe('invalid_target');
    expect(await authorizationError({ resource: `${uiOrigin}/api/v2` })).toBe('invalid_target');
    expect(await authorizationError({ resource: `${uiOrigin}/mcp`, scope: 'openid sites:write' })).toBe(
      'invalid_scope',
    );
    expect(await authorizationError({ resource: `${uiOrigin}/mcp`, scope: 'openid' }, 'postern-cli')).toBe(
      'invalid_target',
    );
    expect(await authorizationError({ scope: 'openid mcp' }, 'postern-cli')).toBe('invalid_scope');
  });

  test('MC-08 a page of another origin may call when it has a token, as its preflight says, and cannot without one', async () => {
    const from = { origin: 'https://inspector.example' };
    const preflight = await send(null, { method: 'OPTIONS', headers: from });
    expect([preflight.status, preflight.headers.get('access-control-allow-origin')]).toEqual([204, '*']);
    const answer = await send(agent.accessToken, { headers: from });
    expect([answer.status, answer.headers.get('access-control-allow-origin')]).toEqual([200, '*']);
    expect(answer.headers.get('access-control-allow-credentials')).toBeNull();
    expect(
      (await send(null, { headers: { ...from, cookie: `__Host-postern_session=${ada.cookie}` } })).status,
    ).toBe(401);
  });

  test('MC-08 answers to clients that call at the same time are never mixed', async () => {
    await h.person('Dan');
    const [dans, adas] = [await connectAgent(h, 'Dan'), await connectAgent(h, 'Ada', { mode: 'legacy' })];
    const names = await Promise.all(
      Array.from({ length: 20 }, async (_, at) => {
        const { person } = (await (at % 2 === 0 ? dans : adas).use('get_context')) as {
          person: { name: string };
        };
        return person.name;
      }),
    );
    expect(names).toEqual(Array.from({ length: 20 }, (_, at) => (at % 2 === 0 ? 'Dan' : 'Ada')));
  });

  test('MC-08 another host is not served, so a name that is rebound to the loopback address reaches nothing', async () => {
    for (const method of ['POST', 'OPTIONS']) {
      const answer = await fetchOf(h)('http://rebound.example/mcp', {
        method,
        headers: { authorization: `Bearer ${agent.accessToken}`, origin: 'http://rebound.example' },
      });
      expect([method, answer.status]).toEqual([method, 421]);
      expect(answer.headers.get('access-control-allow-origin')).toBeNull();
    }
  });

  test('the agent of a disabled person is refused at once', async () => {
    const bea = await h.person('Bea');
    const hers = await connectAgent(h, 'Bea');
    await hers.use('get_context');
    await h.app.services.identity.accounts.change(systemAuditContext, bea.user.id, { enabled: false });
    expect((await send(hers.accessToken)).status).toBe(401);
  });

  test('the requests of one person are limited over all clients', async () => {
    await h.person('Cyd');
    const [one, two] = [await connectAgent(h, 'Cyd'), await connectAgent(h, 'Cyd')];
    h.clock.advance(2 * minute);
    await setMcpPolicy(h, { callsPerMinute: 3 });
    const statuses: number[] = [];
    for (const { accessToken } of [one, two, one, two]) statuses.push((await send(accessToken)).status);
    expect(statuses).toEqual([200, 200, 200, 429]);
    const refused = await send(two.accessToken);
    expect([await codeOf(refused), Number(refused.headers.get('retry-after')) > 0]).toEqual([
      'rate_limited',
      true,
    ]);
    expect((await send(agent.accessToken)).status).toBe(200);
  });
});

describe('requests that are not what the protocol says', () => {
  test.each([
    ['an empty body', ''],
    ['no JSON', '{'],
    ['not UTF-8', Buffer.from([0x22, 0xff, 0x22])],
    ['a number', '1'],
    ['null', 'null'],
    ['an empty batch', '[]'],
    ['no version', '{"id":1,"method":"tools/list"}'],
    ['no method', '{"jsonrpc":"2.0","id":1}'],
    ['a wrong version', '{"jsonrpc":"1.0","id":1,"method":"tools/list"}'],
    [
      'deep nesting',
      `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":${'['.repeat(5_000)}${']'.repeat(5_000)}}`,
    ],
  ])('%s is answered 400', async (_what, body) => {
    const answer = await send(agent.accessToken, { body });
    expect(answer.status).toBe(400);
    expect((await bodyOf(answer)).error).toBeDefined();
  });

  test('the answer to an unknown revision names the supported ones', async () => {
    const meta = {
      'io.modelcontextprotocol/protocolVersion': '2099-01-01',
      'io.modelcontextprotocol/clientInfo': { name: 'x', version: '1' },
      'io.modelcontextprotocol/clientCapabilities': {},
    };
    const answer = await send(agent.accessToken, {
      body: JSON.stringify({ ...listTools, params: { _meta: meta } }),
      headers: { 'mcp-protocol-version': '2099-01-01', 'mcp-method': 'tools/list' },
    });
    expect([answer.status, (await bodyOf(answer)).error.data.supported]).toEqual([400, ['2026-07-28']]);
  });

  test('another content type, another method and a large body are refused', async () => {
    expect((await send(agent.accessToken, { headers: { 'content-type': 'text/plain' } })).status).toBe(415);
    expect((await send(agent.accessToken, { method: 'GET' })).status).toBe(405);
    expect((await send(agent.accessToken, { method: 'DELETE' })).status).toBe(405);
    const large = await send(agent.accessToken, { body: 'x'.repeat(1_048_577) });
    expect([large.status, (await bodyOf(large)).error]).toEqual([
      413,
      { code: -32_600, message: expect.stringContaining('1048576 bytes') },
    ]);
  });

  test('a stream of changes is refused, so that none outlives a switch', async () => {
    const meta = {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': { name: 'x', version: '1' },
      'io.modelcontextprotocol/clientCapabilities': {},
    };
    const answer = await send(agent.accessToken, {
      body: JSON.stringify({
        ...listTools,
        method: 'subscriptions/listen',
        params: { notifications: { toolsListChanged: true }, _meta: meta },
      }),
      headers: { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'subscriptions/listen' },
    });
    expect([answer.status, (await bodyOf(answer)).error]).toEqual([
      404,
      { code: -32_601, message: 'Method not found' },
    ]);
  });

  test('no revision is promised notices of changed lists', async () => {
    for (const era of ['older', 'newer'] as const) {
      const params = {
        protocolVersion: '2025-06-18',
        capabilities: {},
        clientInfo: { name: 'x', version: '1' },
      };
      const request =
        era === 'older' ? requestOf(era, 'initialize', params) : requestOf(era, 'server/discover');
      const { result } = await messageOf(await send(agent.accessToken, request));
      for (const list of ['tools', 'resources', 'prompts'])
        expect([era, list, result.capabilities[list].listChanged]).toEqual([era, list, false]);
    }
  });
});

const modernMeta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'x', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
};

/** What a client of the older or the newer revision sends. */
function requestOf(era: 'older' | 'newer', method: string, params: Record<string, unknown> | null = {}) {
  const isNewer = era === 'newer';
  const name = params?.['name'];
  return {
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method,
      params: isNewer ? { ...params, _meta: modernMeta } : params,
    }),
    headers: isNewer
      ? {
          'mcp-protocol-version': '2026-07-28',
          'mcp-method': method,
          ...(typeof name === 'string' ? { 'mcp-name': name } : {}),
        }
      : {},
  };
}

/** The message in an answer of either form. */
async function messageOf(response: Response) {
  const text = await response.text();
  const [, data = text] = /^data: (.*)$/m.exec(text) ?? [];
  return JSON.parse(data);
}

describe.each(['older', 'newer'] as const)('clients of the %s revisions', (era) => {
  test.each([
    ['application/json', 'application/json'],
    ['text/event-stream', 'text/event-stream'],
    ['*/*', 'application/json'],
    ['', 'application/json'],
    ['application/json;q=0.5, text/event-stream;q=0', 'application/json'],
  ])('that accept "%s" are answered in %s', async (accept, type) => {
    const request = requestOf(era, 'tools/list');
    const answer = await send(agent.accessToken, { ...request, headers: { ...request.headers, accept } });
    expect([answer.status, answer.headers.get('content-type')?.split(';')[0]]).toEqual([200, type]);
    expect((await messageOf(answer)).result.tools).not.toEqual([]);
  });

  test('that accept neither form are refused, and the message names both', async () => {
    const request = requestOf(era, 'tools/list');
    const headers = { ...request.headers, accept: 'text/html' };
    const answer = await send(agent.accessToken, { ...request, headers });
    expect(answer.status).toBe(406);
    expect((await bodyOf(answer)).error.message).toContain('application/json, text/event-stream');
  });

  test.each([
    ['tools/list', { cursor: null }],
    ['tools/call', { name: 'get_context', arguments: null }],
    ['tools/call', { name: 'list_sites', arguments: { cursor: null, search: null } }],
  ])('may send null for what they leave out of %s %j', async (method, params) => {
    const { result } = await messageOf(await send(agent.accessToken, requestOf(era, method, params)));
    expect(result).toBeDefined();
    expect(result.isError).toBeUndefined();
  });

  test.each([
    ['tools/list', { cursor: 5 }, 'params.cursor: expected string, received number'],
    ['tools/call', { name: 5 }, 'params.name: expected string, received number'],
    [
      'tools/call',
      { name: 'get_context', arguments: 'x' },
      'params.arguments: expected record, received string',
    ],
    ['resources/read', {}, 'params.uri: expected string, received undefined'],
    ['prompts/get', { name: null }, 'params.name: expected string, received undefined'],
  ])('read what is wrong with %s %j', async (method, params, words) => {
    const { error } = await messageOf(await send(agent.accessToken, requestOf(era, method, params)));
    expect(error).toEqual({ code: -32_602, message: `The request is not valid. ${words}.` });
  });
});

test('params that are null are ignored', async () => {
  const answer = await send(agent.accessToken, requestOf('older', 'tools/list', null));
  expect((await messageOf(answer)).result.tools).not.toEqual([]);
});

test('a batch of an older revision is answered as a list to a client that accepts only JSON', async () => {
  const body = JSON.stringify([listTools, { ...listTools, id: 2 }]);
  const answer = await send(agent.accessToken, { body, headers: { accept: 'application/json' } });
  // In any order (JSON-RPC 2.0 section 6).
  expect((await bodyOf(answer)).map(({ id }: { id: number }) => id).toSorted()).toEqual([1, 2]);
});

test('the answer to arguments that break a rule as a whole says so', async () => {
  await setMcpPolicy(h, { callsPerMinute: 1_000 });
  const refused = await agent.refusal('get_logs', {});
  expect(refused.message).toBe('The arguments: must have either environmentId or buildId');
});

test('/mcp/ is the same address as /mcp', async () => {
  const at = async (path: string, init: RequestInit) => await fetchOf(h)(uiOrigin + path, init);
  const authorized = {
    method: 'POST',
    body: JSON.stringify(listTools),
    headers: { 'content-type': 'application/json', authorization: `Bearer ${agent.accessToken}` },
  };
  expect((await at('/mcp/', authorized)).status).toBe(200);
  expect((await at('/mcp/', { method: 'POST' })).headers.get('www-authenticate')).toContain(
    'resource_metadata=',
  );
  expect(await authorizationError({ resource: `${uiOrigin}/mcp/` })).toBeNull();
});
