// @module-tag sql
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { systemAuditContext } from '../../../src/core/caller.ts';
import {
  defaultInstructions,
  defaultInstructionsHash,
} from '../../../src/features/agents/default-instructions.ts';
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
  await mcpPolicy.put(systemAuditContext, String(headers['etag']), { ...policy, allowChanges: true });
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

test('MC-06 a client without a definition only reads, even if the policy allows more', async () => {
  expect(await listed()).toContain('get_site');
  expect(await listed()).not.toContain('update_site');
  expect((await agent.refusal('update_site', { siteId, name: 'Other' })).code).toBe('tool_hidden');
  expect(await agent.use('get_context')).toMatchObject({ mayChange: false });
});

test('a definition gives a client the tools that it names, within the policy, at its next call', async () => {
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
  expect([added.status, added.data]).toEqual([
    201,
    {
      id: added.data.id,
      model: null,
      ...body,
      workspace,
      isOffered: false,
      instructionsStatus: 'current',
      instructionsDefault: defaultInstructionsHash,
    },
  ]);
  expect(await listed()).toEqual(['get_site', 'update_site']);
  expect(await agent.use('update_site', { siteId, name: 'Other' })).toMatchObject({ name: 'Other' });
  expect((await agent.refusal('delete_site', { siteId })).code).toBe('tool_hidden');
  const again = await connectAgent(h, 'Ada');
  expect(again.client.getInstructions()).toBe('Be brief.\n\nName sites after teams.');

  const taken = await asRoot('PATCH', `${path}/${added.data.id}`, { clients: [] });
  expect(taken.data).toEqual({ ...added.data, clients: [] });
  expect((await agent.refusal('update_site', { siteId, name: 'Third' })).code).toBe('tool_hidden');
  expect((await asRoot('DELETE', `${path}/${added.data.id}`)).status).toBe(204);
  expect((await asRoot('GET', path)).data.definitions).toEqual([]);
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
  await mcpPolicy.put(systemAuditContext, etag, asks);
  expect((await agent.refusal('update_site', { siteId, name: 'Asked' })).code).toBe('approval_required');
  await mcpPolicy.put(systemAuditContext, '*', value);
  await asRoot('DELETE', `${path}/${data.id}`);
});

test('a name and a client each belong to one definition', async () => {
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

describe('models', () => {
  const models = '/config/agents/models';
  const put = async (names: string[], query = {}) => {
    const { headers } = await asRoot('GET', models);
    return await h.call('PUT', models, {
      as: root,
      query,
      headers: { 'if-match': headers['etag'] ?? '' },
      body: { models: names.map((name) => ({ name, note: `About ${name}` })) },
    });
  };

  test('a definition names one of the models, or none; a named model cannot be removed', async () => {
    const body = { name: 'Modelled', purpose: 'Names a model', tools: {}, clients: [], model: 'large-1' };
    const refused = await asRoot('POST', path, body);
    expect([refused.status, refused.error]).toMatchObject([
      400,
      { code: 'invalid_body', message: 'model: must be one of the models for agents, and large-1 is not' },
    ]);
    expect((await put(['large-1', 'small-1'])).status).toBe(200);
    const { data } = await asRoot('POST', path, body);
    expect(data.model).toBe('large-1');
    expect((await asRoot('PATCH', `${path}/${data.id}`, { model: 'other' })).error.code).toBe('invalid_body');

    const named = [{ model: 'large-1', definitions: ['Modelled'] }];
    const tried = await put(['small-1'], { dryRun: 'true' });
    expect(tried.data.dryRun).toEqual({ removed: ['large-1'], named });
    const kept = await put(['small-1']);
    expect([kept.status, kept.error]).toMatchObject([
      409,
      {
        code: 'state_conflict',
        message: 'Agent definitions name models that the document leaves out: large-1 (Modelled).',
        details: { named },
      },
    ]);
    const reverted = await h.call('POST', `${models}/revert`, {
      as: root,
      headers: { 'if-match': '*' },
      body: { version: 0 },
    });
    expect(reverted.error.code).toBe('state_conflict');
    expect((await asRoot('GET', models)).data.version).toBe(1);

    await asRoot('PATCH', `${path}/${data.id}`, { model: null });
    expect((await put(['small-1'])).data.models).toEqual([{ name: 'small-1', note: 'About small-1' }]);
    await asRoot('DELETE', `${path}/${data.id}`);
  });

  test('if a definition names a model while a change removes it, one of them is refused', async () => {
    await put(['large-1']);
    const body = { name: 'Race', purpose: 'Names a model', tools: {}, clients: [], model: 'large-1' };
    const [added, removed] = await Promise.all([asRoot('POST', path, body), put([])]);
    expect([added.status, removed.status].filter((status) => status < 300)).toHaveLength(1);
    if (added.status === 201) await asRoot('DELETE', `${path}/${added.data.id}`);
  });

  test('a document that names a model twice, or by a name with spaces, is refused by its field', async () => {
    expect((await put(['large-1', 'large-1'])).error.code).toBe('config_invalid');
    expect((await put(['large 1'])).error.message).toMatch(/^models\.0\.name: /);
    const stale = await h.call('PUT', models, {
      as: root,
      headers: { 'if-match': '"0-stale"' },
      body: { models: [] },
    });
    expect(stale.error.code).toBe('precondition_failed');
  });
});

test('everyone reads the definitions, without their clients; a key only the names of repositories that it reaches', async () => {
  await h.repository('acme/seen');
  await h.repository('acme/unseen');
  const ada = await h.person('Bea');
  const { data } = await asRoot('POST', path, {
    name: 'Offered',
    purpose: 'Reads',
    tools: { get_site: 'allow' },
    workspace: {
      repositories: { mode: 'selected', repositories: ['acme/seen', 'acme/unseen'] },
      maxEnvironments: null,
      environmentTtlHours: null,
      maySites: 'read',
    },
    clients: ['postern-mcp'],
  });
  const { clients: _, instructionsStatus: _status, instructionsDefault: _default, ...offered } = data;
  const read = async (as: Parameters<Harness['call']>[2]) =>
    (await h.call('GET', '/agents/definitions', as)).data.definitions.find(
      ({ name }: { name: string }) => name === 'Offered',
    );
  expect(await read({ as: ada })).toEqual(offered);
  const key = await h.key(ada, {
    scopes: ['repos:read'],
    repositoryAccess: { mode: 'selected', repositories: ['acme/seen'] },
  });
  expect((await read({ as: key })).workspace.repositories.repositories).toEqual(['acme/seen']);
  await asRoot('DELETE', `${path}/${data.id}`);
});

describe('instructions', () => {
  const body = { name: 'Told', purpose: 'Is told', tools: { get_site: 'allow' }, clients: ['postern-mcp'] };

  test('agents also read them as a prompt: the policy’s, then the definition’s or the default', async () => {
    const { data } = await asRoot('POST', path, body);
    const promptOf = async (of: Agent) => {
      const { prompts } = await of.client.listPrompts();
      expect(prompts).toMatchObject([{ name: 'instructions' }]);
      const { messages } = await of.client.getPrompt({ name: 'instructions' });
      return messages;
    };
    const text = (own: string) => [{ role: 'user', content: { type: 'text', text: `Be brief.\n\n${own}` } }];
    expect(await promptOf(agent)).toEqual(text(defaultInstructions));
    const older = await connectAgent(h, 'Ada', { mode: 'legacy' });
    await asRoot('PATCH', `${path}/${data.id}`, { instructions: 'Name sites after teams.' });
    expect(await promptOf(agent)).toEqual(text('Name sites after teams.'));
    expect(await promptOf(older)).toEqual(text('Name sites after teams.'));
    await expect(agent.client.getPrompt({ name: 'other' })).rejects.toMatchObject({ code: -32_602 });
    await asRoot('DELETE', `${path}/${data.id}`);
  });

  test('without any instructions there is no prompt', async () => {
    await setMcpPolicy(h, { instructions: '' });
    expect((await agent.client.listPrompts()).prompts).toEqual([]);
    await expect(agent.client.getPrompt({ name: 'instructions' })).rejects.toMatchObject({ code: -32_602 });
  });

  test('instructions written against the default of another version are stale until they are sent again', async () => {
    const { data } = await asRoot('POST', path, body);
    expect(data).toMatchObject({ instructionsStatus: 'default', instructionsDefault: null });
    const at = `${path}/${data.id}`;
    const instructions = 'Name sites after teams.';
    expect((await asRoot('PATCH', at, { instructions })).data).toMatchObject({
      instructionsStatus: 'current',
      instructionsDefault: defaultInstructionsHash,
    });
    // As an earlier version, with another default, stored them.
    const stored = (await h.app.services.agentDefinitions.list()).find(({ id }) => id === data.id);
    if (stored === undefined) throw new Error('There is no definition.');
    const older = { ...stored, instructionsDefault: 'e'.repeat(64) };
    await h.app.services.read.agentDefinitions.put(older);
    const listing = (await asRoot('GET', path)).data;
    expect(listing.definitions).toContainEqual(
      expect.objectContaining({ id: data.id, instructionsStatus: 'stale' }),
    );
    expect(listing.defaultInstructions).toEqual({ text: defaultInstructions, hash: defaultInstructionsHash });
    // A change of something else does not say that anyone compared them.
    expect((await asRoot('PATCH', at, { purpose: 'Other' })).data.instructionsStatus).toBe('stale');
    expect((await asRoot('PATCH', at, { instructions })).data.instructionsStatus).toBe('current');
    await asRoot('DELETE', at);
  });
});
