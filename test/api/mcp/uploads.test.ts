import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { inject } from 'light-my-request';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { systemAuditContext } from '../../../src/core/caller.ts';
import { minute } from '../../../src/core/clock.ts';
import { wholeWorkspace } from '../../../src/features/agents/definitions.ts';
import { defaultMcpPolicy, type McpPolicy } from '../../../src/features/agents/mcp-policy.ts';
import { archiveOf, type InlineFile } from '../../../src/surfaces/mcp/inline-files.ts';
import { type Harness, type Person, uiOrigin } from '../../harness.ts';
import { dump, openFrozenHarness } from '../access/cast.ts';
import { type Agent, connectAgent, fetchOf, setMcpPolicy } from './agent.ts';

/** Files that an agent uploads to an address of their own: one token, for one person, client, consent, site and manifest. */
let h: Harness;
let root: Person;
let ada: Person;
let agent: Agent;
let count = 0;
beforeAll(async () => {
  h = await openFrozenHarness({ changesPerMinute: 10_000 });
  await setMcpPolicy(h);
  root = await h.person('Root', { admin: true });
});
beforeEach(async () => {
  count += 1;
  h.clock.advance(minute);
  vi.setSystemTime(h.clock.now());
  await allowing();
  ada = await h.person(`Ada${count}`);
  agent = await connectAgent(h, `Ada${count}`);
});
afterAll(async () => {
  vi.useRealTimers();
  await h.close();
});

const allowing = (change: Partial<McpPolicy> = {}, rule: 'allow' | 'ask' | 'hidden' = 'allow') =>
  setMcpPolicy(h, {
    allowChanges: true,
    callsPerMinute: 10_000,
    tools: { ...defaultMcpPolicy.tools, publish_site: rule },
    ...change,
  });
const page: InlineFile[] = [
  { path: 'index.html', content: '<!doctype html><title>Handbook</title>' },
  { path: 'a/b.txt', content: 'text' },
];
const manifestOf = (files: readonly InlineFile[]) =>
  files.map(({ path, content }) => ({
    path,
    size: Buffer.byteLength(content),
    sha256: createHash('sha256').update(content).digest('hex'),
  }));

type Address = { url: string; token: string; expiresAt: string };
const offered = async (input: Record<string, unknown> = {}, by = agent): Promise<Address> => {
  const answer = (await by.use('publish_site', { manifest: manifestOf(page), ...input })) as {
    upload: Address;
  };
  expect(Object.keys(answer)).toEqual(['upload']);
  return answer.upload;
};
type Sent = { files?: InlineFile[]; bytes?: Uint8Array; headers?: Record<string, string>; method?: string };
const put = async ({ url, token }: Pick<Address, 'url' | 'token'>, sent: Sent = {}) => {
  const { files = page, bytes, headers = {}, method = 'PUT' } = sent;
  const body = method === 'GET' ? undefined : (bytes ?? (await archiveOf(files)).bytes);
  const answer = await fetchOf(h)(url, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/gzip', ...headers },
    ...(body === undefined ? {} : { body: body as Buffer<ArrayBuffer> }),
  });
  const { data, error } = (await answer.json()) as {
    data: { id: string; version: number; visibility: string; name: string };
    error: { code: string; message: string; hint: string; details?: unknown };
  };
  return { status: answer.status, code: error?.code, data, error };
};
/** A body whose size no header says. */
const stream = async ({ url, token }: Address, content: () => AsyncGenerator<Buffer>) =>
  await inject((request, response) => void h.app.web.server.emit('request', request, response), {
    method: 'PUT',
    url: new URL(url).pathname,
    headers: {
      host: new URL(url).host,
      authorization: `Bearer ${token}`,
      'content-type': 'application/gzip',
      'transfer-encoding': 'chunked',
    },
    payload: Readable.from(content()),
  });
const sites = async () => (await h.call('GET', '/sites', { as: ada, query: { mine: 'true' } })).data.length;
const site = async (visibility = 'private') => {
  const { data } = await h.call('POST', '/sites', {
    as: ada,
    query: { name: 'Handbook', visibility },
    raw: { type: 'text/html', bytes: '<!doctype html><title>x</title>' },
  });
  return data.id as string;
};

test('an agent uploads the files of a manifest to a new site, and of a new version; the person reads both steps', async () => {
  const address = await offered({ name: 'Uploaded' });
  expect(address.url).toMatch(new RegExp(`^${uiOrigin}/mcp/uploads/[0-9A-Za-z]{12}$`));
  expect(address.token).toMatch(/^app_upl_[0-9A-Za-z]{50}$/);
  expect(Date.parse(address.expiresAt) - h.clock.now()).toBe(10 * minute);
  expect(await sites()).toBe(0);
  const { status, data } = await put(address);
  expect([status, data]).toMatchObject([200, { name: 'Uploaded', visibility: 'private', version: 1 }]);
  const again = await put(await offered({ siteId: data.id }));
  expect(again.data).toMatchObject({ id: data.id, version: 2 });

  const [session] = (await h.call('GET', '/me/agents/sessions', { as: ada })).data;
  const calls = (await h.call('GET', `/me/agents/sessions/${session.id}`, { as: ada })).data;
  expect(calls).toMatchObject([
    { tool: 'publish_site', code: null, step: 'upload_offered', arguments: { manifest: '(213 characters)' } },
    { tool: 'publish_site', code: null, step: 'upload_received', arguments: {} },
    { step: 'upload_offered' },
    { step: 'upload_received' },
  ]);
  const { events } = await h.app.services.audit.search({ actor: ada.user.id }, undefined, 10);
  expect(events.map(({ event, details }) => [event, details['step']])).toEqual([
    ['mcp.tool_called', 'upload_received'],
    ['site.published', undefined],
    ['mcp.tool_called', 'upload_offered'],
    ['mcp.tool_called', 'upload_received'],
    ['site.created', undefined],
    ['mcp.tool_called', 'upload_offered'],
    ['client.connected', undefined],
  ]);
  expect(events[1]?.actor.credential).toBe('postern-mcp');
});

test('small files in the call are published at once, and a call has either files or a manifest', async () => {
  expect(await agent.use('publish_site', { files: page })).toMatchObject({ version: 1 });
  for (const input of [
    {},
    { files: page, manifest: manifestOf(page) },
    { manifest: [] },
    { manifest: [...manifestOf(page), ...manifestOf(page)] },
    { manifest: [{ path: 'a', size: 1, sha256: 'x' }] },
  ])
    expect((await agent.refusal('publish_site', input)).code).toBe('invalid_body');
});

test('an address is given only for a site of the person', async () => {
  const bea = await h.person(`Bea${count}`);
  const { data } = await h.call('POST', '/sites', {
    as: bea,
    query: { name: 'Hers', visibility: 'public' },
    raw: { type: 'text/html', bytes: '<!doctype html><title>x</title>' },
  });
  await allowing({ publicSites: 'allow' });
  const input = { siteId: data.id, manifest: manifestOf(page) };
  expect((await agent.refusal('publish_site', input)).code).toBe('not_owner');
});

test('a token works once: a replay is refused, and of two parallel uploads one publishes', async () => {
  const address = await offered();
  expect((await put(address)).status).toBe(200);
  expect(await put(address)).toMatchObject({ status: 401, code: 'invalid_credential' });
  const other = await offered();
  const both = await Promise.all([put(other), put(other)]);
  expect(both.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 401]);
  expect(await sites()).toBe(2);
});

test('a token works for ten minutes, only at its own address, in the Authorization header, and with PUT', async () => {
  const [one, two] = [await offered(), await offered()];
  const anonymous = { authorization: '' };
  expect((await put({ url: two.url, token: one.token })).status).toBe(401);
  expect((await put(one, { method: 'POST' })).status).toBe(404);
  expect((await put(one, { method: 'GET' })).status).toBe(404);
  expect((await put({ ...one, url: `${one.url}?token=${one.token}` }, { headers: anonymous })).code).toBe(
    'credential_in_url',
  );
  expect((await put(one, { headers: { ...anonymous, cookie: `token=${one.token}` } })).status).toBe(401);
  expect((await put(one, { headers: { authorization: `Basic ${one.token}` } })).status).toBe(401);
  expect((await put(one, { headers: { origin: 'https://evil.example' } })).code).toBe('forbidden_origin');
  expect((await put(one, { headers: { 'content-type': 'application/json' } })).status).toBe(415);
  const token = { headers: { authorization: `Bearer ${one.token}` } };
  expect((await h.call('GET', '/sites', token)).status).toBe(401);
  const mcp = await fetchOf(h)(`${uiOrigin}/mcp`, { method: 'POST', headers: token.headers, body: '{}' });
  expect(mcp.status).toBe(401);
  for (const wrong of [agent.accessToken, (await h.key(ada)).value, `${one.token.slice(0, -1)}_`])
    expect((await put({ ...one, token: wrong })).status).toBe(401);
  expect(await sites()).toBe(0);

  // None of these has used it up.
  expect((await put(one)).status).toBe(200);
  h.clock.advance(10 * minute);
  vi.setSystemTime(h.clock.now());
  expect((await put(two)).status).toBe(401);
  await h.app.services.mcpUploads.prune();
  expect(await sites()).toBe(1);
});

test('only the announced files are published: other content, other names, more and fewer are refused, and use the token up', async () => {
  const [first, second] = page;
  if (first === undefined || second === undefined) throw new Error('There are two files.');
  for (const files of [
    [{ ...first, content: '<!doctype html><title>Other</title>' }, second],
    [first, { ...second, path: 'a/c.txt' }],
    [first, second, { path: 'c.txt', content: 'more' }],
    [first],
  ]) {
    const address = await offered();
    const refused = await put(address, { files });
    expect(refused).toMatchObject({ status: 422, code: 'upload_rejected' });
    expect(JSON.stringify(refused.error.details)).toContain('was announced');
    expect((await put(address)).status).toBe(401);
  }
  expect((await put(await offered(), { bytes: Buffer.from('no archive') })).code).toBe('upload_rejected');
  expect(await sites()).toBe(0);
});

test('a body that is larger than the announced files is refused before and while it is read', async () => {
  const address = await offered();
  const large = Buffer.alloc(200_000);
  expect((await put(address, { bytes: large })).code).toBe('upload_too_large');
  const { statusCode, body } = await stream(address, async function* () {
    yield large;
  });
  expect([statusCode, JSON.parse(body).error.code]).toEqual([413, 'upload_too_large']);
  expect(await sites()).toBe(0);
});

describe('an upload passes every check again', () => {
  test.each([
    ['when /mcp is off', () => setMcpPolicy(h, { enabled: false }), 404, 'not_found'],
    ['when agents may change nothing', () => allowing({ allowChanges: false }), 403, 'tool_hidden'],
    ['when the tool is hidden', () => allowing({}, 'hidden'), 403, 'tool_hidden'],
    ['when the tool asks by now', () => allowing({}, 'ask'), 403, 'approval_required'],
  ])('%s', async (_title, change, status, code) => {
    const address = await offered();
    await change();
    expect(await put(address)).toMatchObject({ status, code });
    await allowing();
    // Refused for a moment, it is not used up.
    expect((await put(address)).status).toBe(200);
  });

  test('after the client was blocked, or lost its definition', async () => {
    const address = await offered();
    const decide = (status: string) =>
      h.call('PATCH', '/config/mcp/clients/postern-mcp', { as: root, body: { status } });
    await decide('blocked');
    expect(await put(address)).toMatchObject({ status: 403, code: 'client_not_allowed' });
    await decide('allowed');
    const { agentDefinitions } = h.app.services;
    const pinned = (await agentDefinitions.list()).find(({ clients }) => clients.includes('postern-mcp'));
    await agentDefinitions.remove(systemAuditContext, pinned?.id ?? '');
    expect(await put(address)).toMatchObject({ status: 403, code: 'tool_hidden' });
    await allowing();
    expect((await put(address)).status).toBe(200);
  });

  test('after the workspace of its definition was closed for publishing', async () => {
    const address = await offered();
    const { agentDefinitions } = h.app.services;
    const pinned = (await agentDefinitions.list()).find(({ clients }) => clients.includes('postern-mcp'));
    const at = `/config/agents/definitions/${pinned?.id}`;
    const everywhere = { repositories: { mode: 'all' }, maxEnvironments: null, environmentTtlHours: null };
    const workspace = (maySites: string) => ({ as: root, body: { workspace: { ...everywhere, maySites } } });
    expect((await h.call('PATCH', at, workspace('read'))).status).toBe(200);
    expect(await put(address)).toMatchObject({ status: 403, code: 'forbidden_scope' });
    expect(await sites()).toBe(0);
    expect((await h.call('PATCH', at, workspace('publish'))).status).toBe(200);
    // Refused before it was used up.
    expect((await put(address)).status).toBe(200);
  });

  test('after the session was ended, and after the person disconnected the client', async () => {
    const address = await offered();
    const [session] = (await h.call('GET', '/me/agents/sessions', { as: ada })).data;
    expect((await h.call('POST', `/me/agents/sessions/${session.id}/end`, { as: ada })).status).toBe(200);
    expect(await put(address)).toMatchObject({ status: 401, code: 'invalid_credential' });
    const second = await connectAgent(h, `Ada${count}`);
    const other = await offered({}, second);
    expect((await h.call('DELETE', '/me/clients/postern-mcp', { as: ada })).status).toBe(200);
    // A later consent to the same client is another one.
    await connectAgent(h, `Ada${count}`);
    expect(await put(other)).toMatchObject({ status: 401, code: 'invalid_credential' });
    expect(await sites()).toBe(0);
  });

  test('of a person who is disabled or lost the role; while the directory is unavailable it is 503', async () => {
    const address = await offered();
    const outage = vi.spyOn(h.app.services.identity.directory, 'principal');
    outage.mockReturnValue({ kind: 'unavailable', reason: 'refused' });
    expect(await put(address)).toMatchObject({ status: 503, code: 'identity_unavailable' });
    outage.mockRestore();
    await h.call('PATCH', `/users/${ada.user.id}`, { as: root, body: { enabled: false } });
    expect(await put(address)).toMatchObject({ status: 403 });
    expect((await put(address)).status).toBe(403);
  });

  test('of a site that changed its visibility or its version, or was deleted', async () => {
    const id = await site();
    const [visibility, version] = [await offered({ siteId: id }), await offered({ siteId: id })];
    await h.call('PATCH', `/sites/${id}`, { as: ada, body: { visibility: 'public' } });
    expect(await put(visibility)).toMatchObject({ status: 409, code: 'state_conflict' });
    await h.call('PATCH', `/sites/${id}`, { as: ada, body: { visibility: 'private' } });
    await h.call('PUT', `/sites/${id}/content`, {
      as: ada,
      raw: { type: 'text/html', bytes: '<!doctype html><title>y</title>' },
    });
    expect(await put(version)).toMatchObject({ status: 409, code: 'state_conflict' });
    const deleted = await offered({ siteId: id });
    await h.call('DELETE', `/sites/${id}`, { as: ada });
    expect(await put(deleted)).toMatchObject({ status: 409, code: 'state_conflict' });
  });

  test('even while its bytes arrive: a client that is blocked meanwhile publishes nothing', async () => {
    const { bytes } = await archiveOf(page);
    const decide = (status: 'allowed' | 'blocked') =>
      h.app.services.mcpClients.decide(systemAuditContext, 'postern-mcp', status);
    const address = await offered();
    const { statusCode, body } = await stream(address, async function* () {
      yield Buffer.from(bytes as Uint8Array).subarray(0, 20);
      await decide('blocked');
      yield Buffer.from(bytes as Uint8Array).subarray(20);
    });
    await decide('allowed');
    expect([statusCode, JSON.parse(body).error.code]).toEqual([403, 'client_not_allowed']);
    // Refused after it was used up, so the first check had passed.
    expect((await put(address)).status).toBe(401);
    expect(await sites()).toBe(0);
  });

  test('even while its bytes arrive: a workspace that is closed meanwhile publishes nothing', async () => {
    const { bytes } = await archiveOf(page);
    const { agentDefinitions } = h.app.services;
    const pinned = (await agentDefinitions.list()).find(({ clients }) => clients.includes('postern-mcp'));
    const give = (maySites: 'read' | 'publish') =>
      agentDefinitions.change(systemAuditContext, pinned?.id ?? '', {
        workspace: { ...wholeWorkspace, maySites },
      });
    const id = await site();
    for (const input of [{}, { siteId: id }]) {
      const { statusCode, body } = await stream(await offered(input), async function* () {
        yield Buffer.from(bytes as Uint8Array).subarray(0, 20);
        await give('read');
        yield Buffer.from(bytes as Uint8Array).subarray(20);
      });
      await give('publish');
      expect([statusCode, JSON.parse(body).error?.code]).toEqual([403, 'forbidden_scope']);
    }
    expect((await h.call('GET', '/sites', { as: ada, query: { mine: 'true' } })).data).toMatchObject([
      { id, version: { number: 1 } },
    ]);
  });
});

test('the approval of the call covers its upload: of this manifest and no other, once', async () => {
  await allowing({}, 'ask');
  const input = { manifest: manifestOf(page), name: 'Asked' };
  const { details } = await agent.refusal('publish_site', input);
  const id = String(details?.['url']).split('/').at(-1);
  expect((await h.call('GET', `/me/agents/approvals/${id}`, { as: ada })).data.arguments).toEqual(input);
  await h.call('POST', `/me/agents/approvals/${id}/approve`, { as: ada });
  expect((await agent.refusal('publish_site', { ...input, manifest: manifestOf(page.slice(1)) })).code).toBe(
    'approval_required',
  );
  const address = await offered({ name: 'Asked' });
  expect((await agent.refusal('publish_site', input)).code).toBe('approval_required');
  expect((await put(address)).data).toMatchObject({ name: 'Asked', version: 1 });
});

test('publishing for everyone needs approval for an upload, too', async () => {
  await allowing({ publicSites: 'ask' });
  const input = { manifest: manifestOf(page), visibility: 'public' };
  expect((await agent.refusal('publish_site', input)).code).toBe('approval_required');
  await allowing({ publicSites: 'allow' });
  const address = await offered({ visibility: 'public' });
  await allowing({ publicSites: 'hidden' });
  expect(await put(address)).toMatchObject({ status: 403, code: 'tool_hidden' });
});

test('KF-03 no table and no log line holds the token; a manifest with a key is refused', async () => {
  const address = await offered();
  await put({ ...address, url: `${address.url}?x=${address.token}` }, { headers: { authorization: '' } });
  await put(address, { headers: { 'user-agent': address.token } });
  await put(address);
  for (const text of [await dump(h), h.logged.join('\n')])
    expect(text).not.toContain(address.token.slice(20));
  const manifest = [{ ...manifestOf(page)[0], path: (await h.key(ada)).value }];
  expect((await agent.refusal('publish_site', { manifest })).code).toBe('invalid_body');
});
