import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { defaultMcpPolicy, type McpPolicy } from '../../../src/features/agents/mcp-policy.ts';
import { type Harness, type Person } from '../../harness.ts';
import { openFrozenHarness } from '../access/cast.ts';
import { type Agent, connectAgent, setMcpPolicy } from './agent.ts';

/** Agent definitions: which client gets which tools. */
let h: Harness;
let root: Person;
let agent: Agent;
let siteId: string;
const path = '/config/agents/definitions';
const asRoot = (method: string, at: string, body?: object) =>
  h.call(method, at, { as: root, ...(body === undefined ? {} : { body }) });
const listed = async () => (await agent.client.listTools()).tools.map(({ name }) => name);

beforeAll(async () => {
  h = await openFrozenHarness({ changesPerMinute: 10_000 });
  const { mcpPolicy } = h.app.services;
  root = await h.person('Root', { admin: true });
  const ada = await h.person('Ada');
  // Not by setMcpPolicy(), which gives the client every tool.
  const tools: McpPolicy['tools'] = { ...defaultMcpPolicy.tools, update_site: 'allow', list_sites: 'hidden' };
  const policy = { ...defaultMcpPolicy, enabled: true, tools, instructions: 'Be brief.' };
  await setMcpPolicy(h, policy);
  const { headers } = await asRoot('GET', '/config/mcp');
  await mcpPolicy.put(contextOfTest, String(headers['etag']), { ...policy, allowChanges: true });
  agent = await connectAgent(h, 'Ada');
  const { data } = await h.call('POST', '/sites', {
    as: ada,
    query: { name: 'Handbook', visibility: 'private' },
    raw: { type: 'text/html', bytes: '<!doctype html><title>x</title>' },
  });
  siteId = data.id;
});
afterAll(async () => {
  vi.useRealTimers();
  await h.close();
});

const contextOfTest = {
  actor: { kind: 'system', id: null, name: 'test', credential: null },
  origin: { requestId: null, address: null, agent: null },
} as const;

test('MC-06 a client without a definition only reads, whatever the policy allows', async () => {
  expect(await listed()).toContain('get_site');
  expect(await listed()).not.toContain('update_site');
  expect((await agent.refusal('update_site', { siteId, name: 'Other' })).code).toBe('tool_hidden');
  expect(await agent.use('get_context')).toMatchObject({ mayChange: false });
});

test('a definition gives a client the tools that it names, of those that the policy allows, at its next call', async () => {
  const tools = { get_site: 'allow', list_sites: 'allow', update_site: 'allow', delete_site: 'allow' };
  const body = {
    name: 'Sites',
    purpose: 'Looks after sites',
    instructions: 'Name sites after teams.',
    tools,
    clients: ['postern-mcp'],
  };
  // What a definition has that says nothing of a workspace.
  const workspace = {
    repositories: { mode: 'all' },
    maxEnvironments: null,
    environmentTtlHours: null,
    maySites: 'publish',
  };
  const added = await asRoot('POST', path, body);
  expect([added.status, added.data]).toEqual([201, { id: added.data.id, ...body, workspace }]);
  expect(await listed()).toEqual(['get_site', 'update_site']);
  expect(await agent.use('update_site', { siteId, name: 'Other' })).toMatchObject({ name: 'Other' });
  expect((await agent.refusal('delete_site', { siteId })).code).toBe('tool_hidden');
  const again = await connectAgent(h, 'Ada');
  expect(again.client.getInstructions()).toBe('Be brief.\n\nName sites after teams.');

  const taken = await asRoot('PATCH', `${path}/${added.data.id}`, { clients: [] });
  expect(taken.data).toEqual({ ...added.data, clients: [] });
  expect((await agent.refusal('update_site', { siteId, name: 'Third' })).code).toBe('tool_hidden');
  expect((await asRoot('DELETE', `${path}/${added.data.id}`)).status).toBe(204);
  expect((await asRoot('GET', path)).data).toEqual({ definitions: [] });
  expect((await asRoot('DELETE', `${path}/${added.data.id}`)).error.code).toBe('not_found');

  const { events } = await h.app.services.audit.search({ event: 'config.agents.changed' }, undefined, 10);
  expect(events.map(({ reason }) => reason)).toEqual([
    'definition_removed',
    'definition_changed',
    'definition_added',
  ]);
});

test('the stricter of policy and definition decides whether the person is asked', async () => {
  const { mcpPolicy } = h.app.services;
  const { value, etag } = await mcpPolicy.inForce();
  const body = { name: 'Ask', purpose: 'Asks', tools: { update_site: 'ask' }, clients: ['postern-mcp'] };
  const { data } = await asRoot('POST', path, body);
  expect((await agent.refusal('update_site', { siteId, name: 'Asked' })).code).toBe('approval_required');
  await asRoot('PATCH', `${path}/${data.id}`, { tools: { update_site: 'allow' } });
  expect(await agent.use('update_site', { siteId, name: 'Allowed' })).toMatchObject({ name: 'Allowed' });
  const asks = { ...value, tools: { ...value.tools, update_site: 'ask' as const } };
  await mcpPolicy.put(contextOfTest, etag, asks);
  expect((await agent.refusal('update_site', { siteId, name: 'Asked' })).code).toBe('approval_required');
  await mcpPolicy.put(contextOfTest, '*', value);
  await asRoot('DELETE', `${path}/${data.id}`);
});

test('a name and a client belong to one definition each', async () => {
  const body = { name: 'One', purpose: 'Nothing', tools: {}, clients: ['a-client'] };
  const { data } = await asRoot('POST', path, body);
  expect((await asRoot('POST', path, { ...body, clients: [] })).error.code).toBe('name_conflict');
  const second = await asRoot('POST', path, { ...body, name: 'Two' });
  expect([second.status, second.error]).toMatchObject([
    409,
    { code: 'state_conflict', message: 'The client a-client has the definition One already.' },
  ]);
  expect((await asRoot('PATCH', `${path}/${data.id}`, { name: 'One' })).status).toBe(200);
  expect(
    (await asRoot('POST', path, { ...body, name: 'Three', tools: { mint_key: 'allow' } })).error.code,
  ).toBe('invalid_body');
});
