// @module-tag sql
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { wholeWorkspace } from '../../../src/features/agents/definitions.ts';
import { defaultMcpPolicy, forEachTool } from '../../../src/features/agents/mcp-policy.ts';
import { type ToolName, toolNames } from '../../../src/features/agents/tool-names.ts';
import type { Answer } from '../../harness.ts';
import { openShop, type Shop } from '../environments/shop.ts';
import { type Agent, connectAgent, setMcpPolicy } from './agent.ts';

/** The workspace of a definition: what its agents reach, of what the person may. */
let shop: Shop;
let agent: Agent;
let definitionId: string;
let siteId: string;
/** An Environment of each repository, which the person created. */
let own: Answer['data'];
let other: Answer['data'];
const path = '/config/agents/definitions';
const sites = ['list_sites', 'get_site', 'get_site_report'];
const siteChanges = ['publish_site', 'update_site', 'extend_site', 'delete_site'];

beforeAll(async () => {
  shop = await openShop();
  const { h, repository } = shop;
  await shop.change({ maxPerOwner: 20, defaultTtlHours: 48, maxTtlHours: 72, extensionHours: 24 });
  await shop.call('POST', '/repositories', {
    body: { fullName: 'acme/other', cloneUrl: repository.url },
  });
  own = (await shop.create()).data;
  other = (await shop.create({ repository: 'acme/other', branch: 'main' })).data;
  const tools = forEachTool(toolNames, () => 'allow' as const);
  await setMcpPolicy(h, { allowChanges: true, callsPerMinute: 1_000, tools });
  const [definition] = await h.app.services.agentDefinitions.list();
  definitionId = definition?.id ?? '';
  const { data } = await shop.call('POST', '/sites', {
    query: { name: 'Handbook', visibility: 'private' },
    raw: { type: 'text/html', bytes: '<!doctype html><title>x</title>' },
  });
  siteId = data.id;
  agent = await connectAgent(h, 'Ada');
});
beforeEach(() => give({}));
afterAll(() => shop.close());

const give = (change: object) =>
  shop.call('PATCH', `${path}/${definitionId}`, { body: { workspace: { ...wholeWorkspace, ...change } } });
const selected = (...repositories: string[]) => ({ repositories: { mode: 'selected', repositories } });
const listed = async () => (await agent.client.listTools()).tools.map(({ name }) => name);
let keys = 0;
const creation = (more: object = {}) => ({
  repository: 'acme/shop',
  branch: 'main',
  idempotencyKey: `creation-${keys++}`,
  ...more,
});

describe('repositories', () => {
  test('MC-06 every tool refuses what lies outside the workspace with the code that a key would get', async () => {
    await give({ ...selected('acme/shop'), maySites: 'none' });
    const outside = { environmentId: other.id };
    const builds = await shop.call('GET', '/builds', { query: { environment: other.id } });
    const [build] = builds.data;
    const refused: Record<Exclude<ToolName, keyof typeof answered>, [string, object]> = {
      list_sites: ['forbidden_scope', {}],
      get_site: ['forbidden_scope', { siteId }],
      get_site_report: ['forbidden_scope', { siteId }],
      get_environment: ['env_not_found', outside],
      wait_for_environment: ['env_not_found', outside],
      get_logs: ['env_not_found', outside],
      diagnose_environment: ['env_not_found', outside],
      preview_environment_config: ['repo_not_onboarded', { repository: 'acme/other' }],
      publish_site: ['forbidden_scope', { name: 'x', files: [{ path: 'index.html', content: 'x' }] }],
      update_site: ['forbidden_scope', { siteId, name: 'x' }],
      extend_site: ['forbidden_scope', { siteId }],
      delete_site: ['forbidden_scope', { siteId }],
      create_environment: ['repo_not_onboarded', creation({ repository: 'acme/other' })],
      configure_environment: ['env_not_found', { ...outside, autoTrack: true }],
      deploy_environment: ['env_not_found', outside],
      extend_environment: ['env_not_found', outside],
      destroy_environment: ['env_not_found', outside],
      cancel_build: ['build_not_found', { buildId: build.id }],
    };
    for (const [tool, [code, input]] of Object.entries(refused))
      expect([tool, (await agent.refusal(tool, { ...input })).code]).toEqual([tool, code]);
    expect((await agent.refusal('get_logs', { buildId: build.id })).code).toBe('build_not_found');
    expect((await agent.refusal('list_environments', { repository: 'acme/other' })).code).toBe(
      'repo_not_onboarded',
    );
    const answers: Record<string, unknown> = {};
    for (const [tool, input] of Object.entries(answered)) answers[tool] = await agent.use(tool, { ...input });
    expect(answers).toMatchObject({
      get_context: { sites: null, workspace: { repositories: ['acme/shop'], maxEnvironments: null } },
      list_repositories: { repositories: [{ fullName: 'acme/shop' }] },
      list_environments: { environments: [{ id: own.id }] },
      list_builds: { builds: [{ environmentId: own.id }] },
      validate_configuration: { valid: false },
    });
    expect((await agent.refusal('list_builds', outside)).code).toBe('env_not_found');
    expect(Object.keys({ ...refused, ...answered }).toSorted()).toEqual(toolNames.toSorted());
  });

  test('resources describe the workspace, and omit sites that it excludes', async () => {
    await give({ ...selected('acme/shop'), maxEnvironments: 2, maySites: 'none' });
    const read = async (name: string) => {
      const [content] = (await agent.client.readResource({ uri: `postern://${name}` })).contents;
      return JSON.parse(content !== undefined && 'text' in content ? content.text : '');
    };
    expect(await read('capabilities')).toMatchObject({ sites: null, environments: { enabled: true } });
    expect((await read('policy')).workspace).toEqual({
      ...selected('acme/shop'),
      maxEnvironments: 2,
      environmentTtlHours: null,
      maySites: 'none',
    });
    await give({});
    expect(await read('capabilities')).toMatchObject({ sites: { enabled: true } });
  });

  test('a renamed repository stays in the workspace, and a deleted one leaves none, not all', async () => {
    await shop.call('POST', '/repositories', {
      body: { fullName: 'acme/brief', cloneUrl: shop.repository.url },
    });
    await give(selected('acme/brief'));
    await shop.call('PATCH', '/repositories/acme/brief', { body: { fullName: 'acme/renamed' } });
    expect(await agent.use('list_repositories')).toMatchObject({
      repositories: [{ fullName: 'acme/renamed' }],
    });
    await shop.call('POST', '/repositories', {
      body: { fullName: 'acme/brief', cloneUrl: shop.repository.url },
    });
    const named = async () => {
      const { data } = await shop.call('GET', path);
      return data.definitions[0].workspace.repositories;
    };
    expect(await named()).toEqual({ mode: 'selected', repositories: ['acme/renamed'] });
    await shop.call('DELETE', '/repositories/acme/renamed');
    expect(await named()).toEqual({ mode: 'selected', repositories: [] });
    expect(await agent.use('list_repositories')).toMatchObject({ repositories: [] });
    expect(await agent.use('list_environments')).toMatchObject({ environments: [] });
  });

  test('a repository that is not registered is refused by its name, and nothing is changed', async () => {
    const { status, error } = await give(selected('acme/shop', 'acme/none'));
    expect([status, error]).toMatchObject([
      400,
      { code: 'repo_not_found', message: 'The repository acme/none is not registered.' },
    ]);
    expect(await agent.use('get_context')).toMatchObject({ workspace: { repositories: null } });
  });
});

/** The tools that answer in the narrow workspace of the first test. */
const answered = {
  get_context: {},
  list_repositories: {},
  list_environments: {},
  list_builds: {},
  validate_configuration: { content: 'version: 1\nservices: {}\n' },
};

describe('sites', () => {
  test.each([
    ['none', []],
    ['read', sites],
    ['publish', [...sites, ...siteChanges]],
  ])('maySites %s lists the tools %j', async (maySites, expected) => {
    await give({ maySites });
    const names = await listed();
    expect([...sites, ...siteChanges].filter((name) => names.includes(name))).toEqual(expected);
    expect(names).toContain('create_environment');
  });

  test('get_context says whether a tool is left that changes something', async () => {
    const { agentDefinitions } = shop.h.app.services;
    const [definition] = await agentDefinitions.list();
    const body = { tools: { get_context: 'allow', update_site: 'allow' } };
    await shop.call('PATCH', `${path}/${definitionId}`, { body });
    expect(await agent.use('get_context')).toMatchObject({ mayChange: true });
    await give({ maySites: 'read' });
    expect(await agent.use('get_context')).toMatchObject({ mayChange: false });
    await shop.call('PATCH', `${path}/${definitionId}`, { body: { tools: definition?.tools } });
  });

  test('the person is not asked to approve what the workspace refuses', async () => {
    const tools = { ...forEachTool(toolNames, () => 'allow' as const), update_site: 'ask' as const };
    await setMcpPolicy(shop.h, { ...defaultMcpPolicy, enabled: true, allowChanges: true, tools });
    await give({ maySites: 'read' });
    const refused = await agent.refusal('update_site', { siteId, name: 'Team' });
    expect(refused).toMatchObject({
      code: 'forbidden_scope',
      details: { requiredScope: 'sites:write', grantedScopes: expect.arrayContaining(['sites:read']) },
    });
    expect((await shop.call('GET', '/me/agents/approvals')).data.approvals).toEqual([]);
    await give({});
    expect((await agent.refusal('update_site', { siteId, name: 'Team' })).code).toBe('approval_required');
  });
});

describe('Environments', () => {
  test('of two parallel creations at the limit, one gets the last place; the person’s own places stay free', async () => {
    await give({ maxEnvironments: 2 });
    const first = creation();
    const created = (await agent.use('create_environment', first)) as { id: string };
    const results = await Promise.allSettled(
      [creation(), creation()].map((input) => agent.use('create_environment', input)),
    );
    expect(results.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
    expect(await agent.refusal('create_environment', creation())).toMatchObject({
      code: 'quota_exceeded',
      message:
        'Agents of this definition have 2 Environments of this person; the definition allows at most 2.',
    });
    // A repeated call is no creation.
    expect(await agent.use('create_environment', first)).toMatchObject({ id: created.id, replayed: true });
    expect((await shop.create()).status).toBe(202);
    await give({ maxEnvironments: 0 });
    expect((await agent.refusal('create_environment', creation())).code).toBe('quota_exceeded');
    await give({ maxEnvironments: 3 });
    expect(await agent.use('create_environment', creation())).toMatchObject({ replayed: false });
  });

  test('no agent gets a longer lease than its workspace allows, at creation or by extension', async () => {
    await give({ environmentTtlHours: 4 });
    expect(await agent.refusal('create_environment', creation({ ttlHours: 5 }))).toMatchObject({
      code: 'lifetime_too_long',
      message: 'ttlHours is 5; the agent definition allows at most 4.',
    });
    const { id: environmentId, expiresAt } = (await agent.use('create_environment', creation())) as {
      id: string;
      expiresAt: string;
    };
    const hours = (until: string) => (Date.parse(until) - shop.h.clock.now()) / 3_600_000;
    expect(Math.ceil(hours(expiresAt))).toBe(4);
    expect((await agent.refusal('extend_environment', { environmentId, hours: 5 })).code).toBe(
      'lifetime_too_long',
    );
    const extended = (await agent.use('extend_environment', { environmentId })) as { expiresAt: string };
    expect(Math.ceil(hours(extended.expiresAt))).toBe(4);
    const byPerson = await shop.call('POST', `/environments/${environmentId}/extend`, { body: {} });
    expect(Math.ceil(hours(byPerson.data.expiresAt))).toBe(28);
  });
});
