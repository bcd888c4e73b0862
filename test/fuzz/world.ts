import { createHash } from 'node:crypto';
import type { Dice } from '../faults/ledger.ts';
import { commandLine, manyChanges, openFrozenHarness, setPolicy } from '../api/access/cast.ts';
import {
  exchangeOf,
  federatedKey,
  githubUrl,
  gitlabRule,
  gitlabUrl,
  trusting,
  urlEncoded,
} from '../api/federation/platforms.ts';
import { idleEngine } from '../fakes/idle-engine.ts';
import { defaultEnvironmentPolicy } from '../../src/features/environments/policy/environment-policy.ts';
import { type Harness, type Person, type TestKey, uiOrigin } from '../harness.ts';
import { defaultMcpPolicy } from '../../src/features/agents/mcp-policy.ts';
import { connectAgent, setMcpPolicy } from '../api/mcp/agent.ts';
import { openPlatform } from '../id-tokens/platforms.ts';
import { externalServer } from './external-server.ts';
import { awaited, type CallerName, type FuzzRequest } from './requests.ts';

/** An installation with something of everything in it, and everyone who may send a request to it. */
export type World = {
  readonly h: Harness;
  /** Headers by which a caller shows who it is. */
  credentials(name: CallerName): Record<string, string>;
  /** Puts existing things where the request says «kind». */
  fill(text: string, dice: Dice): string;
  /** Remembers ids that answers hand out. */
  learn(request: FuzzRequest, data: unknown): void;
  /** Full values of keys: they must not turn up in answers. */
  readonly values: Set<string>;
};

/** `cloneUrl`: of the repositories in it. */
export async function openWorld(cloneUrl: string): Promise<World> {
  const h = await openFrozenHarness({
    ...manyChanges,
    engine: async () => idleEngine,
    outboundFetch: externalServer,
  });
  const things = new Map<string, string[]>();
  const keep = (kind: string, ...ids: string[]) => {
    things.set(kind, [...(things.get(kind) ?? []), ...ids].slice(-200));
  };
  const root = await h.person('Root', { admin: true });
  // A second one, so that the first may be changed without locking everyone out.
  await h.person('Deputy', { admin: true });
  const ada = await h.person('Ada');
  const gone = await h.person('Gone');
  for (const name of ['acme/website', 'acme/api', 'acme/docs']) {
    keep('repository', await h.repository(name));
    await h.call('PATCH', `/repositories/${name}`, { as: root, body: { cloneUrl } });
  }
  keep('owner', 'acme');
  keep('name', 'website', 'api', 'docs');
  keep('users', ada.user.id, ada.user.id, gone.user.id);
  keep('people', ada.user.id, gone.user.id);
  // So many that deleting some leaves enough.
  for (const name of ['Bob', 'Eve', 'Finn', 'Gina', 'Hana', 'Ivo'])
    keep('users', (await h.person(name)).user.id);
  const group = await h.call('POST', '/groups', { as: root, body: { name: 'Platform', roles: ['user'] } });
  keep('groups', group.data.id);
  for (const text of ['Source', 'Logs', 'Dashboard', 'Board']) {
    const link = { text, icon: 'link', link: 'https://git.example.com/${environment.branch}' };
    const { data } = await h.call('POST', '/config/metadata', { as: root, body: link });
    keep('metadata', data.links.at(-1).id);
  }
  const everything = { scopes: ['env:write', 'sites:write', 'repos:write'] as const };
  const keys = {
    personal: await h.key(ada, { scopes: [...everything.scopes] }),
    narrow: await h.key(ada, {
      repositoryAccess: { mode: 'selected', repositories: ['acme/api'] },
      ttlHours: 100,
    }),
    service: await h.serviceKey({ scopes: [...everything.scopes] }),
    dead: await h.key(ada),
  };
  await h.call('DELETE', `/me/tokens/${keys.dead.id}`, { as: ada });
  keep('tokens', ...Object.values(keys).map(({ id }) => id));
  keep('key value', ...Object.values(keys).map(({ value }) => value));
  keep('clients', 'postern-cli');
  await trustPipelines();
  // While MCP is off, no account can be connected.
  await setMcpPolicy(h);
  await connectServers();

  /** Keys without a value, and an ID token that each of them accepts for an hour. */
  async function trustPipelines(): Promise<void> {
    const gitlab = openPlatform('gitlab', gitlabUrl);
    const github = { url: githubUrl, preset: 'github' } as const;
    await setPolicy(h, { federation: { issuers: [github, ...trusting(gitlab).federation.issuers] } });
    for (const name of ['deploys', 'docs', 'nightly']) {
      const body = { ...federatedKey([gitlabRule]), name };
      const { data } = await h.call('POST', '/tokens', { as: root, body });
      const idToken = await gitlab.sign(gitlab.claims(h.clock.now(), uiOrigin));
      keep('tokens', data.id);
      keep('exchange', String(urlEncoded(exchangeOf(idToken, data.id)).bytes));
      for (const { id } of (await h.call('GET', `/tokens/${data.id}/trust`, { as: root })).data)
        keep('trust', id);
    }
  }

  async function connectServers(): Promise<void> {
    for (const slug of ['forge', 'wiki', 'chat', 'mail']) {
      const server = { slug, name: slug, url: 'https://mcp.example.com/', auth: 'header' };
      await h.call('POST', '/config/mcp/servers', { as: root, body: server });
      for (const as of [ada, root])
        await h.call('POST', `/me/connections/${slug}/start`, { as, body: { value: 'x' } });
      for (const kind of ['servers', 'connections']) keep(kind, slug);
    }
    keep('tools', 'search_issues');
  }

  keep('scope', 'repos:read');
  const accessToken = await commandLine(h, 'Ada').token(['repos:read']);
  // Uses of a dead key and keys in addresses, so that there are notices.
  const revoked = await h.serviceKey();
  await h.call('DELETE', `/tokens/${revoked.id}`, { as: root });
  for (const key of [keys.dead, revoked]) await h.call('GET', '/auth/context', { as: key });
  await h.app.services.alarms.flush();
  await h.call('DELETE', `/users/${gone.user.id}`, { as: root });
  await h.settle();
  for (const [path, as] of [
    ['/notices', root],
    ['/me/notices', ada],
  ] as const) {
    const { data } = await h.call('GET', path, { as });
    keep('notices', ...data.map(({ id }: { id: string }) => id));
  }
  const events = await h.call('GET', '/audit/events', { as: root });
  keep('events', ...events.data.map(({ id }: { id: string }) => id));

  await publishSites();

  /** A few sites of each owner, so that deletions leave enough; the first has an open upload. */
  async function publishSites(): Promise<void> {
    const raw = { type: 'text/html', bytes: '<!doctype html><p>site' };
    for (const as of [ada, ada, root, keys.service]) {
      const query = { visibility: 'public', name: 'fuzz' };
      const { data } = await h.call('POST', '/sites', { as, query, raw });
      keep('sites', data.id);
    }
    const [first] = things.get('sites') ?? [];
    const sha256 = createHash('sha256').update(awaited).digest('hex');
    const files = { 'index.html': { sha256, size: awaited.length } };
    const { data } = await h.call('POST', `/sites/${first}/uploads`, { as: ada, body: { files } });
    keep('uploads', data.id);
    keep('blobs', sha256);
    keep('versions', '1');
    keep('files', 'index.html');
  }

  await createEnvironments();

  /** So many that tearing down some leaves enough, each with a build that is under way and one that was cancelled. */
  async function createEnvironments(): Promise<void> {
    const policy = { ...defaultEnvironmentPolicy, enabled: true, maxPerOwner: 1_000, maxTotal: 1_000 };
    const headers = { 'if-match': '*' };
    await h.call('PUT', '/config/api-environments', { as: root, body: policy, headers });
    const body = { repository: 'acme/website', branch: 'main', access: 'members' };
    for (const as of [ada, ada, ada, root, root, keys.service]) {
      const { data } = await h.call('POST', '/environments', { as, body });
      keep('environments', data.id);
      const builds = (await h.call('GET', '/builds', { as, query: { environment: data.id } })).data;
      // Clients of the older system call an Environment a build.
      keep('builds', builds[0].id, data.id, data.uuid);
      keep('services', 'web');
      keep('build-jobs', builds[0].id);
      if (as !== root) continue;
      await h.call('POST', `/builds/${builds[0].id}/cancel`, { as });
    }
  }

  await connectAgents();

  /** Definitions that people may choose, and an agent of Ada with a session and calls that wait for her. */
  async function connectAgents(): Promise<void> {
    const tools = { ...defaultMcpPolicy.tools, update_site: 'ask' as const };
    await setMcpPolicy(h, { allowChanges: true, callsPerMinute: 10_000, tools });
    const models = [{ name: 'large-1', note: 'Approved' }];
    await h.call('PUT', '/config/agents/models', {
      as: root,
      body: { models },
      headers: { 'if-match': '*' },
    });
    const offered = { purpose: 'Fuzz', model: 'large-1', tools: { list_sites: 'allow' }, isOffered: true };
    for (const name of ['Reviews', 'Releases', 'Reports']) {
      const body = { name, ...offered, clients: [] };
      const { data } = await h.call('POST', '/config/agents/definitions', { as: root, body });
      keep('definitions', data.id);
    }
    const agent = await connectAgent(h, 'Ada');
    keep('clients', agent.clientId);
    await agent.use('get_context');
    for (const siteId of things.get('sites')?.slice(0, 2) ?? [])
      for (const name of ['One', 'Two']) await agent.refusal('update_site', { siteId, name });
    const waiting = await h.call('GET', '/me/agents/approvals', { as: ada });
    keep('approvals', ...waiting.data.approvals.map(({ id }: { id: string }) => id));
    const sessions = await h.call('GET', '/me/agents/sessions', { as: ada });
    keep('sessions', ...sessions.data.map(({ id }: { id: string }) => id));
  }

  const bearer = (value: string) => ({ authorization: `Bearer ${value}` });
  const session = (person: Person) => ({
    cookie: `__Host-postern_session=${person.cookie}`,
    origin: uiOrigin,
  });
  const changed = ({ value }: TestKey) => value.slice(0, -1) + (value.endsWith('0') ? '1' : '0');
  const credentials: Record<CallerName, Record<string, string>> = {
    nobody: {},
    administrator: session(root),
    person: session(ada),
    'personal key': bearer(keys.personal.value),
    'narrow key': bearer(keys.narrow.value),
    'service key': bearer(keys.service.value),
    'access token': bearer(accessToken),
    'dead key': bearer(keys.dead.value),
    'unknown key': bearer(h.app.services.format.generate('personal', h.app.services.random).value),
    'broken key': bearer(changed(keys.personal)),
    'stray token': bearer(createHash('sha256').update('stray').digest('base64url')),
    basic: { authorization: 'Basic dXNlcjpwYXNzd29yZA==' },
    'ended session': session(gone),
    'two credentials': { ...session(ada), ...bearer(keys.personal.value) },
  };

  const pools: Readonly<Record<string, string>> = {
    listMyNotices: 'notices',
    listNotices: 'notices',
    listAuditEvents: 'events',
    createUser: 'users',
    listPeople: 'people',
    createGroup: 'groups',
    createSite: 'sites',
    addAgentDefinition: 'definitions',
    createEnvironment: 'environments',
    listBuilds: 'builds',
    startUpload: 'uploads',
    createMyKey: 'tokens',
    createServiceKey: 'tokens',
    rotateMyKey: 'tokens',
    rotateManagedKey: 'tokens',
  };

  const values = new Set(Object.values(keys).map(({ value }) => value));
  return {
    h,
    values,
    credentials: (name) => credentials[name],
    fill: (text, dice) =>
      text.replaceAll(/«([^»]*)»/g, (_whole, kind: string) => {
        const found = things.get(kind) ?? [...things.values()].flat();
        return found[dice.below(found.length)] ?? 'nothingthere';
      }),
    learn(request, data) {
      const pool = pools[request.operation.operation.operationId];
      for (const one of [data].flat().slice(0, 20)) {
        if (typeof one !== 'object' || one === null) continue;
        if (pool !== undefined && 'id' in one && typeof one.id === 'string') keep(pool, one.id);
        if ('token' in one && typeof one.token === 'string') values.add(one.token);
      }
    },
  };
}
