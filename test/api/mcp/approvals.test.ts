// @module-tag sql
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { systemAuditContext } from '../../../src/core/caller.ts';
import { minute } from '../../../src/core/clock.ts';
import { defaultMcpPolicy, type McpPolicy, type ToolRule } from '../../../src/features/agents/mcp-policy.ts';
import { wholeWorkspace } from '../../../src/features/agents/definitions.ts';
import { type Harness, type Person, uiOrigin } from '../../harness.ts';
import { dump, openFrozenHarness } from '../access/cast.ts';
import { type Agent, connectAgent, setMcpPolicy } from './agent.ts';

/** Calls that the person approves: in the browser alone, each once, and for exactly what the page shows. */
let h: Harness;
let root: Person;
let ada: Person;
let bea: Person;
let agent: Agent;
const path = '/me/agents/approvals';
beforeAll(async () => {
  h = await openFrozenHarness({ changesPerMinute: 10_000 });
  await setMcpPolicy(h);
  root = await h.person('Root', { admin: true });
});
/** People of their own for each test, so that nothing waits for them. */
let count = 0;
beforeEach(async () => {
  count += 1;
  vi.setSystemTime(h.clock.now());
  await asking({});
  ada = await h.person(`Ada${count}`);
  bea = await h.person(`Bea${count}`);
  agent = await connectAgent(h, `Ada${count}`);
});
afterAll(async () => {
  vi.useRealTimers();
  await h.close();
});

const asking = (rules: Partial<McpPolicy['tools']>) =>
  setMcpPolicy(h, {
    allowChanges: true,
    callsPerMinute: 10_000,
    clients: { registration: 'open', metadataHosts: [] },
    tools: { ...defaultMcpPolicy.tools, update_site: 'ask', delete_site: 'ask', ...rules },
  });
const site = async (as = ada) => {
  const { data } = await h.call('POST', '/sites', {
    as,
    query: { name: 'Handbook', visibility: 'private' },
    raw: { type: 'text/html', bytes: '<!doctype html><title>x</title>' },
  });
  return data.id as string;
};
const nameOf = async (id: string) => (await h.call('GET', `/sites/${id}`, { as: ada })).data.name;
/** The call is refused; resolves with the id of its approval. */
const ask = async (name: string, input: Record<string, unknown>, by = agent) => {
  const { code, hint, details } = await by.refusal(name, input);
  expect(code).toBe('approval_required');
  const url = String(details?.['url']);
  expect(hint).toContain(url);
  expect(url.startsWith(`${uiOrigin}/settings/agents/approvals/agp_`)).toBe(true);
  return url.slice(url.lastIndexOf('/') + 1);
};
const read = (id: string, as = ada) => h.call('GET', `${path}/${id}`, { as });
const decide = (id: string, verb: 'approve' | 'refuse', as = ada) =>
  h.call('POST', `${path}/${id}/${verb}`, { as });

test('a call waits for the person, who sees exactly its arguments; approved, the same call succeeds once', async () => {
  const siteId = await site();
  const input = { siteId, name: 'Team' };
  const id = await ask('update_site', input);
  expect(await ask('update_site', { name: 'Team', siteId })).toBe(id);
  expect(await nameOf(siteId)).toBe('Handbook');
  const shown = { id, clientId: 'postern-mcp', tool: 'update_site', status: 'waiting' };
  expect((await h.call('GET', path, { as: ada })).data).toMatchObject({ approvals: [shown] });
  expect((await read(id)).data).toMatchObject({ ...shown, arguments: input });

  expect((await decide(id, 'approve')).data).toMatchObject({ id, status: 'approved' });
  expect((await decide(id, 'approve')).status).toBe(200);
  expect((await decide(id, 'refuse')).error.code).toBe('state_conflict');
  const { data: decided } = await read(id);
  expect([decided.status, 'arguments' in decided]).toEqual(['approved', false]);
  expect((await h.call('GET', path, { as: ada })).data).toMatchObject({ approvals: [] });
  expect(await nameOf(siteId)).toBe('Handbook');

  expect(await agent.use('update_site', input)).toMatchObject({ name: 'Team' });
  expect((await read(id)).data).toMatchObject({ status: 'used' });
  expect(await ask('update_site', input)).not.toBe(id);
});

test('parallel calls use an approval once', async () => {
  const siteId = await site();
  const input = { siteId, name: 'Once' };
  await decide(await ask('update_site', input), 'approve');
  const made = await Promise.allSettled(Array.from({ length: 5 }, () => agent.use('update_site', input)));
  expect(made.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
});

test('an approval is for its arguments, client, tool and version only, for ten minutes', async () => {
  const siteId = await site();
  const input = { siteId, name: 'Team' };
  const first = await ask('update_site', input);
  await decide(first, 'approve');
  await ask('update_site', { siteId, name: 'Teams' });
  await ask('delete_site', { siteId });
  const another = await connectAgent(h, `Ada${count}`, { registersAs: 'Other' });
  await h.app.services.agentDefinitions.add(systemAuditContext, {
    name: 'Other',
    purpose: 'For tests',
    instructions: '',
    tools: { update_site: 'allow' },
    model: null,
    workspace: wholeWorkspace,
    isOffered: false,
    clients: [another.clientId],
  });
  expect(await ask('update_site', input, another)).not.toBe(first);

  // The site changes: the person approved another version of it.
  await h.call('PATCH', `/sites/${siteId}`, { as: ada, body: { spa: true } });
  const second = await ask('update_site', input);
  expect(second).not.toBe(first);
  await decide(second, 'approve');
  h.clock.advance(10 * minute);
  vi.setSystemTime(h.clock.now());
  const later = await connectAgent(h, `Ada${count}`);
  const third = await ask('update_site', input, later);
  expect([first, second]).not.toContain(third);
  expect((await read(second)).status).toBe(404);
  await h.app.services.agentApprovals.prune();
  expect((await read(third)).status).toBe(200);
});

test('only the person decides, in the browser: no other person, no administrator, no key, no other page', async () => {
  const siteId = await site();
  const id = await ask('delete_site', { siteId });
  for (const as of [bea, root]) {
    expect((await read(id, as)).status).toBe(404);
    expect((await decide(id, 'approve', as)).status).toBe(404);
    expect((await h.call('GET', path, { as })).data).toMatchObject({ approvals: [] });
  }
  const key = await h.key(ada);
  expect((await h.call('POST', `${path}/${id}/approve`, { as: key })).status).toBe(403);
  const token = { headers: { authorization: `Bearer ${agent.accessToken}` } };
  expect((await h.call('POST', `${path}/${id}/approve`, token)).status).toBe(401);
  const elsewhere = { as: ada, headers: { origin: 'https://evil.example' } };
  expect((await h.call('POST', `${path}/${id}/approve`, elsewhere)).error.code).toBe('forbidden_origin');
  expect((await read(id)).data.status).toBe('waiting');
});

test('a refused call stays refused, and its agent gets the refusal', async () => {
  const siteId = await site();
  const id = await ask('delete_site', { siteId });
  expect((await decide(id, 'refuse')).data).toMatchObject({ status: 'refused' });
  expect((await agent.refusal('delete_site', { siteId })).code).toBe('approval_refused');
  expect((await decide(id, 'approve')).error.code).toBe('state_conflict');
});

test('an approved call passes every check again', async () => {
  const siteId = await site();
  const input = { siteId, name: 'Team' };
  await decide(await ask('update_site', input), 'approve');
  await asking({ update_site: 'hidden' });
  expect((await agent.refusal('update_site', input)).code).toBe('tool_hidden');
});

test('an Environment is created from the repository that the person approved, not from a later one of its name', async () => {
  await asking({ create_environment: 'ask' });
  const created = { repository: 'acme/moved', branch: 'main', idempotencyKey: 'key-12345' };
  expect((await agent.refusal('create_environment', created)).code).toBe('repo_not_onboarded');
  await h.repository('acme/moved');
  await decide(await ask('create_environment', created), 'approve');
  await h.call('PATCH', '/repositories/acme/moved', { as: root, body: { fullName: 'acme/first' } });
  await h.repository('acme/moved');
  const second = await ask('create_environment', created);
  await decide(second, 'approve');
  // Environments are off. The approval is used up all the same.
  expect((await agent.refusal('create_environment', created)).code).toBe('environments_disabled');
  expect(await ask('create_environment', created)).not.toBe(second);
});

test('the approval of a call that destroys takes the place of its confirmation', async () => {
  const siteId = await site();
  const id = await ask('delete_site', { siteId });
  expect(await ask('delete_site', { siteId, confirmation: 'made up' })).toBe(id);
  await decide(id, 'approve');
  expect(await agent.use('delete_site', { siteId })).toMatchObject({
    done: true,
    result: { status: 'deleted' },
  });
});

test('a call with wrong arguments, or for something that the person cannot see, requests no approval', async () => {
  const others = await site(bea);
  expect((await agent.refusal('update_site', { siteId: others, name: 'Mine' })).code).toBe('site_not_found');
  expect((await agent.refusal('update_site', { name: 'Mine' })).code).toBe('invalid_body');
  expect((await h.call('GET', path, { as: ada })).data).toMatchObject({ approvals: [] });
});

test('KF-03 a call with an API key in its arguments is refused, and requests no approval', async () => {
  const { value } = await h.key(ada);
  const refused = await agent.refusal('update_site', { siteId: await site(), name: value });
  expect(refused).toMatchObject({ code: 'invalid_body', message: expect.stringContaining('API key') });
  expect((await h.call('GET', path, { as: ada })).data).toMatchObject({ approvals: [] });
});

test('at most five calls of a client wait for a person', async () => {
  const siteId = await site();
  const ids: string[] = [];
  for (let number = 1; number <= 5; number += 1)
    ids.push(await ask('update_site', { siteId, name: `Name ${number}` }));
  expect((await agent.refusal('update_site', { siteId, name: 'Name 6' })).code).toBe('quota_exceeded');
  const hers = await connectAgent(h, `Bea${count}`);
  await ask('update_site', { siteId: await site(bea), name: 'Hers' }, hers);
  await decide(ids[0] ?? '', 'refuse');
  await ask('update_site', { siteId, name: 'Name 6' });
});

test('while /mcp is off, nothing can be approved', async () => {
  const id = await ask('delete_site', { siteId: await site() });
  await setMcpPolicy(h, { enabled: false });
  expect((await read(id)).status).toBe(404);
  expect((await decide(id, 'approve')).status).toBe(404);
  expect((await h.call('GET', path, { as: ada })).data).toEqual({ isOn: false, approvals: [] });
});

test('arguments are stored encrypted until the person decides; the record and the audit log name the approval', async () => {
  const siteId = await site();
  const input = { siteId, name: 'A name for nobody else' };
  await setMcpPolicy(h, {
    ...(await h.app.services.mcpPolicy.inForce()).value,
    sessionReview: { keepDays: 30, arguments: 'none' },
  });
  const id = await ask('update_site', input);
  expect(await dump(h)).not.toContain(input.name);
  await decide(id, 'approve');
  await agent.use('update_site', input);
  const [session] = (await h.call('GET', '/me/agents/sessions', { as: ada })).data;
  expect((await h.call('GET', `/me/agents/sessions/${session.id}`, { as: ada })).data).toMatchObject([
    { tool: 'update_site', code: 'approval_required', approvalId: id },
    { tool: 'update_site', code: null, approvalId: id },
  ]);
  const { events } = await h.app.services.audit.search({ actor: ada.user.id }, undefined, 20);
  const named = events.filter(({ event }) => event.startsWith('mcp.'));
  expect(named).toMatchObject([
    { event: 'mcp.tool_called', details: { tool: 'update_site', approvalId: id } },
    { event: 'mcp.approval_decided', reason: 'approved', details: { tool: 'update_site', approvalId: id } },
  ]);
});

test('a client that opens pages sends the person to the approval, and repeats the call by itself', async () => {
  const siteId = await site();
  const opened: string[] = [];
  const opening = async (answer: 'accept' | 'decline') =>
    await connectAgent(h, `Ada${count}`, {
      async opensPage(url) {
        opened.push(url);
        if (answer === 'accept') await decide(url.slice(url.lastIndexOf('/') + 1), 'approve');
        return answer;
      },
    });
  const input = { siteId, name: 'Opened' };
  expect(await (await opening('accept')).use('update_site', input)).toMatchObject({ name: 'Opened' });
  expect(opened).toEqual([expect.stringContaining(`${uiOrigin}/settings/agents/approvals/agp_`)]);
  const other = { siteId, name: 'Not opened' };
  expect((await (await opening('decline')).refusal('update_site', other)).code).toBe('approval_required');
  expect(opened).toHaveLength(2);
});

test.each([
  [
    'the access of the client ends',
    'invalid_credential',
    async () => {
      const [session] = (await h.call('GET', '/me/agents/sessions', { as: ada })).data;
      await h.call('POST', `/me/agents/sessions/${session.id}/end`, { as: ada });
    },
  ],
  ['the tool is hidden', 'state_conflict', () => asking({ update_site: 'hidden' })],
  ['the endpoint is switched off', 'not_found', () => setMcpPolicy(h, { enabled: false })],
])('when %s while a call waits at its page, the approval is not used', async (_title, code, change) => {
  const siteId = await site();
  const { agentApprovals } = h.app.services;
  const { use } = agentApprovals;
  const spy = vi.spyOn(agentApprovals, 'use');
  const waiting = await connectAgent(h, `Ada${count}`, {
    async opensPage(url) {
      // The person approves once the repeated call waits.
      spy.mockImplementationOnce(async (call) => {
        const asked = await use(call);
        await decide(url.slice(url.lastIndexOf('/') + 1), 'approve');
        await change();
        return asked;
      });
      return 'accept';
    },
  });
  const refused = await waiting.refusal('update_site', { siteId, name: 'Approved' });
  spy.mockRestore();
  expect(refused.code).toBe(code);
  expect(await nameOf(siteId)).toBe('Handbook');
});

test('a tool that only reads can also require approval', async () => {
  const rules: Record<string, ToolRule> = { list_sites: 'ask' };
  await asking(rules);
  const id = await ask('list_sites', { mine: true });
  await decide(id, 'approve');
  expect(await agent.use('list_sites', { mine: true })).toMatchObject({ sites: [] });
});

const setClient = (status: 'allowed' | 'blocked') =>
  h.call('PATCH', '/config/mcp/clients/postern-mcp', { as: root, body: { status } });

test.each<[string, () => Promise<unknown>]>([
  [
    'the person ends the session',
    async () => {
      const [session] = (await h.call('GET', '/me/agents/sessions', { as: ada })).data;
      await h.call('POST', `/me/agents/sessions/${session.id}/end`, { as: ada });
    },
  ],
  ['the person disconnects the client', () => h.call('DELETE', '/me/clients/postern-mcp', { as: ada })],
  ['an administrator blocks the client', () => setClient('blocked')],
])('when %s, no call waits, and none can be approved', async (_title, end) => {
  const siteId = await site();
  const ids = [
    await ask('update_site', { siteId, name: 'First' }),
    await ask('update_site', { siteId, name: 'Second' }),
  ];
  const [approved = '', waiting = ''] = ids;
  expect((await decide(approved, 'approve')).status).toBe(200);
  await end();
  expect((await h.call('GET', path, { as: ada })).data.approvals).toEqual([]);
  for (const id of ids) expect((await read(id)).error.code).toBe('not_found');
  for (const verb of ['approve', 'refuse'] as const)
    expect((await decide(waiting, verb)).error.code).toBe('not_found');
  await setClient('allowed');
});

test('an approval ends with its consent: another one of the same client asks again', async () => {
  const siteId = await site();
  const input = { siteId, name: 'Team' };
  const id = await ask('update_site', input);
  await decide(id, 'approve');
  const other = await connectAgent(h, `Ada${count}`);
  expect(await ask('update_site', input, other)).not.toBe(id);
  expect(await agent.use('update_site', input)).toMatchObject({ name: 'Team' });
});
