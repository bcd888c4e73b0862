import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { minute } from '../../../src/core/clock.ts';
import { defaultInstructions } from '../../../src/features/agents/default-instructions.ts';
import { defaultMcpPolicy } from '../../../src/features/agents/mcp-policy.ts';
import { changeToolNames, type ToolName } from '../../../src/features/agents/tool-names.ts';
import { type Harness, type Person, uiOrigin } from '../../harness.ts';
import { openFrozenHarness } from '../access/cast.ts';
import { type Agent, connectAgent, fetchOf, setMcpPolicy } from './agent.ts';

/** Tools that change something: who may use them, and what they need. */
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
beforeEach(() => allowing(changeToolNames));
afterAll(async () => {
  vi.useRealTimers();
  await h.close();
});

const allowing = (names: readonly ToolName[], more: Partial<typeof defaultMcpPolicy> = {}) =>
  setMcpPolicy(h, {
    allowChanges: true,
    callsPerMinute: 1_000,
    tools: {
      ...defaultMcpPolicy.tools,
      ...Object.fromEntries(names.map((name) => [name, 'allow' as const])),
    },
    ...more,
  });
const site = async (as: Person, visibility: 'public' | 'private' = 'private') => {
  const { data } = await h.call('POST', '/sites', {
    as,
    query: { name: 'Handbook', visibility },
    raw: { type: 'text/html', bytes: '<!doctype html><title>x</title>' },
  });
  return data as { id: string };
};
const listed = async () => (await agent.client.listTools()).tools.map(({ name }) => name);

describe('the policy', () => {
  test('MC-06 without allowChanges, tools that change something are absent and refused', async () => {
    const { id } = await site(ada);
    await allowing(changeToolNames, { allowChanges: false });
    expect((await listed()).filter((name) => changeToolNames.some((one) => one === name))).toEqual([]);
    for (const name of changeToolNames)
      expect((await agent.refusal(name, { siteId: id })).code).toBe('tool_hidden');
    expect(await agent.use('get_context')).toMatchObject({ mayChange: false });
    expect((await h.call('GET', `/sites/${id}`, { as: ada })).data.status).toBe('active');
  });

  test('allowChanges alone allows no such tool: each needs a rule for its name', async () => {
    await allowing([]);
    expect(await listed()).not.toContain('update_site');
    await allowing(['update_site']);
    expect(await listed()).toContain('update_site');
    expect(await listed()).not.toContain('delete_site');
    expect((await agent.refusal('delete_site', { siteId: 'x' })).code).toBe('tool_hidden');
  });

  test('a tool that reads can be hidden too', async () => {
    await setMcpPolicy(h, { tools: { ...defaultMcpPolicy.tools, list_sites: 'hidden' } });
    expect(await listed()).not.toContain('list_sites');
    expect((await agent.refusal('list_sites')).code).toBe('tool_hidden');
  });

  test('a rule for a tool that does not exist is refused, and so is a document without one', async () => {
    const { data, headers } = await h.call('GET', '/config/mcp', { as: root });
    const put = (tools: object) =>
      h.call('PUT', '/config/mcp', {
        as: root,
        headers: { 'if-match': headers['etag'] ?? '' },
        body: { ...data.policy, tools },
      });
    const { get_site: _, ...without } = data.policy.tools;
    for (const tools of [
      { ...data.policy.tools, delete_everything: 'hidden' },
      without,
      { ...without, get_site: 'sometimes' },
    ])
      expect((await put(tools)).error.message).toMatch(/^tools\./);
    expect((await h.call('GET', '/config/mcp', { as: root })).data.version).toBe(data.version);
  });

  test('agents get the instructions of the policy', async () => {
    await setMcpPolicy(h, { instructions: 'Name sites after their team.' });
    const { client } = await connectAgent(h, 'Ada');
    expect(client.getInstructions()).toBe(`Name sites after their team.\n\n${defaultInstructions}`);
  });
});

describe('changes', () => {
  test('an agent changes the person’s site, and the audit log names both the change and the call', async () => {
    const { id } = await site(ada, 'public');
    expect(await agent.use('update_site', { siteId: id, name: 'Team', visibility: 'private' })).toMatchObject(
      {
        id,
        name: 'Team',
        visibility: 'private',
      },
    );
    const { data } = await h.call('GET', '/audit/events', { as: root, query: { event: 'mcp.tool_called' } });
    expect(data[0]).toMatchObject({
      actor: { kind: 'user', id: ada.user.id, credential: 'postern-mcp' },
      target: { kind: 'client', id: 'postern-mcp' },
      details: { tool: 'update_site' },
    });
    const changes = await h.call('GET', '/audit/events', { as: root, query: { target: id } });
    expect(changes.data[0].actor.credential).toBe('postern-mcp');
  });

  test('publishing for everyone needs the person’s approval, unless an administrator allows it or forbids it', async () => {
    const [own, open] = [await site(ada), await site(ada, 'public')];
    const files = [{ path: 'index.html', content: '<!doctype html><title>x</title>' }];
    const publicly = [
      ['update_site', { siteId: own.id, visibility: 'public' }],
      ['publish_site', { visibility: 'public', files }],
      ['publish_site', { siteId: open.id, files }],
    ] as const;
    for (const [name, input] of publicly)
      expect((await agent.refusal(name, input)).code).toBe('approval_required');
    await allowing(changeToolNames, { publicSites: 'hidden' });
    for (const [name, input] of publicly) expect((await agent.refusal(name, input)).code).toBe('tool_hidden');
    await allowing(changeToolNames, { publicSites: 'allow' });
    for (const [name, input] of publicly)
      expect(await agent.use(name, input)).toMatchObject({ visibility: 'public' });
    expect((await h.call('GET', `/sites/${own.id}`, { as: ada })).data.visibility).toBe('public');
  });

  test('publish_site publishes files as a new private site, then as its next version, each whole or not at all', async () => {
    const index = { path: 'index.html', content: '<!doctype html><title>ä</title><a href="gone.html">x</a>' };
    const dot = { path: 'img/dot.gif', content: 'R0lGODlhAQABAAAAACw=', encoding: 'base64' };
    const made = (await agent.use('publish_site', { name: 'Notes', files: [index, dot] })) as { id: string };
    expect(made).toMatchObject({ name: 'Notes', visibility: 'private', version: 1 });
    const [newest] = (await h.call('GET', '/me/agents/sessions', { as: ada })).data;
    const { data: calls } = await h.call('GET', `/me/agents/sessions/${newest.id}?limit=100`, { as: ada });
    expect(calls.at(-1)).toMatchObject({ tool: 'publish_site', result: 'done', objectId: made.id });
    const files = await h.call('GET', `/sites/${made.id}/files`, { as: ada });
    expect(files.data).toMatchObject([
      { path: 'img/dot.gif', size: 14 },
      { path: 'index.html', size: Buffer.byteLength(index.content) },
    ]);
    expect(await agent.use('get_site_report', { siteId: made.id })).toMatchObject({
      version: 1,
      brokenLinks: { count: 1, first: [{ page: 'index.html', target: 'gone.html' }] },
    });
    const next = { siteId: made.id, files: [index] };
    expect(await agent.use('publish_site', next)).toMatchObject({ id: made.id, version: 2 });
    const refused = async (input: object) =>
      (await agent.refusal('publish_site', { ...next, ...input })).code;
    expect(await refused({ files: [{ path: '../index.html', content: 'x' }] })).toBe('upload_rejected');
    expect(await refused({ files: [{ path: 'a', content: '%', encoding: 'base64' }] })).toBe('invalid_body');
    expect(await refused({ name: 'Other' })).toBe('invalid_body');
    const key = await h.key(ada);
    expect(await refused({ files: [{ path: 'index.html', content: key.value }] })).toBe(
      'credential_in_content',
    );
    expect((await h.call('GET', `/sites/${made.id}`, { as: ada })).data.version.number).toBe(2);
    const others = await site(bea, 'public');
    await allowing(changeToolNames, { publicSites: 'allow' });
    expect(await refused({ siteId: others.id })).toBe('not_owner');
  });

  test('no agent changes another person’s objects', async () => {
    const others = await site(bea, 'public');
    expect((await agent.refusal('update_site', { siteId: others.id, name: 'Mine' })).code).toBe('not_owner');
  });

  test('create_environment needs an idempotencyKey, and is refused like its route', async () => {
    const input = { repository: 'acme/none', branch: 'main' };
    expect((await agent.refusal('create_environment', input)).code).toBe('invalid_body');
    expect((await agent.refusal('create_environment', { ...input, idempotencyKey: 'key-12345' })).code).toBe(
      'repo_not_onboarded',
    );
  });
});

test('publish_site takes 200 KiB in a call, in any encoding, and says what to do with more', async () => {
  const fileOf = (bytes: number, content: (bytes: number) => Record<string, string>) => ({
    name: 'Large',
    files: [{ path: 'index.html', ...content(bytes) }],
  });
  const base64 = (bytes: number) => ({
    content: Buffer.alloc(bytes, 'a').toString('base64'),
    encoding: 'base64',
  });
  // Each takes three bytes, and six characters in JSON of many clients.
  const escaped = (bytes: number) => ({ content: '\u20ac'.repeat(bytes / 3) });
  for (const [bytes, content] of [
    [204_800, base64],
    [204_798, escaped],
  ] as const)
    expect(await agent.use('publish_site', fileOf(bytes, content))).toMatchObject({ status: 'active' });
  const { code, message } = await agent.refusal('publish_site', fileOf(204_801, base64));
  expect([code, message]).toEqual(['invalid_body', expect.stringContaining('send a manifest')]);
});

describe('tools that destroy', () => {
  type First = { done: boolean; confirmation: string };
  const ask = async (siteId: string, by = agent) => (await by.use('delete_site', { siteId })) as First;

  test('the first call changes nothing; the second, with its confirmation, destroys', async () => {
    const { id } = await site(ada);
    const { done, confirmation } = await ask(id);
    expect([done, (await h.call('GET', `/sites/${id}`, { as: ada })).data.status]).toEqual([false, 'active']);
    const newest = await h.call('GET', '/me/agents/sessions', { as: ada });
    const calls = async () =>
      (await h.call('GET', `/me/agents/sessions/${newest.data[0].id}?limit=100`, { as: ada })).data;
    // A call that only asks is not one that destroyed.
    expect((await calls()).at(-1)).toMatchObject({ tool: 'delete_site', step: 'confirmation_asked' });
    expect(await agent.use('delete_site', { siteId: id, confirmation })).toMatchObject({
      done: true,
      confirmation: null,
      result: { id, status: 'deleted' },
    });
    expect((await calls()).at(-1)).toMatchObject({ tool: 'delete_site', code: null, step: null });
  });

  test('a client that can ask the person asks, and no agent answers for the person', async () => {
    const { id } = await site(ada);
    const asked: string[] = [];
    let answer: { action: 'accept' | 'decline'; content?: Record<string, boolean> } = { action: 'decline' };
    const asking = await connectAgent(h, 'Ada', {
      answers: (question) => {
        asked.push(question);
        return answer;
      },
    });
    const status = async () => (await h.call('GET', `/sites/${id}`, { as: ada })).data.status;
    const refusals = [
      { action: 'decline' as const },
      { action: 'accept' as const },
      { action: 'accept' as const, content: { confirm: false } },
    ];
    for (answer of refusals)
      expect((await asking.refusal('delete_site', { siteId: id })).code).toBe('approval_refused');
    expect([asked[0], await status()]).toEqual([expect.stringContaining(id), 'active']);
    answer = { action: 'accept', content: { confirm: true } };
    expect(await asking.use('delete_site', { siteId: id })).toMatchObject({ done: true });
    expect([asked.length, await status()]).toEqual([4, 'deleted']);
  });

  test('the answer of a person holds for the call that was shown', async () => {
    const [one, other] = [await site(ada), await site(ada)];
    const asking = await connectAgent(h, 'Ada', { answers: () => ({ action: 'decline' }) });
    const send = async (siteId: string, more: object) => {
      const answered = await fetchOf(h)(`${uiOrigin}/mcp`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          authorization: `Bearer ${asking.accessToken}`,
          'mcp-protocol-version': '2026-07-28',
          'mcp-method': 'tools/call',
          'mcp-name': 'delete_site',
        },
        body: JSON.stringify({
          jsonrpc: '2.0',
          id: 1,
          method: 'tools/call',
          params: {
            name: 'delete_site',
            arguments: { siteId },
            ...more,
            _meta: {
              'io.modelcontextprotocol/protocolVersion': '2026-07-28',
              'io.modelcontextprotocol/clientInfo': { name: 'x', version: '1' },
              'io.modelcontextprotocol/clientCapabilities': { elicitation: {} },
            },
          },
        }),
      });
      return ((await answered.json()) as { result: { requestState?: string; content?: { text: string }[] } })
        .result;
    };
    const { requestState } = await send(one.id, {});
    const inputResponses = { confirm: { action: 'accept', content: { confirm: true } } };
    for (const [siteId, state] of [
      [other.id, requestState],
      [one.id, '1.x'],
      [one.id, undefined],
    ] as const) {
      const { content } = await send(siteId, { inputResponses, requestState: state });
      expect(content?.[0]?.text).toContain('state_conflict');
    }
    const { content } = await send(one.id, { inputResponses, requestState });
    expect(content?.[0]?.text).toContain('"done":true');
  });

  test('a confirmation holds for its site, person and client only, for five minutes, and until something changes', async () => {
    const [one, other] = [await site(ada), await site(ada)];
    const refused = async (confirmation: string, siteId = one.id, by = agent) =>
      (await by.refusal('delete_site', { siteId, confirmation })).code;
    const { confirmation } = await ask(one.id);
    expect(await refused(confirmation, other.id)).toBe('state_conflict');
    for (const made of [
      '',
      '1.x',
      `${h.clock.now() + minute}.x`,
      confirmation.replace(/^\d+/, '9999999999999'),
    ])
      expect(await refused(made)).toBe('state_conflict');
    const shared = await site(bea, 'public');
    const hers = await connectAgent(h, 'Bea');
    expect(await refused((await ask(shared.id, hers)).confirmation, shared.id)).toBe('state_conflict');

    await h.call('PATCH', `/sites/${one.id}`, { as: ada, body: { name: 'Changed' } });
    expect(await refused(confirmation)).toBe('state_conflict');
    const again = (await ask(one.id)).confirmation;
    h.clock.advance(4 * minute);
    const late = (await ask(one.id)).confirmation;
    vi.setSystemTime(h.clock.now());
    h.clock.advance(minute + 1);
    const renewed = await connectAgent(h, 'Ada');
    expect(await refused(again, one.id, renewed)).toBe('state_conflict');
    expect(await renewed.use('delete_site', { siteId: one.id, confirmation: late })).toMatchObject({
      done: true,
    });
  });
});
