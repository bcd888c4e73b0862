import {
  chmodSync,
  chownSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { createServer, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { certificateOfUnknownAuthority, isOpensslMissing } from '../../../test/certificate.ts';
import { isRedisMissing, type RedisServer, startRedis } from '../../../test/contract/kv-redis-server.ts';
import { testServer } from '../../../test/postgres.ts';
import { applyMigrations } from '../commands.ts';
import { readConfig } from '../../config/read.ts';
import { systemClock } from '../../core/clock.ts';
import { systemRandom } from '../../core/ids.ts';
import { examine } from './doctor.ts';
import type { World } from './finding.ts';
import { auditStore } from '../../features/audit/audit-store.ts';
import { createEncryption } from '../../platform/encryption.ts';
import { loadSigningKeys } from '../../features/oidc-provider/signing-keys.ts';
import { identityStores } from '../../composition/identity/identity-stores.ts';
import { openDatabaseAlone, openBackends } from '../../composition/backends/backends.ts';
import { lockDataDir } from '../../platform/data-dir.ts';
import { unavailableReasonForVersion } from '../../platform/database/facts.ts';
import { sql } from '../../platform/database/sql.ts';
import { unavailableReasonFor, serverFacts } from '../../platform/kv/redis-kv.ts';
import { lazyStores } from '../../platform/database/stores.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'postern-doctor-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const secretOf = () => randomBytes(32).toString('base64');
const secrets = { SESSION_SECRET: secretOf(), ENCRYPTION_KEY: secretOf(), GRANT_SECRET: secretOf() };

const nobodyAnswers = () => Promise.reject(Object.assign(new Error('refused'), { code: 'ECONNREFUSED' }));
const healthy: World = {
  nodeVersion: '24.21.0',
  now: () => Date.now(),
  freeBytes: async () => 10 * 1024 ** 3,
  lookUp: async () => undefined,
  get: async () => ({ status: 401 }),
};

type Env = Record<string, string>;

/** What is said about one check: its states, and all of its words. */
async function about(
  check: string,
  env: Env = {},
  world: Partial<World> = {},
  workload: 'all' | 'gateway' = 'all',
) {
  return (await examined(env, world, workload))(check);
}

/** The same for several checks of one examination. */
async function examined(env: Env, world: Partial<World> = {}, workload: 'all' | 'gateway' = 'all') {
  const all = { DATA_DIR: join(folder, 'data'), ...env };
  const findings = await examine(all, workload, { ...healthy, ...world });
  expect(findings.filter(({ state, fix }) => state === 'failed' && fix === null)).toEqual([]);
  // Whatever is wrong, no secret is told.
  for (const value of Object.values(secrets)) expect(JSON.stringify(findings)).not.toContain(value);
  return (check: string) => {
    const found = findings.filter((finding) => finding.check === check);
    return {
      states: found.map(({ state }) => state),
      says: found.map(({ says, fix }) => `${says} ${fix}`).join('\n'),
    };
  };
}

async function stateOf(...asked: Parameters<typeof about>) {
  return (await about(...asked)).states[0];
}

describe('the machine', () => {
  test('a Node that is too old is told', async () => {
    expect(await stateOf('node')).toBe('ok');
    expect(await stateOf('node', {}, { nodeVersion: '22.9.0' })).toBe('failed');
  });

  test('every mistake of the settings is told at once, and nothing is made', async () => {
    expect(await stateOf('configuration', secrets)).toBe('ok');
    const { states, says } = await about('configuration', {
      PORT: 'abc',
      KV_URL: 'x',
      SESSION_SECRET: 'short',
    });
    expect(states).toEqual(['failed', 'failed', 'failed']);
    expect(says).toMatch(/PORT[^]*KV_URL[^]*SESSION_SECRET/);
    expect(await stateOf('everything else', { PORT: 'abc' })).toBe('unknown');
    expect(readdirSync(folder)).toEqual([]);
  });

  test('every generated secret that others can read is told, not only the first', async () => {
    readConfig({ DATA_DIR: join(folder, 'data') });
    for (const name of ['session_secret', 'grant_secret'])
      chmodSync(join(folder, 'data/secrets', name), 0o644);
    expect((await about('configuration')).says).toMatch(
      /session_secret can be read[^]*grant_secret can be read/,
    );
  });

  test('a data folder that is not there yet is fine where it can be made', async () => {
    expect(await about('data.folder')).toMatchObject({
      states: ['ok'],
      says: expect.stringContaining('first start'),
    });
    writeFileSync(join(folder, 'file'), '');
    expect(await stateOf('data.folder', { DATA_DIR: join(folder, 'file/data') })).toBe('failed');
    expect(await stateOf('data.folder', { DATA_DIR: join(folder, 'file') })).toBe('failed');
  });

  test('a data folder is to be its user’s alone', async () => {
    const path = join(folder, 'data');
    mkdirSync(path, { mode: 0o700 });
    expect(await stateOf('data.folder')).toBe('ok');
    chmodSync(path, 0o755);
    expect(await stateOf('data.folder')).toBe('advice');
    chmodSync(path, 0o777);
    expect(await stateOf('data.folder')).toBe('failed');
    chmodSync(path, 0o700);
    if (process.getuid?.() !== 0) return;
    chownSync(path, 12_345, 12_345);
    expect(await about('data.folder')).toMatchObject({
      states: ['failed'],
      says: expect.stringContaining('12345'),
    });
  });

  test('a disk that is nearly full is told, with what is left', async () => {
    mkdirSync(join(folder, 'data'), { mode: 0o700 });
    const free = (bytes: number) => about('data.space', {}, { freeBytes: async () => bytes });
    expect((await free(2 * 1024 ** 3)).states).toEqual(['ok']);
    expect((await free(512 * 1024 ** 2)).states).toEqual(['advice']);
    expect(await free(1024 ** 2)).toMatchObject({
      states: ['failed'],
      says: expect.stringContaining('1 MiB free'),
    });
  });

  test('secrets are counted and measured, and never shown', async () => {
    const two = { ...secrets, SESSION_SECRET: `${secretOf()},${secrets.SESSION_SECRET}` };
    expect((await about('secrets.session_secret', two)).says).toContain('2 values');
  });

  test.each([
    ['can be guessed', 'secrets.session_secret', { SESSION_SECRET: 'x'.repeat(40) }],
    ['is that of another', 'secrets.grant_secret', { GRANT_SECRET: secrets.SESSION_SECRET }],
  ])(
    'a secret that %s is told with the steps that put nobody off, not with one of them',
    async (_, at, bad) => {
      const { states, says } = await about(at, { ...secrets, ...bad });
      expect(states).toEqual(['failed']);
      expect(says).toContain(
        'docs/how-to/rotate-secrets.md (with several processes: three steps, each with a restart)',
      );
      expect(says).not.toContain('in front');
      expect(says).not.toContain('x'.repeat(40));
    },
  );

  test('a secret that is set and is not the one of this data is told', async () => {
    readConfig({ DATA_DIR: join(folder, 'data') });
    expect(await stateOf('secrets.encryption_key')).toBe('ok');
    expect(await about('secrets.encryption_key', secrets)).toMatchObject({
      states: ['advice'],
      says: expect.stringContaining('differs from the value in DATA_DIR/secrets'),
    });
  });
});

describe('Keycloak', () => {
  let realm: Server;
  let issuer: string;
  /** What the realm answers at a path, to a form; everything else is 404. */
  let answers: (path: string, form: string) => unknown;
  beforeEach(async () => {
    realm = createServer((request, response) => {
      void text(request).then((form) => {
        const body = answers(request.url ?? '', form);
        response.writeHead(body === undefined ? 404 : 200, { 'content-type': 'application/json' });
        response.end(JSON.stringify(body ?? {}));
      });
    }).listen(0, '127.0.0.1');
    await once(realm, 'listening');
    // It listens on a port.
    issuer = `http://127.0.0.1:${(realm.address() as AddressInfo).port}/realms/postern`;
  });
  afterEach(() => {
    realm.close();
    realm.closeAllConnections();
  });

  const tokenOf = (roles: readonly string[]) =>
    ['{}', JSON.stringify({ sub: 'service', resource_access: { 'realm-management': { roles } } }), 's']
      .map((part) => Buffer.from(part).toString('base64url'))
      .join('.');
  const healthyRealm = (path: string, _form = '', roles = ['view-users', 'view-realm']): unknown => {
    if (path.includes('.well-known')) return { issuer };
    if (path.endsWith('/introspect')) return { active: true };
    if (path.endsWith('/token')) return { access_token: tokenOf(roles), expires_in: 60 };
    if (path.includes('/roles/')) return { name: path.split('/').at(-1) };
    if (path.includes('/groups') || path.includes('/composite')) return [];
    return { id: 'service', access: { view: true } };
  };
  const settings = () => ({
    ...secrets,
    IDENTITY_PROVIDER: 'keycloak',
    OIDC_ISSUER: issuer,
    OIDC_CLIENT_ID: 'postern-web',
    OIDC_CLIENT_SECRET: 'secret-of-the-login-client',
    PRINCIPAL_SYNC_CLIENT_ID: 'postern-principal-sync',
    PRINCIPAL_SYNC_CLIENT_SECRET: 'secret-of-the-reading-client',
  });
  const four = ['discovery', 'client_credentials', 'reading_people_and_roles', 'introspection'];
  const states = async (workload?: 'gateway') => {
    const found = await Promise.all(
      four.map((check) => stateOf(`identity.${check}`, settings(), {}, workload)),
    );
    return found.map((state) => state ?? 'none');
  };

  test('the four checks of the start are findings, in their order', async () => {
    answers = healthyRealm;
    expect(await states()).toEqual(['ok', 'ok', 'ok', 'ok']);
    // A gateway has no identity client to look at.
    expect(await states('gateway')).toEqual(['none', 'none', 'none', 'none']);
  });

  test.each<[string, (path: string) => unknown, string[], RegExp]>([
    [
      'no realm',
      () => undefined,
      ['failed', 'unknown', 'unknown', 'unknown'],
      /OIDC_ISSUER is not the address of a realm/,
    ],
    [
      'ID-14 a client that can manage',
      (path) => healthyRealm(path, '', ['view-users', 'manage-users']),
      ['ok', 'failed', 'unknown', 'unknown'],
      /can do more than read \(manage-users\)[^]*Give its service account only/,
    ],
    [
      'a role that is not there',
      (path) => (path.includes('/roles/admin') ? undefined : healthyRealm(path)),
      ['ok', 'ok', 'failed', 'unknown'],
      /OIDC_ADMIN_ROLE names a realm role that does not exist[^]*Create it/,
    ],
    [
      'ID-17 a client that is in no audience',
      (path) => (path.endsWith('/introspect') ? { active: false } : healthyRealm(path)),
      ['ok', 'ok', 'ok', 'failed'],
      /not in the audience[^]*audience mapper/,
    ],
  ])('%s is told at its check, with what to do, and no secret', async (_, answer, expected, words) => {
    answers = answer;
    expect(await states()).toEqual(expected);
    const at = `identity.${four[expected.indexOf('failed')]}`;
    const { says } = await about(at, settings());
    expect(says).toMatch(words);
    expect(says).not.toContain('secret-of-the');
  });

  test('the ways to register are named, and a mapper that mixes the API and /mcp is found', async () => {
    const resource = 'http://localhost:3000/mcp';
    const inScope = (audiences: string[]) => (path: string, form: string) => {
      if (path.includes('.well-known'))
        return { issuer, scopes_supported: ['mcp'], registration_endpoint: `${issuer}/register` };
      if (path.endsWith('/token') && form.includes('scope=mcp'))
        return { access_token: 'of-mcp', expires_in: 60 };
      if (path.endsWith('/introspect'))
        return { active: true, aud: form.includes('token=of-mcp') ? audiences : ['postern-principal-sync'] };
      return healthyRealm(path);
    };
    answers = inScope([resource]);
    expect((await about('identity.mcp_registration', settings())).says).toMatch(/they register themselves/);
    expect(await about('identity.mcp_audience', settings())).toMatchObject({ states: ['ok'] });
    answers = inScope([resource, 'http://localhost:3000/api/v2']);
    const { states: found, says } = await about('identity.mcp_audience', settings());
    expect([found, says]).toEqual([['failed'], expect.stringContaining('Remove the mapper for')]);
    answers = healthyRealm;
    expect(await about('identity.mcp_audience', settings())).toMatchObject({ states: ['advice'] });
  });

  test('an unreachable one is reported as unreachable', async () => {
    answers = healthyRealm;
    realm.close();
    expect(await states()).toEqual(['failed', 'unknown', 'unknown', 'unknown']);
    const { says } = await about('identity.discovery', settings());
    expect(says).toMatch(/cannot be reached: no server listens at this address \(ECONNREFUSED\)/);
  });

  test.skipIf(isOpensslMissing)(
    'one whose certificate Node does not trust names the setting that helps',
    async () => {
      const secure = createTlsServer(certificateOfUnknownAuthority()).listen(0, '127.0.0.1');
      await once(secure, 'listening');
      const { port } = secure.address() as AddressInfo;
      const env = { ...settings(), OIDC_ISSUER: `https://127.0.0.1:${port}/realms/postern` };
      const { states: found, says } = await about('identity.discovery', env);
      expect(found).toEqual(['failed']);
      expect(says).toMatch(/not trusted \(UNABLE_TO_VERIFY_LEAF_SIGNATURE\)[^]*NODE_EXTRA_CA_CERTS/);
      secure.close();
    },
  );

  test('the built-in provider’s keys are not waited for', async () => {
    answers = healthyRealm;
    copyEmbedded();
    await changeEmbedded('delete from provider_signing_keys');
    const ofRealm = await examined({ ...secrets, ...settings() });
    expect(ofRealm('database.migrations').states).toEqual(['ok']);
    expect(ofRealm('identity.signing_keys').states).toEqual([]);
    expect((await about('identity.signing_keys', secrets)).says).toContain('the first start creates them');
  });
});

/** An embedded database as a first start makes it. Each test that needs one takes a copy: making it takes seconds. */
let firstStart: string;
beforeAll(async () => {
  firstStart = mkdtempSync(join(tmpdir(), 'postern-doctor-'));
  const config = readConfig({ DATA_DIR: join(firstStart, 'data'), ...secrets });
  const backends = await openBackends(config, { isServer: false });
  await applyMigrations(config, backends);
  const { signingKeys } = lazyStores(identityStores(systemClock))(backends.database.sql);
  await loadSigningKeys(signingKeys, createEncryption(config.encryptionKeys, systemRandom));
  await backends.close();
});
afterAll(() => rmSync(firstStart, { recursive: true, force: true }));

const copyEmbedded = () => cpSync(join(firstStart, 'data'), join(folder, 'data'), { recursive: true });

async function changeEmbedded(statement: string): Promise<void> {
  const config = readConfig({ DATA_DIR: join(folder, 'data'), ...secrets });
  const { database, close } = await openDatabaseAlone(config);
  await sql.raw(statement).run(database.sql);
  await close();
}

describe('the embedded database', () => {
  beforeEach(copyEmbedded);

  test('people who all sign in from one address are reported with it, until there is another address', async () => {
    const afterSignIns = async (...all: readonly (readonly [person: string, address: string])[]) => {
      const config = readConfig({ DATA_DIR: join(folder, 'data'), ...secrets });
      const { database, close } = await openDatabaseAlone(config);
      const audit = auditStore(database.sql, { clock: systemClock, random: systemRandom });
      for (const [person, address] of all)
        await audit.append({
          event: 'session.started',
          auditContext: {
            actor: { kind: 'user', id: person, name: person, credential: null },
            origin: { requestId: null, address, agent: null },
          },
          target: { kind: 'session', id: person },
          outcome: 'success',
        });
      await close();
      return await about('identity.addresses', secrets);
    };
    expect(await afterSignIns(['usr_a', '10.0.0.7'], ['usr_b', '10.0.0.7'])).toMatchObject({ states: [] });
    expect(await afterSignIns(['usr_c', '10.0.0.7'])).toMatchObject({
      states: ['advice'],
      says: expect.stringMatching(/3 people [^]*10\.0\.0\.7[^]*TRUSTED_PROXIES/),
    });
    expect(await afterSignIns(['usr_c', '192.0.2.1'])).toMatchObject({ states: ['ok'] });
  });

  test('stopped, it is opened: version, steps, signing keys', async () => {
    const found = await examined(secrets);
    expect(found('database.version')).toMatchObject({
      states: ['ok'],
      says: expect.stringContaining('embedded'),
    });
    expect(found('database.migrations').states).toEqual(['ok']);
    expect(found('database.search').states).toEqual(['ok']);
    expect(found('identity.signing_keys').states).toEqual(['ok']);
    const other = { ...secrets, ENCRYPTION_KEY: secretOf() };
    expect(await about('identity.signing_keys', other)).toMatchObject({
      states: ['failed'],
      says: expect.stringMatching(/nobody can sign in/),
    });
    const rotated = await examined({
      ...secrets,
      ENCRYPTION_KEY: `${secretOf()},${secrets.ENCRYPTION_KEY}`,
    });
    expect(rotated('identity.signing_keys').states).toEqual(['ok']);
    expect(rotated('secrets.sealed')).toMatchObject({
      states: ['advice'],
      says: expect.stringMatching(/^1 sessions, grants, credentials or keys[^]*Keep that value in the list/),
    });
    const known = { ...secrets, ENCRYPTION_KEY: `${secrets.ENCRYPTION_KEY},${secretOf()}` };
    expect(await about('secrets.sealed', known)).toMatchObject({
      states: ['ok'],
      says: expect.stringContaining('you can remove the others'),
    });
  });

  test('steps that wait, and steps of a newer version or of edited files, are told', async () => {
    const told = () => about('database.migrations', secrets);
    await changeEmbedded(`insert into schema_migrations (name, checksum) values ('9999_newer.sql', 'x')`);
    expect(await told()).toMatchObject({
      states: ['advice'],
      says: expect.stringContaining('9999_newer.sql'),
    });
    await changeEmbedded(`delete from schema_migrations where name > '0005'`);
    expect((await told()).states).toEqual(['advice']);
    await changeEmbedded(`update schema_migrations set checksum = 'x' where name like '0001%'`);
    expect(await told()).toMatchObject({ states: ['failed'], says: expect.stringContaining('0001_') });
  });

  test('a database with the migrations of a build before 0.1.0 is reported', async () => {
    await changeEmbedded(`with gone as (delete from schema_migrations)
      insert into schema_migrations (name, checksum) values ('0031_parts_of_key_names.sql', 'x')`);
    expect(await about('database.migrations', secrets)).toMatchObject({
      states: ['failed'],
      says: expect.stringContaining('the newest is 0031_parts_of_key_names.sql'),
    });
  });

  test('while a server has it, what can be asked is asked, and what cannot is said', async () => {
    const lock = await lockDataDir(join(folder, 'data'));
    const ready = (status: number) => about('database', secrets, { get: async () => ({ status }) });
    expect(await ready(200)).toMatchObject({
      states: ['unknown'],
      says: expect.stringContaining(`process ${process.pid} uses it and is ready`),
    });
    expect((await ready(503)).states).toEqual(['failed']);
    expect((await about('database', secrets, { get: nobodyAnswers })).states).toEqual(['unknown']);
    expect((await about('data.lock', secrets)).says).toContain(`in use by process ${process.pid}`);
    lock.release();
    expect((await about('data.lock', secrets)).says).toContain('no process uses');
  });
});

test('versions that are too old are told by what the servers say of themselves', () => {
  expect(unavailableReasonForVersion({ version: '15.0', versionNumber: 150_000 })).toBeNull();
  expect(unavailableReasonForVersion({ version: '14.11', versionNumber: 140_011 })?.problem).toContain(
    'PostgreSQL 14.11',
  );
  const info = (version: string, policy: string) =>
    unavailableReasonFor(
      serverFacts(`# Server\r\nredis_version:${version}\r\nmaxmemory_policy:${policy}\r\n`),
    );
  expect(info('7.0.15', 'noeviction')).toBeNull();
  expect(info('6.2.14', 'noeviction')?.problem).toContain('6.2.14');
  expect(info('7.0.15', 'allkeys-lru')?.problem).toContain('allkeys-lru');
  expect(unavailableReasonFor(serverFacts(''))).not.toBeNull();
});

describe.skipIf(isRedisMissing)('the key-value store', () => {
  let redis: RedisServer;
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.stop());

  test('is asked for its version, its policy and its clock', async () => {
    const env = { ...secrets, KV_URL: redis.url };
    expect(await about('kv', env)).toMatchObject({
      states: ['ok'],
      says: expect.stringMatching(/Redis \d+\.\d+.*noeviction/),
    });
    expect(await stateOf('time.kv', env)).toBe('ok');
    const late = { now: () => Date.now() - 5_000 };
    expect(await about('time.kv', env, late)).toMatchObject({
      states: ['failed'],
      says: expect.stringMatching(/[45]\.\d s ahead/),
    });
  });

  test('that is not there is told', async () => {
    expect(await about('kv', { ...secrets, KV_URL: 'redis://:geheim@127.0.0.1:1' })).toMatchObject({
      states: ['failed'],
      says: expect.stringContaining('no server listens'),
    });
  });
});

test('an object store that is not there is told, without its key', async () => {
  const env = {
    ...secrets,
    OBJECT_STORE_URL: 's3://bucket?endpoint=http://127.0.0.1:1',
    OBJECT_STORE_ACCESS_KEY: 'ours',
    OBJECT_STORE_SECRET_KEY: 'geheim-geheim',
  };
  const told = await about('object_store', env);
  expect(told).toMatchObject({ states: ['failed'], says: expect.stringContaining('no server listens') });
  expect(told.says).not.toContain('geheim');
  expect(await stateOf('object_store')).toBe('ok');
});

describe('the addresses', () => {
  const apart = {
    SERVICE_UI_URL: 'https://postern.example.com',
    SITES_CONTENT_URL: 'https://sites.example.net',
  };

  test('a content domain that shares the web app’s is told, unless it is allowed', async () => {
    const shared = { ...apart, SITES_CONTENT_URL: 'https://sites.example.com' };
    expect(await stateOf('hosts.private_sites', apart)).toBe('ok');
    expect(await stateOf('hosts.private_sites', shared)).toBe('failed');
    expect(await stateOf('hosts.private_sites', { ...shared, SITES_ALLOW_SHARED_APEX: 'true' })).toBe(
      'advice',
    );
    expect(await stateOf('hosts.private_sites', { SERVICE_UI_URL: 'https://postern.example.com' })).toBe(
      'failed',
    );
  });

  test('a wildcard that leads nowhere, fails or has no certificate is told', async () => {
    const wildcard = (world: Partial<World>) => stateOf('hosts.wildcard', apart, world);
    expect(await wildcard({})).toBe('ok');
    expect(await wildcard({ get: async () => ({ status: 502 }) })).toBe('failed');
    const noWildcard = async (host: string) => {
      if (host !== 'sites.example.net') throw new Error('ENOTFOUND');
    };
    expect(await wildcard({ lookUp: noWildcard })).toBe('failed');
    expect(await wildcard({ lookUp: nobodyAnswers })).toBe('unknown');
    expect(await wildcard({ get: nobodyAnswers })).toBe('unknown');
    const wrongName = Object.assign(new Error('x'), { code: 'ERR_TLS_CERT_ALTNAME_INVALID' });
    expect(await wildcard({ get: () => Promise.reject(wrongName) })).toBe('failed');
  });

  test('a domain of Environments is judged like that of sites, where it is another one', async () => {
    const own = { ...apart, ENVIRONMENTS_CONTENT_URL: 'https://branches.example.org' };
    expect(await stateOf('hosts.private_environments', apart)).toBeUndefined();
    expect(await stateOf('hosts.private_environments', own)).toBe('ok');
    const shared = { ...own, ENVIRONMENTS_CONTENT_URL: 'https://branches.example.com' };
    expect(await about('hosts.private_environments', shared)).toMatchObject({
      states: ['failed'],
      says: expect.stringContaining('Set ENVIRONMENTS_CONTENT_URL'),
    });
    const noWildcard = async (host: string) => {
      if (host.endsWith('.branches.example.org')) throw new Error('ENOTFOUND');
    };
    expect(await about('hosts.wildcard', own, { lookUp: noWildcard })).toMatchObject({
      states: ['ok', 'failed'],
      says: expect.stringContaining('none for *.branches.example.org'),
    });
  });

  test('a proxy in front whose forwarded headers do not count is reported, with the setting', async () => {
    const { states, says } = await about('hosts.proxies', apart);
    expect(states).toEqual(['advice']);
    expect(says).toMatch(/TRUSTED_PROXIES is empty[^]*Set TRUSTED_PROXIES/);
    expect(await stateOf('hosts.proxies', { ...apart, TRUSTED_PROXIES: '10.0.0.7' })).toBe('ok');
    expect(await stateOf('hosts.proxies', {})).toBeUndefined();
  });

  test('a certificate that Node does not trust is no wrong name, and names the setting that helps', async () => {
    const untrusted = Object.assign(new Error('x'), { code: 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY' });
    for (const check of ['hosts.ui', 'hosts.wildcard'])
      expect(await about(check, apart, { get: () => Promise.reject(untrusted) })).toMatchObject({
        states: ['unknown'],
        says: expect.stringContaining('NODE_EXTRA_CA_CERTS'),
      });
  });

  test('a web app that fails is told, one that is stopped is not a fault', async () => {
    const ui = (get: World['get']) => stateOf('hosts.ui', apart, { get });
    expect(await ui(async () => ({ status: 401 }))).toBe('ok');
    expect(await ui(async () => ({ status: 503 }))).toBe('failed');
    expect(await ui(nobodyAnswers)).toBe('unknown');
  });
});

// With TEST_DATABASE_URL, as in npm run test:postgres.
describe.skipIf(testServer === undefined)('PostgreSQL', () => {
  const name = `postern_doctor_${randomBytes(4).toString('hex')}`;
  const role = `${name}_role`;
  const urlAs = (user: string) => {
    const url = new URL(testServer ?? '');
    url.pathname = `/${name}`;
    url.username = user;
    return url.href;
  };
  async function run(statement: string, url = testServer): Promise<void> {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    await client.query(statement);
    await client.end();
  }
  const owner = () => ({ ...secrets, DATABASE_URL: urlAs(new URL(testServer ?? '').username) });
  beforeAll(async () => {
    await run(`create database ${name} template postern_template`);
    await run(`create role ${role} login`);
  });
  afterAll(async () => {
    await run(`drop database ${name} with (force)`);
    await run(`drop role ${role}`);
  });

  test('version, clock, migrations and role are checked', async () => {
    expect(await stateOf('database.version', owner())).toBe('ok');
    expect(await stateOf('database.migrations', owner())).toBe('ok');
    // The tests' own role is one.
    expect(await about('database.role', owner())).toMatchObject({
      states: ['advice'],
      says: expect.stringContaining('superuser'),
    });
    expect(await stateOf('time.database', owner())).toBe('ok');
    expect(await stateOf('time.database', owner(), { now: () => Date.now() + 60_000 })).toBe('failed');
  });

  test('a role that may not write, or not make tables, is told', async () => {
    await run(`grant select on schema_migrations, provider_signing_keys to ${role}`, owner().DATABASE_URL);
    expect(await about('database.role', { ...secrets, DATABASE_URL: urlAs(role) })).toMatchObject({
      states: ['failed'],
      says: expect.stringContaining('no permission to read and change'),
    });
    await run(`grant all on all tables in schema public to ${role}`, owner().DATABASE_URL);
    expect(await about('database.role', { ...secrets, DATABASE_URL: urlAs(role) })).toMatchObject({
      states: ['failed'],
      says: expect.stringContaining('no permission to create tables'),
    });
    await run(`grant create on schema public to ${role}`, owner().DATABASE_URL);
    expect(await stateOf('database.role', { ...secrets, DATABASE_URL: urlAs(role) })).toBe('ok');
    await run(`drop owned by ${role}`, owner().DATABASE_URL);
  });

  test('a gateway is to have its views and nothing else', async () => {
    const env = {
      GRANT_SECRET: secrets.GRANT_SECRET,
      DATABASE_URL: urlAs(role),
      KV_URL: 'redis://127.0.0.1:1',
    };
    expect(await stateOf('database.role', env, {}, 'gateway')).toBe('failed');
    await run(
      `grant usage on schema gateway to ${role}; grant select on all tables in schema gateway to ${role}`,
      owner().DATABASE_URL,
    );
    // After a restore, this right is missing: a dump does not hold it.
    expect(await about('database.role', env, {}, 'gateway')).toMatchObject({
      states: ['advice'],
      says: expect.stringContaining('making temporary tables'),
    });
    await run(`revoke temporary on database ${name} from public`);
    expect(await stateOf('database.role', env, {}, 'gateway')).toBe('ok');
    await run(`grant select on sites to ${role}`, owner().DATABASE_URL);
    expect(await stateOf('database.role', env, {}, 'gateway')).toBe('advice');
    await run(`drop owned by ${role}`, owner().DATABASE_URL);
  });

  test('a server that is not there is told without the password', async () => {
    const told = await about('database', { ...secrets, DATABASE_URL: 'postgres://ada:geheim@127.0.0.1:1/x' });
    expect(told).toMatchObject({ states: ['failed'], says: expect.stringContaining('no server listens') });
    expect(told.says).not.toContain('geheim');
  });
});
