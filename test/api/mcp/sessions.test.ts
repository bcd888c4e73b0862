// @module-tag sql
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { day, minute, second } from '../../../src/core/clock.ts';
import { defaultMcpPolicy } from '../../../src/features/agents/mcp-policy.ts';
import { anything } from '../../../src/platform/database/change-feed.ts';
import { sql } from '../../../src/platform/database/sql.ts';
import { type Harness, type Person, uiOrigin } from '../../harness.ts';
import { dump, openFrozenHarness } from '../access/cast.ts';
import { type Agent, connectAgent, fetchOf, setMcpPolicy } from './agent.ts';

/** What agents did: every call, in sessions, for the person and for administrators. */
let h: Harness;
let root: Person;
let ada: Person;
let bea: Person;
let agent: Agent;
beforeAll(async () => {
  h = await openFrozenHarness();
  await setMcpPolicy(h);
  root = await h.person('Root', { admin: true });
  ada = await h.person('Ada');
  bea = await h.person('Bea');
  agent = await connectAgent(h, 'Ada');
});
beforeEach(async () => {
  await setMcpPolicy(h, { callsPerMinute: 1_000 });
  await sql`delete from agent_sessions`.run(h.database.sql);
});
afterAll(async () => {
  vi.useRealTimers();
  await h.close();
});

const list = async (as: Person) =>
  (await h.call('GET', '/me/agents/sessions', { as })).data as { id: string }[];
const callsOf = async (as: Person) => {
  const [session] = await list(as);
  return (await h.call('GET', `/me/agents/sessions/${session?.id}`, { as })).data;
};

test('every call is recorded in its order, answered or refused', async () => {
  await agent.use('get_context');
  h.clock.advance(second);
  await agent.refusal('get_site', { siteId: 'k3v9x0q2m7' });
  await agent.refusal('get_site', { siteId: 7, more: 'app_pat_notakey' });
  expect(await list(ada)).toMatchObject([{ clientId: 'postern-mcp', calls: 3, isOpen: true }]);
  expect(await callsOf(ada)).toMatchObject([
    { number: 1, tool: 'get_context', code: null, arguments: {} },
    { number: 2, tool: 'get_site', code: 'site_not_found', arguments: { siteId: 'k3v9x0q2m7' } },
    { number: 3, tool: 'get_site', code: 'invalid_body', arguments: { arguments: '(37 characters)' } },
  ]);
});

test('a session has the definition of its newest call, with its name at that time', async () => {
  await agent.use('get_context');
  const [before] = (await h.call('GET', '/me/agents/sessions', { as: ada })).data;
  expect(before.definition).toBeNull();
  const body = { name: 'Reviews', purpose: 'For tests', tools: { get_context: 'allow' } };
  const clients = ['postern-mcp'];
  const { data } = await h.call('POST', '/config/agents/definitions', {
    as: root,
    body: { ...body, clients },
  });
  await agent.use('get_context');
  await h.call('DELETE', `/config/agents/definitions/${data.id}`, { as: root });
  const [after] = (await h.call('GET', '/agents/sessions', { as: root })).data;
  expect(after).toMatchObject({ calls: 2, definition: { id: data.id, name: 'Reviews' } });
});

test('calls at the same time belong to one session, and each keeps its tool, arguments and code', async () => {
  await agent.use('get_context');
  const searches = Array.from({ length: 12 }, (_, at) => `site ${at}`);
  await Promise.all([
    ...searches.slice(0, 11).map((search) => agent.use('list_sites', { search })),
    agent.refusal('get_site', { siteId: 'sit_none' }),
    agent.use('list_sites', { search: searches[11] }),
  ]);
  expect(await list(ada)).toMatchObject([{ calls: 14 }]);
  const calls = (await callsOf(ada)) as { number: number; code: string | null; arguments: object }[];
  expect(calls.map(({ number }) => number)).toEqual(Array.from({ length: 14 }, (_, at) => at + 1));
  const searched = calls.flatMap((call) => ('search' in call.arguments ? [call.arguments.search] : []));
  expect(new Set(searched)).toEqual(new Set(searches));
  expect(calls.filter(({ code }) => code !== null)).toMatchObject([
    { code: 'site_not_found', arguments: { siteId: 'sit_none' } },
  ]);
});

test('a session ends after 30 idle minutes, and with another consent', async () => {
  const own = await connectAgent(h, 'Bea');
  await own.use('get_context');
  await (await connectAgent(h, 'Bea')).use('get_context');
  expect(await list(bea)).toHaveLength(2);
  // The token behind the calls lives for five minutes, so the time between them is set in the table.
  await sql`update agent_sessions set last_call_at = last_call_at - interval '31 minutes'`.run(
    h.database.sql,
  );
  expect((await list(bea)).every((one) => 'isOpen' in one && one.isOpen === false)).toBe(true);
  await own.use('get_context');
  expect(await list(bea)).toHaveLength(3);
});

test('a person reads only their own sessions; an administrator reads names and sizes of arguments, never values', async () => {
  const search = 'a private matter';
  await agent.use('list_sites', { search });
  const [session] = await list(ada);
  expect(await callsOf(ada)).toMatchObject([{ arguments: { search } }]);
  const path = `/agents/sessions/${session?.id}`;
  expect((await h.call('GET', `/me${path}`, { as: bea })).status).toBe(404);
  expect((await h.call('GET', path, { as: ada })).status).toBe(403);
  const reviewed = await h.call('GET', path, { as: root });
  expect(reviewed.data).toMatchObject([{ arguments: [{ name: 'search', characters: search.length + 2 }] }]);
  expect(reviewed.text).not.toContain(search);
  const { data } = await h.call('GET', '/agents/sessions', { as: root });
  expect(data).toMatchObject([{ id: session?.id, user: { id: ada.user.id, name: 'Ada' } }]);
});

test('one session is found by its id, by its person and by administrators', async () => {
  await agent.use('get_context');
  await (await connectAgent(h, 'Ada')).use('get_context');
  const [newest, oldest] = await list(ada);
  const found = async (as: Person, path: string) =>
    ((await h.call('GET', path, { as, query: { id: oldest?.id ?? '' } })).data as { id: string }[]).map(
      ({ id }) => id,
    );
  expect(newest?.id).not.toBe(oldest?.id);
  expect(await found(ada, '/me/agents/sessions')).toEqual([oldest?.id]);
  expect(await found(root, '/agents/sessions')).toEqual([oldest?.id]);
  expect(await found(bea, '/me/agents/sessions')).toEqual([]);
});

test('a call that changed something names the request of its audit events, and they name the call', async () => {
  await setMcpPolicy(h, {
    allowChanges: true,
    tools: { ...defaultMcpPolicy.tools, publish_site: 'allow' },
  });
  await agent.use('get_context');
  await agent.use('publish_site', { files: [{ path: 'index.html', content: '<title>x</title>' }] });
  const [session] = await list(ada);
  const { data: calls } = await h.call('GET', `/agents/sessions/${session?.id}`, { as: root });
  expect(calls).toMatchObject([{ requestId: null }, { requestId: expect.any(String) }]);
  const query = { requestId: calls[1].requestId };
  const { data: events } = await h.call('GET', '/audit/events', { as: root, query });
  expect(events).toMatchObject([
    { event: 'mcp.tool_called', details: { sessionId: session?.id, call: 2, tool: 'publish_site' } },
    { event: 'site.created' },
  ]);
});

test('KF-03 no table stores keys, contents or halves of characters from agents', async () => {
  const key = await h.key(ada);
  await agent.refusal('list_sites', { search: key.value });
  await agent.use('validate_configuration', { content: 'version: 1 # a secret of the file' });
  await agent.refusal('list_sites', { search: '\ud800' });
  const calls = await callsOf(ada);
  expect(calls).toMatchObject([
    {},
    { tool: 'validate_configuration', arguments: { content: '(35 characters)' } },
    {},
  ]);
  const everything = await dump(h);
  expect(everything).not.toContain(key.value);
  expect(everything).not.toContain('a secret of the file');
  // An administrator reads the size of the value, and not of what is kept in its place.
  const [session] = await list(ada);
  const { data } = await h.call('GET', `/agents/sessions/${session?.id}`, { as: root });
  expect(data[1]).toMatchObject({ arguments: [{ name: 'content', characters: 35 }] });
});

describe('ending a session', () => {
  const end = (path: string, as: Person) => h.call('POST', `${path}/end`, { as });
  /** One call of a new client of Bea; resolves with the path of its session. */
  async function called() {
    const hers = await connectAgent(h, 'Bea');
    await hers.use('get_context');
    const [session] = await list(bea);
    return { hers, path: `/agents/sessions/${session?.id}` };
  }
  const statusWith = async (token: string) => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    return (await fetchOf(h)(`${uiOrigin}/mcp`, { method: 'POST', headers, body: '{}' })).status;
  };
  const refreshed = async (token: string) =>
    await fetchOf(h)(`${uiOrigin}/identity/token`, {
      method: 'POST',
      body: new URLSearchParams({
        grant_type: 'refresh_token',
        client_id: 'postern-mcp',
        refresh_token: token,
        resource: `${uiOrigin}/mcp`,
      }),
    });

  test('a person ends a session: its client has no access from the next request on, and others keep theirs', async () => {
    const other = await connectAgent(h, 'Bea');
    const { hers, path } = await called();
    expect((await end(`/me${path}`, ada)).status).toBe(404);
    const ended = await end(`/me${path}`, bea);
    expect(ended.data).toMatchObject({ isOpen: false, endedAt: expect.any(String) });
    expect(await statusWith(hers.accessToken)).toBe(401);
    expect((await refreshed(hers.refreshToken)).status).toBe(400);
    expect((await end(`/me${path}`, bea)).data).toEqual(ended.data);
    expect(await statusWith(other.accessToken)).not.toBe(401);
    await other.use('get_context');
    await (await connectAgent(h, 'Bea')).use('get_context');
    const { events } = await h.app.services.audit.search({ event: 'mcp.session_ended' }, undefined, 10);
    expect(events).toMatchObject([
      { actor: { id: bea.user.id }, target: { id: 'postern-mcp' }, details: { userId: bea.user.id } },
    ]);
  });

  test('an administrator ends the session of anyone', async () => {
    const { hers, path } = await called();
    expect((await end(path, ada)).status).toBe(403);
    expect((await end(path, root)).data).toMatchObject({ isOpen: false, user: { id: bea.user.id } });
    expect(await statusWith(hers.accessToken)).toBe(401);
  });

  test('tokens of an ended grant are refused even where the identity provider still honours them', async () => {
    const { hers, path } = await called();
    const { read, tx } = h.app.services;
    const session = await read.agentSessions.find(path.slice(path.lastIndexOf('/') + 1));
    if (session === undefined) throw new Error('There is no session.');
    await read.agentSessions.endGrant(session, h.clock.now());
    await tx(({ changes }) => changes.publish({ topic: 'agents', subject: anything }));
    expect(await statusWith(hers.accessToken)).toBe(401);
    const renewed = (await (await refreshed(hers.refreshToken)).json()) as { access_token: string };
    expect(renewed.access_token).toBeTypeOf('string');
    expect(await statusWith(renewed.access_token)).toBe(401);
  });

  test('the access behind calls without a known consent cannot be ended', async () => {
    const { hers, path } = await called();
    await sql`update agent_sessions set grant_id = ''`.run(h.database.sql);
    expect((await end(path, root)).error.code).toBe('state_conflict');
    await hers.use('get_context');
  });
});

test('the policy can keep arguments out of the record', async () => {
  await setMcpPolicy(h, { sessionReview: { keepDays: 30, arguments: 'none' } });
  await agent.use('list_sites', { search: 'quiet' });
  expect(await callsOf(ada)).toMatchObject([{ tool: 'list_sites', arguments: {} }]);
});

test('sessions are removed after the days of the policy', async () => {
  await setMcpPolicy(h, { sessionReview: { keepDays: 2, arguments: 'redacted' } });
  await agent.use('get_context');
  const { sessions } = { sessions: h.app.services.agentSessions };
  await sql`update agent_sessions set last_call_at = ${new Date(h.clock.now() - 2 * day + minute)}`.run(
    h.database.sql,
  );
  await sessions.prune();
  expect(await list(ada)).toHaveLength(1);
  await sql`update agent_sessions set last_call_at = ${new Date(h.clock.now() - 2 * day - minute)}`.run(
    h.database.sql,
  );
  await sessions.prune();
  expect(await list(ada)).toEqual([]);
});

test('a dry run of the policy names the people whose calls it would stop', async () => {
  await agent.use('get_context');
  await agent.use('list_sites');
  await agent.use('list_sites');
  const { data, headers } = await h.call('GET', '/config/mcp', { as: root });
  const dryRun = async (change: object) =>
    (
      await h.call('PUT', '/config/mcp', {
        as: root,
        query: { dryRun: 'true' },
        headers: { 'if-match': headers['etag'] ?? '' },
        body: { ...data.policy, ...change },
      })
    ).data.dryRun;
  expect(await dryRun({ tools: { ...data.policy.tools, list_sites: 'hidden' } })).toEqual({
    changed: ['tools'],
    stopped: [{ tool: 'list_sites', people: 1, calls: 2 }],
  });
  expect((await dryRun({ enabled: false })).stopped).toHaveLength(2);
  expect((await dryRun({ callsPerMinute: 5 })).stopped).toEqual([]);
});
