// @module-tag sql
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { systemAuditContext } from '../../../src/core/caller.ts';
import { day, minute, second } from '../../../src/core/clock.ts';
import { defaultMcpPolicy } from '../../../src/features/agents/mcp-policy.ts';
import { type Harness, type Person, uiOrigin } from '../../harness.ts';
import { openFrozenHarness } from '../access/cast.ts';
import { type Agent, connectAgent, setMcpPolicy } from './agent.ts';

/** Definitions that a person chooses for a client: at consent, or in Settings. */
let h: Harness;
let root: Person;
let ada: Person;
let siteId: string;
/** The name of the consent behind a token at other providers: their session. */
let sid: string | null = null;
const path = '/config/agents/definitions';
/** The subjects behind the tokens of browser sessions. */
const signedIn = new Map<string, string>();
const active = (subject: string) =>
  ({
    kind: 'active',
    issuer: `${uiOrigin}/identity`,
    subject,
    clientId: 'postern-web',
    scopes: ['openid'],
    audiences: [],
    grantId: null,
    expiresAt: h.clock.now() + minute,
  }) as const;
async function signIn(name: string, admin = false): Promise<Person> {
  const person = await h.person(name, { admin });
  signedIn.set(person.accessToken, person.subject);
  return person;
}

beforeAll(async () => {
  h = await openFrozenHarness({
    changesPerMinute: 10_000,
    directory: (builtin) => ({
      ...builtin,
      async introspect(token, hint) {
        const subject = signedIn.get(token);
        if (subject !== undefined) return active(subject);
        const found = await builtin.introspect(token, hint);
        return found.kind === 'active' && sid !== null ? { ...found, grantId: sid } : found;
      },
    }),
  });
  root = await signIn('Root', true);
  ada = await signIn('Ada');
  await setMcpPolicy(h);
  const tools = { ...defaultMcpPolicy.tools, update_site: 'allow' as const, extend_site: 'allow' as const };
  const policy = { ...defaultMcpPolicy, enabled: true, allowChanges: true, callsPerMinute: 1_000, tools };
  // Not by setMcpPolicy(), which gives the client a definition.
  await h.app.services.mcpPolicy.put(systemAuditContext, '*', policy);
  const { data } = await h.call('POST', '/sites', {
    as: ada,
    query: { name: 'Handbook', visibility: 'private' },
    raw: { type: 'text/html', bytes: '<!doctype html><title>x</title>' },
  });
  siteId = data.id;
});
beforeEach(async () => {
  // So that the consent used last is known.
  h.clock.advance(second);
  sid = null;
  const { data } = await asRoot('GET', path);
  for (const { id } of data.definitions) await asRoot('DELETE', `${path}/${id}`);
});
afterAll(async () => {
  vi.useRealTimers();
  await h.close();
});

const asRoot = (method: string, at: string, body?: object) =>
  h.call(method, at, { as: root, ...(body === undefined ? {} : { body }) });
const define = async (name: string, more: object = {}): Promise<string> => {
  const body = {
    name,
    purpose: `For ${name}`,
    tools: { get_context: 'allow', get_site: 'allow', update_site: 'allow' },
    isOffered: true,
    clients: [],
    ...more,
  };
  return (await asRoot('POST', path, body)).data.id;
};
const mayUpdate = async (agent: Agent) =>
  (await agent.client.listTools()).tools.some(({ name }) => name === 'update_site');
const access = async (as = ada) => (await h.call('GET', '/me/agents/access', { as })).data.access;
const choose = (session: string, definitionId: string | null, as = ada) =>
  h.call('PUT', `/me/agents/sessions/${session}/definition`, { as, body: { definitionId } });

describe('at consent', () => {
  test('the person chooses among the definitions that are offered, and only this consent gets it', async () => {
    const id = await define('Sites <b>of teams</b>');
    await define('Closed', { isOffered: false });
    const agent = await connectAgent(h, 'Ada', { definition: id });
    expect(agent.consent).toContain('Sites &lt;b&gt;of teams&lt;/b&gt;');
    expect(agent.consent).not.toContain('Closed');
    expect(await agent.use('update_site', { siteId, name: 'Team' })).toMatchObject({ name: 'Team' });
    // The definition narrows, too: it does not name this tool.
    expect((await agent.refusal('list_sites')).code).toBe('tool_hidden');

    const reading = await connectAgent(h, 'Ada');
    expect((await reading.refusal('update_site', { siteId, name: 'Other' })).code).toBe('tool_hidden');
    expect(await reading.use('list_sites')).toMatchObject({ sites: [{ id: siteId }] });
    expect(await mayUpdate(agent)).toBe(true);
    const { events } = await h.app.services.audit.search({ event: 'mcp.definition_chosen' }, undefined, 10);
    expect(events).toMatchObject([
      {
        actor: { kind: 'user', id: ada.user.id },
        target: { kind: 'client', id: 'postern-mcp' },
        details: { definitionId: id },
      },
    ]);
  });

  test('a definition that is not offered, or does not exist, gives the client nothing', async () => {
    const closed = await define('Closed', { isOffered: false });
    const before = (await h.call('GET', '/me/clients', { as: ada })).data;
    for (const definition of [closed, 'agd_doesnotexist'])
      await expect(connectAgent(h, 'Ada', { definition })).rejects.toThrow('not offered');
    expect((await h.call('GET', '/me/clients', { as: ada })).data).toEqual(before);
  });

  test('the definition of the client takes precedence over an earlier choice and over a new one', async () => {
    const id = await define('Sites');
    const agent = await connectAgent(h, 'Ada', { definition: id });
    expect(await mayUpdate(agent)).toBe(true);
    const pinned = await define('Pinned', { tools: { get_site: 'allow' }, clients: ['postern-mcp'] });
    expect(await mayUpdate(agent)).toBe(false);
    const again = await connectAgent(h, 'Ada');
    expect(again.consent).toContain('An administrator chose what its agents are for');
    expect(again.consent).not.toContain('<select');
    await expect(connectAgent(h, 'Ada', { definition: id })).rejects.toThrow('An administrator chose');
    await asRoot('PATCH', `${path}/${pinned}`, { clients: [] });
    expect(await mayUpdate(agent)).toBe(true);
    expect(await mayUpdate(again)).toBe(false);
  });

  test('an administrator’s change of the definition applies from the next call on', async () => {
    const id = await define('Sites');
    const agent = await connectAgent(h, 'Ada', { definition: id });
    const at = `${path}/${id}`;
    await asRoot('PATCH', at, { tools: { get_site: 'allow' } });
    expect(await mayUpdate(agent)).toBe(false);
    await asRoot('PATCH', at, { tools: { update_site: 'allow' } });
    expect(await mayUpdate(agent)).toBe(true);
    await asRoot('PATCH', at, { isOffered: false });
    expect(await mayUpdate(agent)).toBe(false);
    await asRoot('PATCH', at, { isOffered: true });
    expect(await mayUpdate(agent)).toBe(true);
    await asRoot('DELETE', at);
    expect((await agent.refusal('update_site', { siteId, name: 'Third' })).code).toBe('tool_hidden');
    // One with the same name is another one.
    await define('Sites');
    expect(await mayUpdate(agent)).toBe(false);
  });
});

describe('in Settings', () => {
  test('the person chooses for a consent of another provider, and removes the choice', async () => {
    sid = 'session-of-keycloak';
    const id = await define('Sites');
    const agent = await connectAgent(h, 'Ada');
    await agent.use('get_context');
    const [row] = await access();
    expect(row).toMatchObject({ clientId: 'postern-mcp', definition: null, isPinned: false });
    const chosen = await choose(row.sessionId, id);
    expect([chosen.status, chosen.data.definition]).toEqual([200, { id, name: 'Sites' }]);
    expect(await agent.use('update_site', { siteId, name: 'Chosen' })).toMatchObject({ name: 'Chosen' });
    expect((await access())[0]).toMatchObject({ definition: { id }, isPinned: false });
    // Another session there is another consent.
    sid = 'another-session';
    expect(await mayUpdate(agent)).toBe(false);
    sid = 'session-of-keycloak';
    await choose(row.sessionId, null);
    expect(await mayUpdate(agent)).toBe(false);
  });

  test('no choice is possible for another person, of an unoffered definition, for a pinned client, or for an ended consent', async () => {
    sid = 'to-be-refused';
    const id = await define('Sites');
    const closed = await define('Closed', { isOffered: false });
    const agent = await connectAgent(h, 'Ada');
    await agent.use('get_context');
    const { sessionId } = (await access())[0];
    const bea = await signIn('Bea', true);
    expect((await choose(sessionId, id, bea)).error.code).toBe('not_found');
    expect((await choose(sessionId, closed)).error.code).toBe('state_conflict');
    const pinned = await define('Pinned', { clients: ['postern-mcp'] });
    expect((await choose(sessionId, id)).error).toMatchObject({
      code: 'state_conflict',
      message: 'An administrator chose the definition Pinned for this client.',
    });
    expect((await access())[0]).toMatchObject({ definition: { id: pinned }, isPinned: true });
    await asRoot('DELETE', `${path}/${pinned}`);
    expect(await mayUpdate(agent)).toBe(false);
    await h.call('POST', `/me/agents/sessions/${sessionId}/end`, { as: ada });
    expect((await choose(sessionId, id)).error.message).toBe('The access of this client was ended.');
    expect((await access()).map((one: { sessionId: string }) => one.sessionId)).not.toContain(sessionId);
  });

  test('a consent that the provider does not name allows no choice', async () => {
    sid = '';
    const id = await define('Sites');
    const agent = await connectAgent(h, 'Ada');
    await agent.use('get_context');
    const { sessionId } = (await access())[0];
    expect((await choose(sessionId, id)).error.code).toBe('state_conflict');
    expect(await mayUpdate(agent)).toBe(false);
  });

  test('a choice is kept while calls of its consent are stored, and for 90 days', async () => {
    const id = await define('Sites');
    const { feed, grantDefinitions, read } = h.app.services;
    const grant = { issuer: 'https://id.example', subject: 'gone', clientId: 'postern-mcp', grantId: 'old' };
    await grantDefinitions.chooseAtConsent(systemAuditContext, grant, id);
    sid = 'in-use';
    const agent = await connectAgent(h, 'Ada');
    await agent.use('get_context');
    await choose((await access())[0].sessionId, id);
    h.clock.advance(89 * day);
    await grantDefinitions.prune();
    expect(await read.agentDefinitions.choicesOf(grant)).toMatchObject([{ definitionId: id }]);
    h.clock.advance(2 * day);
    // An agent that lists its tools makes no call.
    await feed.poll();
    const gone = { ...ada.user, issuer: grant.issuer, subject: grant.subject };
    const standing = () => grantDefinitions.standingOf(gone, grant);
    expect(await standing()).toMatchObject({ definition: { id } });
    await grantDefinitions.prune();
    expect(await read.agentDefinitions.choicesOf(grant)).toEqual([]);
    expect(await standing()).toMatchObject({ definition: undefined });
    const kept = await read.agentDefinitions.choicesOf(ada.user);
    expect(kept).toEqual([{ clientId: 'postern-mcp', grantId: 'in-use', definitionId: id }]);
  });
});
