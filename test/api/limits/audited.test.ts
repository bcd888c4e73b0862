// @module-tag sql
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { systemAuditContext } from '../../../src/core/caller.ts';
import { defaultMcpPolicy } from '../../../src/features/agents/mcp-policy.ts';
import { defaultEnvironmentPolicy } from '../../../src/features/environments/policy/environment-policy.ts';
import { sql } from '../../../src/platform/database/sql.ts';
import { createAuthenticator } from '../../fakes/authenticator.ts';
import { type Answer, type Harness, type Person, type TestKey, uiOrigin } from '../../harness.ts';
import { openPlatform } from '../../id-tokens/platforms.ts';
import { commandLine, contents, openFrozenHarness, setPolicy } from '../access/cast.ts';
import { exchangeOf, githubRule, trusting, trustingGithub, urlEncoded } from '../federation/platforms.ts';
import { setMcpPolicy } from '../mcp/agent.ts';
import { type ExternalServer, loopbackFetch, openExternalServer } from '../mcp/external-server.ts';

let h: Harness;
let root: Person;
let ada: Person;
let external: ExternalServer;
let alone = 0;
beforeAll(async () => {
  h = await openFrozenHarness({ changesPerMinute: 100_000, outboundFetch: loopbackFetch });
  external = await openExternalServer();
  root = await h.person('Root', { admin: true });
  await h.person('Deputy', { admin: true });
});
// Each test has separate names.
beforeEach(async () => {
  alone += 1;
  ada = await h.person(`Ada${alone}`);
});
afterAll(async () => {
  await h.close();
  await external.close();
  vi.useRealTimers();
});

type Done = { readonly answer: Answer; readonly as: Person | TestKey; readonly target: string };
/** `prepare` makes what the route needs and answers its one use. */
type Drill = { readonly event: string; prepare(): Promise<() => Promise<Done>> };

const send = async (
  method: string,
  path: string,
  as: Person | TestKey,
  options: { body?: unknown; headers?: Record<string, string>; target?: (answer: Answer) => string } = {},
): Promise<Done> => {
  const { body, headers, target } = options;
  const answer = await h.call(method, path, {
    as,
    ...(body === undefined ? {} : { body }),
    ...(headers ? { headers } : {}),
  });
  return { answer, as, target: target?.(answer) ?? answer.data?.id };
};
const keyBody = { name: 'k', scopes: ['repos:read'], repositoryAccess: { mode: 'all' } };
const policyAndTag = async () => {
  const { headers, data } = await h.call('GET', '/config/api-keys', { as: root });
  return { headers: { 'if-match': String(headers['etag']) }, policy: data.policy };
};
const putPolicy = async (rateLimitPerMinute: number) => {
  const { headers, policy } = await policyAndTag();
  const body = { ...policy, rateLimitPerMinute };
  return () => send('PUT', '/config/api-keys', root, { headers, body, target: () => 'api-keys' });
};
const putAccess = async (signInsPerAddressPerMinute: number) => {
  const { headers: read } = await h.call('GET', '/config/access', { as: root });
  const headers = { 'if-match': String(read['etag']) };
  const body = { signInsPerAddressPerMinute };
  return () => send('PUT', '/config/access', root, { headers, body, target: () => 'access' });
};
const metadataLink = { text: 'Source', icon: 'branch', link: 'https://git.example.com/' };
const servers = '/config/mcp/servers';
const server = () => ({ slug: `server-${alone}`, name: 'Tracker', url: external.url, auth: 'none' });
const slugOf = ({ data }: Answer) => data?.slug;
const addedServer = async () => {
  // While MCP is off, no account can be connected.
  await setMcpPolicy(h);
  return slugOf(await h.call('POST', servers, { as: root, body: server() }));
};
const definitions = '/config/agents/definitions';
const definition = () => ({ name: `Agents ${alone}`, purpose: 'Reading', tools: {}, clients: [] });
const newDefinition = async () =>
  (await h.call('POST', definitions, { as: root, body: definition() })).data.id as string;
/** Decides about a call of an agent of Ada. */
const decide = async (verb: 'approve' | 'refuse') => {
  await setMcpPolicy(h);
  const call = {
    userId: ada.user.id,
    clientId: 'postern-mcp',
    grantId: null,
    tool: 'delete_site',
    arguments: {},
    what: '',
  };
  const { id } = await h.app.services.agentApprovals.use(call);
  const path = `/me/agents/approvals/${id}/${verb}`;
  return () => send('POST', path, ada, { target: () => 'postern-mcp' });
};
/** A session of an agent of Ada. */
const newSession = async () => {
  const { agentSessions } = h.app.services;
  await agentSessions.record({
    userId: ada.user.id,
    clientId: 'postern-mcp',
    grantId: `of-ada-${alone}`,
    at: h.clock.now(),
    tool: 'get_context',
    code: null,
    durationMs: 1,
    definition: null,
    approvalId: null,
    step: null,
    objectId: null,
    arguments: {},
    change: null,
  });
  const [session] = (await agentSessions.list({ userId: ada.user.id }, 1, 1)).items;
  return session?.id ?? '';
};
const endSession = async (of: '/me' | '', by: () => Person) => {
  const id = await newSession();
  return () => send('POST', `${of}/agents/sessions/${id}/end`, by(), { target: () => 'postern-mcp' });
};
const newLink = async () =>
  (await h.call('POST', '/config/metadata', { as: root, body: metadataLink })).data.links[0].id as string;
const group = async () =>
  (await h.call('POST', '/groups', { as: root, body: { name: `Team ${alone}` } })).data.id as string;
/** Its path. */
const repository = async () => {
  const name = `acme/website-${alone}`;
  await h.repository(name);
  return `/repositories/${name}`;
};
const passkey = async () => {
  const { data: options } = await h.call('POST', '/me/passkeys/options', { as: ada });
  return { name: 'Laptop', response: createAuthenticator('http://localhost:3000').create(options) };
};
/** Its path. */
const newPasskey = async () =>
  `/me/passkeys/${(await h.call('POST', '/me/passkeys', { as: ada, body: await passkey() })).data.id}`;
const connect = async () => void (await commandLine(h, `Ada${alone}`).token(['repos:read']));

const ready = (drill: () => Promise<Done>) => async () => drill;

/** How each route that changes something is used, and the event it leaves. A new route without a line here fails. */
const drills: Record<string, Drill> = {
  createMyKey: {
    event: 'api_key.created',
    prepare: ready(() => send('POST', '/me/tokens', ada, { body: keyBody })),
  },
  narrowMyKey: {
    event: 'api_key.narrowed',
    async prepare() {
      const { id } = await h.key(ada);
      return () => send('PATCH', `/me/tokens/${id}`, ada, { body: { name: 'new' } });
    },
  },
  rotateMyKey: {
    event: 'api_key.rotated',
    async prepare() {
      const { id } = await h.key(ada);
      return () => send('POST', `/me/tokens/${id}/rotate`, ada, { body: {}, target: () => id });
    },
  },
  revokeMyKey: {
    event: 'api_key.revoked',
    async prepare() {
      const { id } = await h.key(ada);
      return () => send('DELETE', `/me/tokens/${id}`, ada);
    },
  },
  revokeAllMyKeys: {
    event: 'api_key.revoked',
    async prepare() {
      // For a person with a single key: each key leaves a separate event.
      const solo = await h.person(`Solo${alone}`);
      const { id } = await h.key(solo);
      const body = { confirm: 'revoke all' };
      return () => send('POST', '/me/tokens/revoke-all', solo, { body, target: () => id });
    },
  },
  revokeManagedKeys: {
    event: 'api_key.revoked',
    async prepare() {
      const { id } = await h.key(ada);
      const body = { ids: [id], note: 'seen in a log' };
      return () => send('POST', '/tokens/revoke', root, { body, target: () => id });
    },
  },
  createServiceKey: {
    event: 'api_key.created',
    prepare: ready(() => send('POST', '/tokens', root, { body: keyBody })),
  },
  narrowManagedKey: {
    event: 'api_key.narrowed',
    async prepare() {
      const { id } = await h.serviceKey();
      return () => send('PATCH', `/tokens/${id}`, root, { body: { name: 'new' } });
    },
  },
  rotateManagedKey: {
    event: 'api_key.rotated',
    async prepare() {
      const { id } = await h.serviceKey();
      return () => send('POST', `/tokens/${id}/rotate`, root, { body: {}, target: () => id });
    },
  },
  exchangeIdToken: {
    event: 'api_key.exchanged',
    async prepare() {
      const github = openPlatform('github', githubRule.issuer);
      await setPolicy(h, trusting(github));
      const { id } = await h.serviceKey();
      await h.call('POST', `/tokens/${id}/trust`, { as: root, body: githubRule });
      const raw = urlEncoded(exchangeOf(await github.sign(github.claims(h.clock.now(), uiOrigin)), id));
      return async () => ({
        answer: await h.call('POST', '/auth/exchange', { raw }),
        as: { id, value: '', type: 'service' },
        target: id,
      });
    },
  },
  addTrustRule: {
    event: 'api_key.trust_changed',
    async prepare() {
      await setPolicy(h, trustingGithub);
      const { id } = await h.serviceKey();
      return () => send('POST', `/tokens/${id}/trust`, root, { body: githubRule, target: () => id });
    },
  },
  removeTrustRule: {
    event: 'api_key.trust_changed',
    async prepare() {
      await setPolicy(h, trustingGithub);
      const { id } = await h.serviceKey();
      const { data } = await h.call('POST', `/tokens/${id}/trust`, { as: root, body: githubRule });
      return () => send('DELETE', `/tokens/${id}/trust/${data.id}`, root, { target: () => id });
    },
  },
  revokeManagedKey: {
    event: 'api_key.revoked',
    async prepare() {
      const { id } = await h.key(ada);
      return () => send('DELETE', `/tokens/${id}`, root);
    },
  },
  revokeSelf: {
    event: 'api_key.revoked',
    async prepare() {
      const key = await h.key(ada);
      return () => send('POST', '/auth/revoke-self', key, { target: () => key.id });
    },
  },
  changeKeyPolicy: { event: 'policy.changed', prepare: () => putPolicy(500) },
  revertKeyPolicy: {
    event: 'policy.changed',
    async prepare() {
      await (await putPolicy(500))();
      const { headers } = await policyAndTag();
      const target = () => 'api-keys';
      return () => send('POST', '/config/api-keys/revert', root, { body: { version: 0 }, headers, target });
    },
  },
  changeAccessConfig: { event: 'config.access.changed', prepare: () => putAccess(500) },
  revertAccessConfig: {
    event: 'config.access.reverted',
    async prepare() {
      await (await putAccess(500))();
      const { headers: read } = await h.call('GET', '/config/access', { as: root });
      const headers = { 'if-match': String(read['etag']) };
      const target = () => 'access';
      return () => send('POST', '/config/access/revert', root, { body: { version: 0 }, headers, target });
    },
  },
  changeEnvironmentPolicy: {
    event: 'config.api-environments.changed',
    prepare: ready(() =>
      send('PUT', '/config/api-environments', root, {
        headers: { 'if-match': '*' },
        body: { ...defaultEnvironmentPolicy, enabled: true },
        target: () => 'api-environments',
      }),
    ),
  },
  revertEnvironmentPolicy: {
    event: 'config.api-environments.changed',
    prepare: ready(() =>
      send('POST', '/config/api-environments/revert', root, {
        headers: { 'if-match': '*' },
        body: { version: 0 },
        target: () => 'api-environments',
      }),
    ),
  },
  changeMcpPolicy: {
    event: 'config.mcp.changed',
    prepare: ready(() =>
      send('PUT', '/config/mcp', root, {
        headers: { 'if-match': '*' },
        body: { ...defaultMcpPolicy, enabled: true },
        target: () => 'mcp',
      }),
    ),
  },
  revertMcpPolicy: {
    event: 'config.mcp.changed',
    prepare: ready(() =>
      send('POST', '/config/mcp/revert', root, {
        headers: { 'if-match': '*' },
        body: { version: 0 },
        target: () => 'mcp',
      }),
    ),
  },
  addMcpServer: {
    event: 'config.mcp.server_changed',
    prepare: ready(() => send('POST', servers, root, { body: server(), target: slugOf })),
  },
  changeMcpServer: {
    event: 'config.mcp.server_changed',
    async prepare() {
      const slug = await addedServer();
      return () => send('PATCH', `${servers}/${slug}`, root, { body: { name: 'Other' }, target: slugOf });
    },
  },
  deleteMcpServer: {
    event: 'config.mcp.server_changed',
    async prepare() {
      const slug = await addedServer();
      return () => send('DELETE', `${servers}/${slug}`, root, { target: () => slug });
    },
  },
  acceptMcpServerTool: {
    event: 'config.mcp.server_changed',
    async prepare() {
      const slug = await addedServer();
      await h.call('POST', `/me/connections/${slug}/start`, { as: ada, body: {} });
      const { data } = await h.call('GET', `${servers}/${slug}/tools`, { as: root });
      const [{ name, digest }] = data.tools;
      const path = `${servers}/${slug}/tools/${name}/accept`;
      return () => send('POST', path, root, { body: { digest }, target: () => slug });
    },
  },
  startMyConnection: {
    event: 'mcp.connection_changed',
    async prepare() {
      const slug = await addedServer();
      return () => send('POST', `/me/connections/${slug}/start`, ada, { body: {}, target: () => slug });
    },
  },
  removeMyConnection: {
    event: 'mcp.connection_changed',
    async prepare() {
      const slug = await addedServer();
      await h.call('POST', `/me/connections/${slug}/start`, { as: ada, body: {} });
      return () => send('DELETE', `/me/connections/${slug}`, ada, { target: () => slug });
    },
  },
  addAgentDefinition: {
    event: 'config.agents.changed',
    prepare: ready(() => send('POST', definitions, root, { body: definition(), target: () => 'agents' })),
  },
  changeAgentDefinition: {
    event: 'config.agents.changed',
    async prepare() {
      const at = `${definitions}/${await newDefinition()}`;
      return () => send('PATCH', at, root, { body: { purpose: 'Other' }, target: () => 'agents' });
    },
  },
  deleteAgentDefinition: {
    event: 'config.agents.changed',
    async prepare() {
      const at = `${definitions}/${await newDefinition()}`;
      return () => send('DELETE', at, root, { target: () => 'agents' });
    },
  },
  changeAgentModels: {
    event: 'config.agents.changed',
    prepare: ready(() =>
      send('PUT', '/config/agents/models', root, {
        headers: { 'if-match': '*' },
        body: { models: [] },
        target: () => 'agent-models',
      }),
    ),
  },
  revertAgentModels: {
    event: 'config.agents.changed',
    prepare: ready(() =>
      send('POST', '/config/agents/models/revert', root, {
        headers: { 'if-match': '*' },
        body: { version: 0 },
        target: () => 'agent-models',
      }),
    ),
  },
  approveAgentCall: { event: 'mcp.approval_decided', prepare: () => decide('approve') },
  refuseAgentCall: { event: 'mcp.approval_decided', prepare: () => decide('refuse') },
  chooseMyAgentDefinition: {
    event: 'mcp.definition_chosen',
    async prepare() {
      // A client with a definition allows no choice.
      const { agentDefinitions } = h.app.services;
      for (const { id } of await agentDefinitions.list())
        await agentDefinitions.remove(systemAuditContext, id);
      const at = `/me/agents/sessions/${await newSession()}/definition`;
      return () => send('PUT', at, ada, { body: { definitionId: null }, target: () => 'postern-mcp' });
    },
  },
  endMyAgentSession: { event: 'mcp.session_ended', prepare: () => endSession('/me', () => ada) },
  endAgentSession: { event: 'mcp.session_ended', prepare: () => endSession('', () => root) },
  changeMcpClient: {
    event: 'config.mcp.client_changed',
    async prepare() {
      const at = '/config/mcp/clients/postern-mcp';
      const known = await h.app.services.read.mcpClients.find('postern-mcp');
      const status = known?.status === 'blocked' ? 'allowed' : 'blocked';
      return () => send('PATCH', at, root, { body: { status }, target: () => 'postern-mcp' });
    },
  },
  addMetadataLink: {
    event: 'config.metadata.changed',
    prepare: ready(() =>
      send('POST', '/config/metadata', root, { body: metadataLink, target: () => 'metadata' }),
    ),
  },
  changeMetadataLink: {
    event: 'config.metadata.changed',
    async prepare() {
      const path = `/config/metadata/${await newLink()}`;
      return () => send('PATCH', path, root, { body: { text: 'Logs' }, target: () => 'metadata' });
    },
  },
  deleteMetadataLink: {
    event: 'config.metadata.changed',
    async prepare() {
      const path = `/config/metadata/${await newLink()}`;
      return () => send('DELETE', path, root, { target: () => 'metadata' });
    },
  },
  createRepository: {
    event: 'repository.created',
    async prepare() {
      const key = await h.serviceKey({ scopes: ['repos:write'] });
      const body = {
        fullName: `acme/website-${alone}`,
        cloneUrl: 'https://git.example.com/acme/website.git',
        defaultBranch: 'main',
      };
      return () => send('POST', '/repositories', key, { body });
    },
  },
  changeRepository: {
    event: 'repository.changed',
    async prepare() {
      const path = await repository();
      return () => send('PATCH', path, root, { body: { defaultBranch: 'trunk' } });
    },
  },
  setRepositoryCredential: {
    event: 'repository.credential_set',
    async prepare() {
      const path = await repository();
      return () => send('PUT', `${path}/credential`, root, { body: { token: 'of-git' } });
    },
  },
  removeRepositoryCredential: {
    event: 'repository.credential_removed',
    async prepare() {
      const path = `${await repository()}/credential`;
      await h.call('PUT', path, { as: root, body: { token: 'of-git' } });
      return () => send('DELETE', path, root);
    },
  },
  createRepositoryWebhook: {
    event: 'repository.webhook_set',
    async prepare() {
      const name = `acme/website-${alone}`;
      const id = await h.repository(name);
      return () => send('POST', `/repositories/${name}/webhook`, root, { target: () => id });
    },
  },
  removeRepositoryWebhook: {
    event: 'repository.webhook_removed',
    async prepare() {
      const path = `${await repository()}/webhook`;
      await h.call('POST', path, { as: root });
      return () => send('DELETE', path, root);
    },
  },
  deleteRepository: {
    event: 'repository.deleted',
    async prepare() {
      const path = await repository();
      return () => send('DELETE', path, root);
    },
  },
  createUser: {
    event: 'user.created',
    prepare: ready(() =>
      send('POST', '/users', root, { body: { email: `zoe${alone}@example.com`, name: 'Zoe' } }),
    ),
  },
  changeUser: {
    event: 'user.changed',
    prepare: ready(() => send('PATCH', `/users/${ada.user.id}`, root, { body: { name: 'Ada L.' } })),
  },
  deleteUser: {
    event: 'user.deleted',
    prepare: ready(() => send('DELETE', `/users/${ada.user.id}`, root)),
  },
  signOutUser: {
    event: 'user.signed_out',
    prepare: ready(() => send('POST', `/users/${ada.user.id}/sign-out`, root)),
  },
  resetUserPassword: {
    event: 'user.password_reset',
    prepare: ready(() => send('POST', `/users/${ada.user.id}/reset-password`, root)),
  },
  changeMyPassword: {
    event: 'user.password_changed',
    prepare: ready(() =>
      send('POST', '/me/password', ada, {
        body: { currentPassword: 'correct horse battery', newPassword: 'another horse battery' },
        target: () => ada.user.id,
      }),
    ),
  },
  resetUserPasskeys: {
    event: 'user.passkeys_reset',
    async prepare() {
      await newPasskey();
      return () => send('POST', `/users/${ada.user.id}/reset-passkeys`, root);
    },
  },
  createMyPasskey: {
    event: 'user.passkey_added',
    async prepare() {
      const body = await passkey();
      return () => send('POST', '/me/passkeys', ada, { body, target: () => ada.user.id });
    },
  },
  renameMyPasskey: {
    event: 'user.passkey_renamed',
    async prepare() {
      const path = await newPasskey();
      return () => send('PATCH', path, ada, { body: { name: 'Desk' }, target: () => ada.user.id });
    },
  },
  removeMyPasskey: {
    event: 'user.passkey_removed',
    async prepare() {
      const path = await newPasskey();
      return () => send('DELETE', path, ada, { target: () => ada.user.id });
    },
  },
  createGroup: {
    event: 'group.created',
    prepare: ready(() => send('POST', '/groups', root, { body: { name: `Team ${alone}` } })),
  },
  changeGroup: {
    event: 'group.changed',
    async prepare() {
      const id = await group();
      return () => send('PATCH', `/groups/${id}`, root, { body: { roles: ['user'] } });
    },
  },
  deleteGroup: {
    event: 'group.deleted',
    async prepare() {
      const id = await group();
      return () => send('DELETE', `/groups/${id}`, root);
    },
  },
  createMyRecoveryCodes: {
    event: 'user.recovery_codes_created',
    prepare: ready(() => send('POST', '/me/recovery-codes', ada, { target: () => ada.user.id })),
  },
  endMyOtherSessions: {
    event: 'session.ended',
    async prepare() {
      const other = await h.otherBrowser(ada);
      return () => send('DELETE', '/me/sessions', ada, { target: () => other.sessionId });
    },
  },
  endMySession: {
    event: 'session.ended',
    async prepare() {
      const other = await h.otherBrowser(ada);
      return () => send('DELETE', `/me/sessions/${other.sessionId}`, ada);
    },
  },
  endUserSessions: {
    event: 'session.ended',
    async prepare() {
      const solo = await h.person(`Elsewhere${(alone += 1)}`);
      return () => send('DELETE', `/users/${solo.user.id}/sessions`, root, { target: () => solo.sessionId });
    },
  },
  endUserSession: {
    event: 'session.ended',
    async prepare() {
      const other = await h.otherBrowser(ada);
      return () => send('DELETE', `/users/${ada.user.id}/sessions/${other.sessionId}`, root);
    },
  },
  disconnectMyClient: {
    event: 'client.revoked',
    async prepare() {
      await connect();
      return () => send('DELETE', '/me/clients/postern-cli', ada, { target: () => 'postern-cli' });
    },
  },
  disconnectUserClient: {
    event: 'client.revoked',
    async prepare() {
      await connect();
      const path = `/users/${ada.user.id}/clients/postern-cli`;
      return () => send('DELETE', path, root, { target: () => 'postern-cli' });
    },
  },
};

/**
 * What changes nothing that anyone else could see: a reader's own mark, the challenge for a passkey, the check of a file or of claims, a
 * hint to ask git, and the output of a build, whose deploy has its events.
 */
const unaudited = [
  'beginMyPasskey',
  'readMyNotice',
  'readNotice',
  'receiveGitWebhook',
  'sendEnvironmentFiles',
  'tryTrustRule',
  'validateConfigurationFile',
];

async function eventsOf(requestId: string) {
  // Through the service, because signing everyone out may have ended the session that would ask.
  const { events } = await h.app.services.audit.search({ requestId }, undefined, 100);
  return events;
}

describe('AU-01 a change leaves one event', () => {
  test('AU-01 this suite covers every route that changes something', () => {
    const changing = h.app.routes
      .filter(({ method }) => method !== 'GET')
      // Held to it in audited.test.ts of test/api/sites and test/api/environments.
      .filter(({ path }) => !/^\/(?:(?:config\/)?sites|environments|builds)\b/.test(path))
      .map(({ operationId }) => operationId);
    expect(changing.toSorted((a, b) => a.localeCompare(b))).toEqual(
      [...Object.keys(drills), ...unaudited].toSorted((a, b) => a.localeCompare(b)),
    );
  });

  test.each(Object.entries(drills))(
    'AU-01 %s: exactly one, with who, by which credential, what and in which request',
    async (_operation, { event, prepare }) => {
      const { answer, as, target } = await (await prepare())();
      expect(answer.status).toBeLessThan(300);
      const requestId = String(answer.headers['x-request-id']);
      const events = (await eventsOf(requestId)).filter((one) => one.outcome === 'success');
      const own = events.filter((one) => one.event === event || !one.event.startsWith('session.'));
      expect(own).toHaveLength(1);
      const actor =
        'user' in as
          ? { kind: 'user', id: as.user.id, credential: as.sessionId }
          : { id: as.type === 'service' ? as.id : ada.user.id, credential: as.id };
      expect(own[0]).toMatchObject({ event, actor, outcome: 'success', requestId, at: h.clock.now() });
      expect(own[0]?.target.id).toBe(target);
    },
  );
});

describe('AU-03 a change whose event cannot be written', () => {
  test.each(Object.entries(drills))(
    'AU-03 %s: is not made, and the answer is 503',
    async (operation, { prepare }) => {
      const use = await prepare();
      await sql`alter table audit_events add constraint out_of_order check (false) not valid`.run(
        h.database.sql,
      );
      const before = await contents(h);
      const { answer } = await use();
      const code = operation === 'exchangeIdToken' ? 'temporarily_unavailable' : 'store_unavailable';
      expect([answer.status, answer.error.code]).toEqual([503, code]);
      expect(await contents(h)).toEqual(before);
      await sql`alter table audit_events drop constraint out_of_order`.run(h.database.sql);
      expect((await use()).answer.status).toBeLessThan(300);
    },
  );
});
