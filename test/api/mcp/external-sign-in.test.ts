import { once } from 'node:events';
import { createServer } from 'node:http';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { minute } from '../../../src/core/clock.ts';
import { sql } from '../../../src/platform/database/sql.ts';
import { type Harness, type Person, uiOrigin } from '../../harness.ts';
import { Browser } from '../../identity.ts';
import { dump, openFrozenHarness } from '../access/cast.ts';
import { type Agent, connectAgent, setMcpPolicy } from './agent.ts';
import {
  acceptAll,
  addServer,
  type ExternalServer,
  listen,
  loopbackFetch,
  openExternalServer,
} from './external-server.ts';

/** An external MCP server behind a real authorization server: the built-in provider of a second Postern. */
let h: Harness;
let there: Harness;
let root: Person;
let ada: Person;
let bea: Person;
let adaThere: Person;
let agent: Agent;
let tracker: ExternalServer;
/** Origin of the second installation, whose `/mcp` is the tracker. */
let origin: string;
/** In place of the metadata that names the authorization server. */
let metadata: Record<string, unknown> | undefined;
/** Its authorization server answers nothing. */
let isAway = false;
/** Happens once, during a request there to a path that begins so. */
let meanwhile: { readonly path: string; readonly happens: () => Promise<unknown> } | undefined;
/** Requests to the second installation, by path. */
let seen: string[];
let closeFront: () => Promise<void>;

beforeAll(async () => {
  const front = createServer((request, response) => {
    const path = request.url ?? '';
    seen.push(path.split('?')[0] ?? '');
    if (meanwhile !== undefined && path.startsWith(meanwhile.path)) {
      const { happens } = meanwhile;
      meanwhile = undefined;
      return void happens().then(() => there.app.web.server.emit('request', request, response));
    }
    if (isAway && path.startsWith('/identity')) return void response.writeHead(502).end();
    if (path.startsWith('/.well-known/oauth-protected-resource') && metadata !== undefined)
      return void response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify(metadata));
    if (path.startsWith('/mcp')) return tracker.emit(request, response);
    return void there.app.web.server.emit('request', request, response);
  });
  origin = await listen(front);
  closeFront = async () => {
    front.closeAllConnections();
    front.close();
    await once(front, 'close');
  };
  h = await openFrozenHarness({ changesPerMinute: 10_000, outboundFetch: loopbackFetch });
  there = await openFrozenHarness({ uiUrl: origin, changesPerMinute: 10_000 });
  await setMcpPolicy(there, { clients: { registration: 'open', metadataHosts: [] } });
  root = await h.person('Root', { admin: true });
  ada = await h.person('Ada');
  bea = await h.person('Bea');
  adaThere = await there.person('Ada');
  await there.person('Bea');
  await setMcpPolicy(h, { callsPerMinute: 10_000 });
  agent = await connectAgent(h, 'Ada');
});
beforeEach(async () => {
  vi.setSystemTime(h.clock.now());
  seen = [];
  metadata = undefined;
  isAway = false;
  meanwhile = undefined;
  tracker = await openExternalServer();
  // As any resource server does: the authorization server says whether a token is for this resource.
  tracker.acceptsLater = async (authorization) => {
    const token = /^Bearer (.+)$/.exec(authorization ?? '')?.[1] ?? '';
    const found = await there.app.services.identity.directory.introspect(token);
    return found.kind === 'active' && found.audiences.includes(`${origin}/mcp`);
  };
  await addServer(
    h,
    root,
    { url: `${origin}/mcp` },
    { auth: 'oauth', tools: { search_issues: 'allow' }, readOnlyTools: ['search_issues'] },
  );
});
afterEach(async () => {
  await h.settle();
  await h.call('DELETE', '/config/mcp/servers/tracker', { as: root });
  await tracker.close();
});
afterAll(async () => {
  vi.useRealTimers();
  await h.close();
  await there.close();
  await closeFront();
});

const begin = async (as = ada) => await h.call('POST', '/me/connections/tracker/start', { as, body: {} });
/** Signs in there and allows Postern; resolves with the callback to which the browser returns. */
const allow = async (address: string, name = 'Ada', decision = 'allow'): Promise<URL> => {
  const browser = new Browser(there.app.web, origin);
  const { pathname, search } = new URL(address);
  const actionOf = (text: string) => /<form method="post" action="([^"]+)"/.exec(text)?.[1] ?? '';
  let page = await browser.follow(await browser.get(pathname + search));
  if (page.text.includes('type="password"')) {
    const form = { email: `${name.toLowerCase()}@example.com`, password: 'correct horse battery' };
    page = await browser.follow(await browser.post(actionOf(page.text), { ...form, decision: 'sign-in' }));
  }
  page = await browser.follow(await browser.post(actionOf(page.text), { decision }));
  if (page.location === undefined) throw new Error(`No redirect: ${page.status} ${page.text}`);
  return new URL(page.location);
};
/** The browser returns; resolves with where it is sent next. */
const comeBack = async (callback: URL, as = ada) => {
  const answer = await h.app.web.inject({
    method: 'GET',
    url: callback.pathname + callback.search,
    headers: {
      host: new URL(uiOrigin).host,
      cookie: `__Host-postern_session=${as.cookie}`,
      accept: 'text/html',
    },
  });
  expect(answer.statusCode).toBe(303);
  return String(answer.headers['location']);
};
const connect = async (as = ada, name = 'Ada') => {
  const { data } = await begin(as);
  expect(await comeBack(await allow(data.authorizationUrl, name), as)).toBe('/settings/connections');
  await acceptAll(h, root);
};
const status = async (as = ada) =>
  (await h.call('GET', '/me/connections', { as })).data.connections[0].status;
const search = () => agent.client.callTool({ name: 'tracker__search_issues', arguments: {} });
const later = (ms: number) => {
  h.clock.advance(ms);
  there.clock.advance(ms);
  vi.setSystemTime(h.clock.now());
};
const server = async () => (await h.call('GET', '/config/mcp/servers', { as: root })).data.servers[0];

test('a person connects an account by a sign-in at its server, and agents use it with a token for only this resource', async () => {
  const { data } = await begin();
  const address = new URL(data.authorizationUrl);
  expect(address.origin).toBe(origin);
  expect(Object.fromEntries(address.searchParams)).toMatchObject({
    resource: `${origin}/mcp`,
    code_challenge_method: 'S256',
    redirect_uri: `${uiOrigin}/connections/tracker/callback`,
  });
  expect(await status()).toBe('disconnected');
  const callback = await allow(data.authorizationUrl);
  expect(callback.searchParams.get('iss')).toBe(`${origin}/identity`);
  expect(await comeBack(callback)).toBe('/settings/connections');
  expect(await status()).toBe('connected');
  expect(await server()).toMatchObject({ issuer: `${origin}/identity`, changedIssuer: null });
  await acceptAll(h, root);
  expect(await search()).toMatchObject({ content: [{ type: 'text', text: 'did {}' }] });

  // The first request has no token, to read the challenge.
  const sent = tracker.authorizations.filter((one) => one !== null);
  const tokens = [...new Set(sent)].map((one) => one.replace('Bearer ', ''));
  expect(tokens).toHaveLength(1);
  const everything = (await dump(h)) + h.logged.join('');
  for (const token of tokens) expect(everything).not.toContain(token);
  // The token of the agent is for this Postern, and stays here.
  expect(tokens).not.toContain(agent.accessToken);
  // A code is good once, and so is the state.
  expect(await comeBack(callback)).toContain('problem=state_conflict');
});

test('an expired access token is refreshed once, for any number of calls and processes', async () => {
  await connect();
  const first = tracker.authorizations.at(-1);
  later(10 * minute);
  agent = await connectAgent(h, 'Ada');
  const other = await h.another();
  const [tool] = await h.app.services.connections.tools(ada.user.id);
  if (tool === undefined) throw new Error('There is no tool.');
  seen = [];
  const calls = [h, h, other, other].map((one) => one.app.services.connections.call(ada.user.id, tool, {}));
  for (const answer of await Promise.all(calls)) expect(answer.isError).toBe(false);
  expect(seen.filter((path) => path === '/identity/token')).toHaveLength(1);
  expect(tracker.authorizations.at(-1)).not.toBe(first);
  expect(await status()).toBe('connected');
});

test('a token that was revoked early is refreshed, and an account that its server removed is broken', async () => {
  await connect();
  const token = tracker.authorizations.at(-1)?.replace('Bearer ', '') ?? '';
  tracker.acceptsLater = async (authorization) => authorization !== `Bearer ${token}`;
  expect(await search()).toMatchObject({ content: [{ text: 'did {}' }] });
  expect(await status()).toBe('connected');
  tracker.acceptsLater = async () => false;
  expect((await agent.refusal('tracker__search_issues')).code).toBe('connection_broken');
  expect(await status()).toBe('broken');
});

test('an unavailable authorization server breaks no connection; one that refuses the refresh token does', async () => {
  await connect();
  later(10 * minute);
  agent = await connectAgent(h, 'Ada');
  isAway = true;
  expect((await agent.refusal('tracker__search_issues')).code).toBe('external_server_unavailable');
  expect(await status()).toBe('connected');
  isAway = false;
  const { data: clients } = await there.call('GET', '/me/clients', { as: adaThere });
  for (const { clientId } of clients) await there.call('DELETE', `/me/clients/${clientId}`, { as: adaThere });
  expect((await agent.refusal('tracker__search_issues')).code).toBe('connection_broken');
  expect(await status()).toBe('broken');
});

const sentToken = () => tracker.authorizations.at(-1)?.replace('Bearer ', '') ?? '';
const stateOf = async (token: string) => (await there.app.services.identity.directory.introspect(token)).kind;
const patch = (body: object) => h.call('PATCH', '/config/mcp/servers/tracker', { as: root, body });
const endings: [string, (person: Person) => Promise<unknown>][] = [
  ['the person disconnects', (person) => h.call('DELETE', '/me/connections/tracker', { as: person })],
  [
    'an administrator deletes the server',
    () => h.call('DELETE', '/config/mcp/servers/tracker', { as: root }),
  ],
  ['an administrator changes its URL', () => patch({ url: 'https://next.example/mcp' })],
  ['an administrator changes how people sign in', () => patch({ auth: 'none' })],
  [
    'the server names another issuer',
    async () => {
      metadata = { resource: `${origin}/mcp`, authorization_servers: ['https://evil.example'] };
      await begin(bea);
    },
  ],
  [
    'the person is deleted',
    async ({ user }) => {
      await h.call('DELETE', `/users/${user.id}`, { as: root });
      await h.app.services.feed.poll();
    },
  ],
];
let leavers = 0;

test.each(endings)('tokens are revoked at their server when %s', async (_when, end) => {
  const name = `Leaving${(leavers += 1)}`;
  const leaving = await h.person(name);
  await there.person(name);
  await connect(leaving, name);
  const token = sentToken();
  expect(await stateOf(token)).toBe('active');
  await end(leaving);
  await h.settle();
  expect(seen).toContain('/identity/token/revocation');
  expect(await stateOf(token)).toBe('inactive');
});

test('connecting again revokes the replaced tokens, and never those that replace them', async () => {
  await connect();
  const replaced = sentToken();
  const { data } = await begin();
  const clientOf = (address: string) => new URL(address).searchParams.get('client_id');
  expect(await comeBack(await allow(data.authorizationUrl))).toBe('/settings/connections');
  await h.settle();
  expect([await stateOf(replaced), await stateOf(sentToken())]).toEqual(['inactive', 'active']);
  await search();
  // An authorization server may revoke everything that a client has of a person, so the second is another client there.
  expect(clientOf((await begin(bea)).data.authorizationUrl)).not.toBe(clientOf(data.authorizationUrl));
  await h.call('DELETE', '/me/connections/tracker', { as: ada });
  const twice = [await begin(), await begin()].map((one) => String(one.data.authorizationUrl));
  expect(clientOf(twice[0] ?? '')).toBe(clientOf(twice[1] ?? ''));
  await h.settle();
  seen = [];
  for (const address of twice) expect(await comeBack(await allow(address))).toBe('/settings/connections');
  await h.settle();
  expect(seen).not.toContain('/identity/token/revocation');
});

test('a change does not wait for the authorization server', async () => {
  await connect();
  const { promise, resolve } = Promise.withResolvers<void>();
  meanwhile = { path: '/.well-known/oauth-authorization-server', happens: () => promise };
  expect((await h.call('DELETE', '/config/mcp/servers/tracker', { as: root })).status).toBe(204);
  resolve();
  await h.settle();
});

test('an unavailable authorization server fails no change; the log says what was lost', async () => {
  await connect();
  const token = sentToken();
  isAway = true;
  expect((await h.call('DELETE', '/config/mcp/servers/tracker', { as: root })).status).toBe(204);
  await h.settle();
  const lines = h.logged.filter((line) => line.includes('could not revoke'));
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([{ server: 'tracker', lost: 1 }]);
  expect(h.logged.join('')).not.toContain(token);
  isAway = false;
  expect(await stateOf(token)).toBe('active');
});

test('tokens are revoked at the authorization server that was in use when the account was removed', async () => {
  await connect();
  const token = sentToken();
  const { mcpServers } = h.app.services.read;
  const current = await mcpServers.find('tracker');
  if (current === undefined) throw new Error('There is no server.');
  // Read before an administrator accepted the issuer and the person connected again.
  const stale = { ...current, issuer: 'https://before.example' };
  const reading = vi.spyOn(mcpServers, 'find').mockResolvedValue(stale);
  const { status: answered } = await h.call('DELETE', '/me/connections/tracker', { as: ada });
  reading.mockRestore();
  await h.settle();
  expect([answered, await stateOf(token)]).toEqual([204, 'inactive']);
});

test('tokens of a sign-in that cannot be finished are revoked', async () => {
  tracker.instead = (_request, response) => void response.writeHead(500).end();
  const { data } = await begin();
  expect(await comeBack(await allow(data.authorizationUrl))).toContain('external_server_unavailable');
  await h.settle();
  expect(seen).toContain('/identity/token/revocation');
  expect(await status()).toBe('disconnected');
});

test('T62 a state is good in the browser session that began it, and nowhere else', async () => {
  const { data } = await begin(ada);
  const callback = await allow(data.authorizationUrl, 'Ada');
  // An attacker sends the callback to another person, or to another session of the same one.
  expect(await comeBack(callback, bea)).toContain('problem=state_conflict');
  expect(await status(bea)).toBe('disconnected');
  await addServer(h, root, { url: `${origin}/mcp` }, { slug: 'other', auth: 'oauth' });
  const elsewhere = new URL(callback.href.replace('/tracker/', '/other/'));
  expect(await comeBack(elsewhere)).toContain('problem=state_conflict');
  await h.call('DELETE', '/config/mcp/servers/other', { as: root });
  const without = new URL(callback.href);
  without.searchParams.delete('state');
  expect(await comeBack(without)).toContain('problem=state_conflict');
  // It was not used up.
  expect(await comeBack(callback)).toBe('/settings/connections');
  expect(await status()).toBe('connected');
});

test.each([
  ['another issuer', 'https://evil.example'],
  ['no issuer', null],
])('T62 an answer with %s is refused (RFC 9207)', async (_what, iss) => {
  const { data } = await begin();
  const callback = await allow(data.authorizationUrl);
  if (iss === null) callback.searchParams.delete('iss');
  else callback.searchParams.set('iss', iss);
  seen = [];
  expect(await comeBack(callback)).toMatch(/problem=(state_conflict|external_server_unavailable)/);
  expect(seen).not.toContain('/identity/token');
  expect(await status()).toBe('disconnected');
});

test('a person who lost the role meanwhile connects nothing; nor does anyone while the directory is unavailable', async () => {
  const { data } = await begin(bea);
  const callback = await allow(data.authorizationUrl, 'Bea');
  const outage = vi.spyOn(h.app.services.identity.directory, 'principal');
  outage.mockReturnValue({ kind: 'unavailable', reason: 'refused' });
  expect(await comeBack(callback, bea)).toBe('/settings/connections?problem=identity_unavailable');
  outage.mockRestore();
  const change = (body: object) => h.call('PATCH', `/users/${bea.user.id}`, { as: root, body });
  await change({ roles: [] });
  expect(await comeBack(callback, bea)).toBe('/settings/connections?problem=role_required');
  expect(await status(bea)).toBe('disconnected');
  await change({ roles: ['user'] });
  expect(await comeBack(callback, bea)).toBe('/settings/connections');
});

test.each([{ url: 'https://next.example/mcp' }, { auth: 'header' }])(
  'T62 a sign-in at the earlier authorization server is not stored when the server changes: %o',
  async (body) => {
    meanwhile = { path: '/.well-known/oauth-authorization-server', happens: () => patch(body) };
    expect((await begin()).error.code).toBe('state_conflict');
    expect(await server()).toMatchObject({ ...body, issuer: null });
    const rows = await sql`select 1 from mcp_connection_attempts`.all(h.database.sql);
    expect(rows).toEqual([]);
  },
);

test('T62 a server that was replaced during a request names no issuer for the next one', async () => {
  meanwhile = {
    path: '/.well-known/oauth-protected-resource',
    happens: () => patch({ url: 'https://next.example/mcp' }),
  };
  const { error } = await begin();
  expect(await server()).toMatchObject({ url: 'https://next.example/mcp', issuer: null });
  expect(error.code).toBe('state_conflict');
});

test('a sign-in that began before MCP was switched off gets no tokens', async () => {
  const { data } = await begin();
  const callback = await allow(data.authorizationUrl);
  seen = [];
  await setMcpPolicy(h, { enabled: false });
  expect(await comeBack(callback)).toBe('/settings/connections?problem=not_found');
  await setMcpPolicy(h, { callsPerMinute: 10_000 });
  expect(seen).toEqual([]);
  expect(await status()).toBe('disconnected');
});

test('a sign-in ends after ten minutes, and a person may refuse', async () => {
  const { data } = await begin();
  const callback = await allow(data.authorizationUrl);
  later(10 * minute);
  expect(await comeBack(callback)).toContain('problem=state_conflict');
  const again = await begin();
  expect(await comeBack(await allow(again.data.authorizationUrl, 'Ada', 'deny'))).toContain(
    'problem=state_conflict',
  );
  await h.app.services.connections.prune();
  expect(await status()).toBe('disconnected');
});

test('T62 another issuer than the first removes every connection, and needs an administrator', async () => {
  await connect();
  metadata = { resource: `${origin}/mcp`, authorization_servers: ['https://evil.example'] };
  expect((await begin(bea)).error.code).toBe('state_conflict');
  expect(await status()).toBe('disconnected');
  expect(await server()).toMatchObject({
    issuer: `${origin}/identity`,
    changedIssuer: 'https://evil.example',
  });
  const events = await h.call('GET', '/audit/events', {
    as: root,
    query: { event: 'config.mcp.server_changed' },
  });
  expect(events.data[0]).toMatchObject({ reason: 'issuer_changed', details: { endedConnections: 1 } });
  expect((await begin()).error.code).toBe('state_conflict');
  const put = (issuer: string) =>
    h.call('PATCH', '/config/mcp/servers/tracker', { as: root, body: { issuer } });
  expect((await put('https://third.example')).error.code).toBe('state_conflict');
  // The administrator keeps the first; it would be the same with the other.
  metadata = undefined;
  expect((await put(`${origin}/identity`)).data).toMatchObject({ changedIssuer: null });
  await connect();
  expect(await status()).toBe('connected');
});

test('T62 a first issuer at another origin than the server is used once an administrator accepted it', async () => {
  const issuer = `${origin}/identity`;
  await h.call('DELETE', '/config/mcp/servers/tracker', { as: root });
  // The same server by another of its names.
  const url = `${origin.replace('127.0.0.1', 'localhost')}/mcp`;
  await addServer(h, root, { url }, { auth: 'oauth' });
  metadata = { resource: url, authorization_servers: [issuer] };
  for (const _ of [1, 2]) {
    const { error } = await begin();
    expect([error.code, error.message]).toEqual(['state_conflict', expect.stringContaining(issuer)]);
  }
  expect(await server()).toMatchObject({ issuer: null, changedIssuer: issuer });
  expect(seen).not.toContain('/identity/reg');
  expect((await patch({ issuer })).data).toMatchObject({ issuer, changedIssuer: null });
  expect((await begin()).status).toBe(200);
});

test('a client from the operator of the server is used in place of a registration, and its secret is never shown', async () => {
  const made = await fetch(`${origin}/identity/reg`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ redirect_uris: [`${uiOrigin}/connections/tracker/callback`] }),
  });
  const { client_id: clientId } = (await made.json()) as { client_id: string };
  const clientSecret = 'a-secret-of-the-operator';
  expect((await patch({ client: { clientId, clientSecret } })).data).toMatchObject({ clientId });
  const everything = (await dump(h)) + h.logged.join('') + JSON.stringify(await server());
  expect(everything).not.toContain(clientSecret);
  expect((await patch({ name: 'Renamed' })).data).toMatchObject({ clientId });
  expect((await patch({ client: { clientId } })).data).toMatchObject({ clientId });
  seen = [];
  await connect();
  expect(seen).not.toContain('/identity/reg');
  expect(await status()).toBe('connected');
  // Given for this server alone.
  expect((await patch({ url: 'https://next.example/mcp' })).data).toMatchObject({ clientId: null });
  const refused = await patch({ auth: 'none', client: { clientId } });
  expect([refused.error.code, refused.error.message]).toEqual([
    'invalid_body',
    expect.stringContaining('auth oauth'),
  ]);
});

test('T62 a client secret reaches only the authorization server that an administrator accepted for it', async () => {
  const issuer = `${origin}/identity`;
  const client = { clientId: 'given', clientSecret: 'a-secret-of-the-operator' };
  const waiting = { issuer: null, changedIssuer: issuer, clientId: 'given' };
  const isRefused = async () => {
    const { error } = await begin();
    expect([error.code, error.message]).toEqual(['state_conflict', expect.stringContaining(issuer)]);
    expect(await server()).toMatchObject(waiting);
  };
  // The server names its own origin, which the administrator did not mean.
  await patch({ client });
  await isRefused();
  expect((await patch({ issuer })).data).toMatchObject({ issuer, changedIssuer: null, clientId: 'given' });
  const address = new URL((await begin()).data.authorizationUrl);
  expect(address.searchParams.get('client_id')).toBe('given');

  // A new secret of the same client is for the same authorization server; one of another client waits again.
  const renewed = { ...client, clientSecret: 'the-next-secret' };
  expect((await patch({ client: renewed })).data).toMatchObject({ issuer, changedIssuer: null });
  expect((await begin()).status).toBe(200);
  await patch({ client: { ...client, clientId: 'other' } });
  expect(await server()).toMatchObject({ ...waiting, clientId: 'other' });

  // Not even a changed row makes Postern send it.
  await sql`update mcp_servers set issuer = changed_issuer, changed_issuer = null`.run(h.database.sql);
  const { error } = await begin();
  expect([error.code, error.message]).toEqual(['state_conflict', expect.stringContaining('cannot decrypt')]);
});

test('T62 an issuer that was known before the client secret also waits for an administrator', async () => {
  const issuer = `${origin}/identity`;
  await connect();
  expect(await server()).toMatchObject({ issuer, changedIssuer: null });
  const client = { clientId: 'given', clientSecret: 'a-secret-of-the-operator' };
  expect((await patch({ client })).data).toMatchObject({
    issuer: null,
    changedIssuer: issuer,
    endedConnections: 1,
  });
  expect((await begin()).error.code).toBe('state_conflict');
  // With the issuer, the request says for which one the secret is.
  expect((await patch({ client, issuer })).data).toMatchObject({ issuer, changedIssuer: null });
  expect((await begin()).status).toBe(200);
});

test.each([
  ['another resource', { resource: 'https://evil.example/mcp', authorization_servers: ['ISSUER'] }],
  [
    'an authorization server without https',
    { resource: 'HERE', authorization_servers: ['http://evil.example'] },
  ],
  ['no authorization server', { resource: 'HERE', authorization_servers: [] }],
  ['nonsense', { a: 1 }],
])('metadata that names %s is refused, and no person is sent there', async (_what, written) => {
  const text = JSON.stringify(written)
    .replace('HERE', `${origin}/mcp`)
    .replace('ISSUER', `${origin}/identity`);
  metadata = JSON.parse(text);
  expect((await begin()).error.code).toBe('external_server_unavailable');
  expect((await server()).issuer).toBeNull();
  metadata = { resource: `${origin}/mcp`, authorization_servers: [`${origin}/identity`] };
  expect((await begin()).status).toBe(200);
});

test('SE-03 tokens and the registration are encrypted again under a new ENCRYPTION_KEY', async () => {
  await connect();
  const client = { clientId: 'given', clientSecret: 'a-secret-of-the-operator' };
  await patch({ client, issuer: `${origin}/identity` });
  const keys = ['a-new-encryption-key-of-the-tests-012345', 'encryption-key-of-the-tests-0123456789'];
  const under = async (encryptionKeys: string[]) =>
    (await h.another({ secrets: { encryptionKeys } })).app.services.reencryption;
  const reencryption = await under(keys);
  expect(await reencryption.waiting()).toBeGreaterThanOrEqual(3);
  expect(await reencryption.run()).toMatchObject({ unreadable: 0 });
  // Back again, for the process that has only this key.
  expect(await (await under(keys.toReversed())).run()).toMatchObject({ unreadable: 0 });
  expect((await begin()).status).toBe(200);
});
