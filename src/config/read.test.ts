import {
  chmodSync,
  chownSync,
  existsSync,
  lchownSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ConfigError, type ConfigMistake } from './config-error.ts';
import { readConfig } from './read.ts';
import { configReference } from './settings.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'postern-config-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

const strong = 'a secret of more than thirty-two characters';
const read = (env: Record<string, string> = {}) =>
  readConfig({
    DATA_DIR: join(folder, 'data'),
    SESSION_SECRET: strong,
    ENCRYPTION_KEY: strong,
    GRANT_SECRET: strong,
    ...env,
  });

/** What a configuration is refused for; empty when it is taken. */
function refusalOf(env: Record<string, string>): readonly ConfigMistake[] {
  try {
    read(env);
    return [];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.mistakes;
  }
}

const mistakesOf = (env: Record<string, string>) => refusalOf(env).map(({ setting }) => setting);

function file(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

test('a migration needs the database and no secret, and makes none', () => {
  const dataDir = join(folder, 'migration');
  const config = readConfig({ DATA_DIR: dataDir, DATABASE_URL: 'postgresql://owner@db/postern' }, 'migrate');
  expect(config).toMatchObject({ sessionSecrets: [], encryptionKeys: [], grantSecrets: [] });
  expect(readConfig({ DATA_DIR: dataDir }, 'migrate').databaseUrl).toBeNull();
  expect(existsSync(dataDir)).toBe(false);
});

describe('a workload on its own', () => {
  const shared = { DATABASE_URL: 'postgres://postern@db/postern', KV_URL: 'redis://kv:6379' };
  const secrets = { SESSION_SECRET: strong, ENCRYPTION_KEY: strong, GRANT_SECRET: strong };

  test.each(['web', 'gateway', 'worker'] as const)(
    '%s wants the engines that all share, and says so',
    (workload) => {
      const alone = () => readConfig({ DATA_DIR: join(folder, 'alone'), ...secrets }, workload);
      expect(alone).toThrow(`DATABASE_URL: is required when ${workload} runs on its own`);
      expect(alone).toThrow(`KV_URL: is required when ${workload} runs on its own`);
      expect(existsSync(join(folder, 'alone'))).toBe(false);
      expect(() => readConfig({ ...shared, ...secrets }, workload)).not.toThrow();
    },
  );

  test('GW-10 a gateway wants GRANT_SECRET alone, and leaves the other secrets where they are', () => {
    const { sessionSecrets, encryptionKeys, grantSecrets } = readConfig({ ...shared, ...secrets }, 'gateway');
    expect({ sessionSecrets, encryptionKeys, grantSecrets }).toEqual({
      sessionSecrets: [],
      encryptionKeys: [],
      grantSecrets: [strong],
    });
    expect(() => readConfig({ ...shared, GRANT_SECRET: strong }, 'gateway')).not.toThrow();
    expect(() => readConfig(shared, 'gateway')).toThrow('GRANT_SECRET: is required');
    expect(() => readConfig({ ...shared, GRANT_SECRET: strong }, 'web')).toThrow(
      'SESSION_SECRET: is required',
    );
  });
});

describe('Keycloak as identity provider', () => {
  const keycloak = {
    IDENTITY_PROVIDER: 'keycloak',
    OIDC_ISSUER: 'https://id.example.com/realms/postern',
    OIDC_CLIENT_ID: 'postern-web',
    OIDC_CLIENT_SECRET: 'the secret of the login client',
    PRINCIPAL_SYNC_CLIENT_ID: 'postern-principal-sync',
    PRINCIPAL_SYNC_CLIENT_SECRET: 'the secret of the reading client',
  };
  const required = Object.keys(keycloak).filter((name) => name !== 'IDENTITY_PROVIDER');

  test('is read whole, secrets from files too', () => {
    const { PRINCIPAL_SYNC_CLIENT_SECRET: secret, ...others } = keycloak;
    const inFile = file('principal-sync-secret', `${secret}\n`);
    expect(read({ ...others, PRINCIPAL_SYNC_CLIENT_SECRET_FILE: inFile }).keycloak).toEqual({
      issuer: keycloak.OIDC_ISSUER,
      login: { id: 'postern-web', secret: keycloak.OIDC_CLIENT_SECRET },
      principalSync: { id: 'postern-principal-sync', secret },
      roleNames: { user: 'user', admin: 'admin' },
    });
    expect(read().keycloak).toBeNull();
  });

  test('half of it refuses to start, and names all that is missing', () => {
    expect(mistakesOf({ IDENTITY_PROVIDER: 'keycloak' }).sort()).toEqual(required.toSorted());
    for (const name of required) expect(mistakesOf({ ...keycloak, [name]: '' })).toEqual([name]);
    for (const name of required) expect(mistakesOf({ [name]: keycloak.OIDC_ISSUER })).toEqual([name]);
  });

  test.each([
    ['http://id.example.com/realms/postern', 'must use https'],
    ['id.example.com/realms/postern', 'not an address'],
    ['https://id.example.com', 'not the address of a realm'],
    ['https://id.example.com/realms/postern/', 'not the address of a realm'],
    ['https://id.example.com/realms/postern/protocol/openid-connect', 'not the address of a realm'],
    ['https://ada@id.example.com/realms/postern', 'not the address of a realm'],
    ['https://id.example.com/realms/master', 'Keycloak itself is administered'],
  ])('an issuer such as %s is refused', (issuer, words) => {
    expect(refusalOf({ ...keycloak, OIDC_ISSUER: issuer })[0]).toMatchObject({
      setting: 'OIDC_ISSUER',
      problem: expect.stringContaining(words),
    });
  });

  test.each([
    'https://id.example.com/auth/realms/postern',
    'http://localhost:8080/realms/postern',
    'http://127.0.0.1:8080/realms/postern',
  ])('an issuer such as %s is taken', (issuer) => {
    expect(read({ ...keycloak, OIDC_ISSUER: issuer }).keycloak?.issuer).toBe(issuer);
  });

  test('its roles can have other names, and not one name for both', () => {
    const named = { ...keycloak, OIDC_USER_ROLE: 'postern-user', OIDC_ADMIN_ROLE: 'postern-admin' };
    expect(read(named).keycloak?.roleNames).toEqual({ user: 'postern-user', admin: 'postern-admin' });
    expect(mistakesOf({ ...keycloak, OIDC_ADMIN_ROLE: 'user' })).toEqual(['OIDC_ADMIN_ROLE']);
  });

  test('the first administrator is not made here', () => {
    expect(
      mistakesOf({
        ...keycloak,
        BOOTSTRAP_ADMIN_EMAIL: 'ada@example.com',
        BOOTSTRAP_ADMIN_PASSWORD: 'a long enough password',
      }),
    ).toEqual(['BOOTSTRAP_ADMIN_EMAIL', 'BOOTSTRAP_ADMIN_PASSWORD']);
  });

  test('GW-10 a gateway reads none of it, not even a file of a secret', () => {
    const env = {
      DATABASE_URL: 'postgres://postern@db/postern',
      KV_URL: 'redis://kv:6379',
      GRANT_SECRET: strong,
      ...keycloak,
      OIDC_CLIENT_SECRET: '',
      OIDC_CLIENT_SECRET_FILE: join(folder, 'not-there'),
    };
    expect(readConfig(env, 'gateway').keycloak).toBeNull();
    expect(() => readConfig({ ...env, IDENTITY_PROVIDER: 'keycloak' }, 'web')).toThrow(
      'OIDC_CLIENT_SECRET_FILE: names a file that cannot be read',
    );
  });
});

describe('reading the configuration', () => {
  test('nothing set is a program on loopback with embedded parts', () => {
    expect(readConfig({ DATA_DIR: join(folder, 'nothing') })).toMatchObject({
      uiUrl: 'http://localhost:3000',
      contentUrl: 'http://sites.localhost:3001',
      environmentsContentUrl: 'http://sites.localhost:3001',
      host: '127.0.0.1',
      port: 3000,
      gatewayPort: 3001,
      metricsPort: 9464,
      databaseUrl: null,
      kvUrl: null,
      trustedProxies: [],
      keyPrefix: 'app',
      bootstrapAdmin: null,
    });
  });

  test('Environments are below the host of sites unless they have an address of their own, for every process', () => {
    const sites = { DATA_DIR: join(folder, 'nothing'), SITES_CONTENT_URL: 'https://sites.example.net' };
    const shared = {
      DATABASE_URL: 'postgres://postern@db/postern',
      KV_URL: 'redis://kv',
      GRANT_SECRET: strong,
      SESSION_SECRET: strong,
      ENCRYPTION_KEY: strong,
    };
    for (const [workload, env] of [
      ['all', sites],
      ['gateway', { ...sites, ...shared }],
      ['web', { ...sites, ...shared }],
      ['worker', { ...sites, ...shared }],
    ] as const) {
      const own = { ...env, ENVIRONMENTS_CONTENT_URL: 'https://branches.example.org/' };
      expect(readConfig(env, workload).environmentsContentUrl).toBe('https://sites.example.net');
      expect(readConfig(own, workload)).toMatchObject({
        contentUrl: 'https://sites.example.net',
        environmentsContentUrl: 'https://branches.example.org',
      });
    }
  });

  test('a role for gateways is taken with PostgreSQL alone: the embedded database has one role', () => {
    const role = { GATEWAY_DATABASE_ROLE: 'postern_gateway' };
    expect(mistakesOf(role)).toEqual(['GATEWAY_DATABASE_ROLE']);
    const onPostgres = { ...role, DATABASE_URL: 'postgres://postern@db/postern' };
    expect(readConfig(onPostgres, 'migrate').gatewayDatabaseRole).toBe('postern_gateway');
  });

  test('the limits and the reader of a gateway are settings; 0 is no limit', () => {
    const read = (env: Record<string, string>) => {
      const { gatewayLimits, gatewayFastHttp } = readConfig({ DATA_DIR: join(folder, 'nothing'), ...env });
      return { ...gatewayLimits, gatewayFastHttp };
    };
    expect(read({})).toEqual({ perAddress: 60_000, perHost: 600_000, gatewayFastHttp: true });
    const set = {
      GATEWAY_REQUESTS_PER_ADDRESS: '250000',
      GATEWAY_REQUESTS_PER_HOST: '0',
      GATEWAY_FAST_HTTP: 'off',
    };
    expect(read(set)).toEqual({ perAddress: 250_000, perHost: 0, gatewayFastHttp: false });
    for (const name of Object.keys(set))
      for (const value of ['-1', '1.5', 'none', '1e3', 'false']) {
        expect([name, value, mistakesOf({ [name]: value })]).toEqual([name, value, [name]]);
      }
  });

  test('SE-02 every mistake is told at once, each with what to do', () => {
    const wrong = {
      SERVICE_UI_URL: 'postern.example.com',
      SITES_CONTENT_URL: 'http://sites.example.com',
      PORT: 'eighty',
      GATEWAY_PORT: '70000',
      METRICS_PORT: '-1',
      DATABASE_URL: 'mysql://db/postern',
      KV_URL: 'memcached://kv',
      IDENTITY_PROVIDER: 'magic',
      OWNER_SWEEP_MINUTES: '0',
      KEY_PREFIX: 'My Product',
      LOG_LEVEL: 'loud',
      SESSION_SECRET: 'secret',
      ENCRYPTION_KEY: 'changeme',
      BOOTSTRAP_ADMIN_EMAIL: 'ada@example.com',
    };
    expect(mistakesOf(wrong).sort()).toEqual(Object.keys(wrong).sort());
    for (const { setting, problem, fix } of refusalOf(wrong)) {
      expect(problem).not.toBe('');
      expect(fix).toMatch(/^[A-Z].*\.$|openssl/);
      expect(() => read(wrong)).toThrow(setting);
    }
  });

  test.each<[string, Record<string, string>, string[]]>([
    ['a provider', { IDENTITY_PROVIDER: 'Keycloak', OIDC_CLIENT_ID: 'postern-web' }, ['IDENTITY_PROVIDER']],
    ['a database', { DATABASE_URL: 'db', GATEWAY_DATABASE_ROLE: 'gateway' }, ['DATABASE_URL']],
    ['an address', { SERVICE_UI_URL: 'postern.example.com', HOST: '0.0.0.0' }, ['SERVICE_UI_URL']],
    ['a port', { PORT: 'abc', GATEWAY_PORT: '3000' }, ['PORT']],
  ])('%s that is wrong makes no other setting wrong', (_, env, expected) => {
    expect(mistakesOf(env)).toEqual(expected);
  });

  test('every secret that is missing is named beside a database whose address is wrong', () => {
    const none = { SESSION_SECRET: '', ENCRYPTION_KEY: '', GRANT_SECRET: '' };
    expect(mistakesOf({ ...none, DATABASE_URL: 'db' })).toEqual([
      'DATABASE_URL',
      'SESSION_SECRET',
      'ENCRYPTION_KEY',
      'GRANT_SECRET',
    ]);
  });

  test('a mistake repeats a word or a number, and nothing that may be a secret', () => {
    expect(refusalOf({ LOG_LEVEL: 'loud', PORT: '70000' }).map(({ problem }) => problem)).toEqual([
      '"70000" is not a port',
      '"loud" is not a log level',
    ]);
    const swapped = { BOOTSTRAP_ADMIN_EMAIL: 'hunter2hunter2', BOOTSTRAP_ADMIN_PASSWORD: 'ada@example.com' };
    const pasted = {
      KEY_PREFIX: 'hunter2hunter2',
      OIDC_ISSUER: 'hunter2hunter2',
      LOG_LEVEL: 'hunter2hunter2',
    };
    expect(() => read({ ...swapped, ...pasted, IDENTITY_PROVIDER: 'keycloak' })).toThrow(ConfigError);
    expect(() => read({ ...swapped, ...pasted, IDENTITY_PROVIDER: 'keycloak' })).not.toThrow(/hunter2/);
  });

  test.each([
    ['http://postern.example.com', false],
    ['http://192.0.2.7:3000', false],
    ['http://127.example.com', false],
    ['http://localhost.example.com', false],
    ['http://0.0.0.0:3000', false],
    ['ftp://localhost', false],
    ['https://postern.example.com/app', false],
    ['https://user:password@postern.example.com', false],
    ['https://user@postern.example.com', false],
    ['https://postern.example.com?x=1', false],
    ['https://postern.example.com', true],
    ['https://postern.example.com:8443', true],
    ['http://localhost:3000', true],
    ['http://ui.localhost:3000', true],
    ['http://127.0.0.1:3000', true],
    ['http://127.4.5.6', true],
    ['http://[::1]:3000', true],
  ])('SE-02 the addresses of UI and content may be %s: %s', (address, isTaken) => {
    expect(mistakesOf({ SERVICE_UI_URL: address })).toEqual(isTaken ? [] : ['SERVICE_UI_URL']);
    for (const setting of ['SITES_CONTENT_URL', 'ENVIRONMENTS_CONTENT_URL'])
      expect(mistakesOf({ [setting]: address })).toEqual(isTaken ? [] : [setting]);
  });

  test.each(['postern.example.com', 'localhost:3000', '127.0.0.1:3000', '//postern.example.com'])(
    'SE-02 an address without a scheme, such as %s, is told to lack it',
    (address) => {
      for (const setting of ['SERVICE_UI_URL', 'SITES_CONTENT_URL', 'ENVIRONMENTS_CONTENT_URL']) {
        expect(refusalOf({ [setting]: address })).toEqual([
          {
            setting,
            problem: 'has no scheme',
            fix: expect.stringMatching(/https:\/\/.*http:\/\/localhost/),
          },
        ]);
      }
    },
  );

  test.each([
    ['DATABASE_URL', 'postgresql://ada:secret@db:5432/postern', true],
    ['DATABASE_URL', 'postgres://ada@/postern?host=/run/postgresql', true],
    ['DATABASE_URL', 'postgresql:///postern', true],
    ['DATABASE_URL', 'postgresql://ada:a%2Fb@db/postern', true],
    ['DATABASE_URL', 'postgresql://ada:a/b@db/postern', false],
    ['DATABASE_URL', 'postgresql://ada:100%@db/postern', false],
    ['DATABASE_URL', 'postgresql:db', false],
    ['KV_URL', 'redis://kv:6379', true],
    ['KV_URL', 'rediss://:a%40b@kv:6380/1', true],
    ['KV_URL', 'redis://:a/b@kv:6379', false],
    ['KV_URL', 'redis://:100%@kv', false],
  ])('SE-02 %s may be %s: %s', (setting, address, isTaken) => {
    expect(mistakesOf({ [setting]: address })).toEqual(isTaken ? [] : [setting]);
  });

  test('SE-02 two listeners cannot have one port', () => {
    expect(mistakesOf({ PORT: '3001' })).toEqual(['GATEWAY_PORT']);
    expect(mistakesOf({ PORT: '4000', GATEWAY_PORT: '4001', METRICS_PORT: '4000' })).toEqual([
      'METRICS_PORT',
    ]);
    expect(mistakesOf({ PORT: '0', GATEWAY_PORT: '0', METRICS_PORT: '0' })).toEqual([]);
  });

  test('SE-02 a refused configuration leaves nothing behind', () => {
    const dataDir = join(folder, 'refused');
    expect(() => readConfig({ DATA_DIR: dataDir, LOG_LEVEL: 'loud' })).toThrow(ConfigError);
    expect(existsSync(dataDir)).toBe(false);
  });

  test('SE-02 a folder that cannot be written is told as a mistake of DATA_DIR', () => {
    const dataDir = join(file('not-a-folder', ''), 'data');
    expect(() => readConfig({ DATA_DIR: dataDir })).toThrow(/DATA_DIR: has a file in its path.*not-a-folder/);
  });

  test('SE-02 a generated secret that was cut short is refused, never used', () => {
    const env = { DATA_DIR: join(folder, 'cut-short') };
    readConfig(env);
    writeFileSync(join(folder, 'cut-short', 'secrets', 'session_secret'), '');
    expect(() => readConfig(env)).toThrow(/SESSION_SECRET: was generated in .*session_secret/);
  });

  const anotherUser = 54_321;
  // Giving a file away takes root.
  const givenAway: [string, (secrets: string) => void][] =
    process.getuid?.() === 0
      ? [
          ['another user’s folder', (secrets) => chownSync(secrets, anotherUser, 0)],
          ['another user’s file', (secrets) => chownSync(join(secrets, 'session_secret'), anotherUser, 0)],
          [
            'another user’s link',
            (secrets) => {
              renameSync(secrets, `${secrets}-moved`);
              symlinkSync(`${secrets}-moved`, secrets);
              lchownSync(secrets, anotherUser, 0);
            },
          ],
        ]
      : [];
  test.each<[string, (secrets: string) => void]>([
    ['a folder its group may read', (secrets) => chmodSync(secrets, 0o750)],
    ['a folder anyone may write', (secrets) => chmodSync(secrets, 0o702)],
    ['a file others may read', (secrets) => chmodSync(join(secrets, 'session_secret'), 0o604)],
    ['a file its group may write', (secrets) => chmodSync(join(secrets, 'encryption_key'), 0o620)],
    ...givenAway,
  ])('SE-02 secrets are not taken from %s', (what, change) => {
    const dataDir = join(folder, what.replaceAll(/\W/g, '-'));
    const env = { DATA_DIR: dataDir, SESSION_SECRET: '', ENCRYPTION_KEY: '', GRANT_SECRET: '' };
    read(env);
    const secrets = join(dataDir, 'secrets');
    change(secrets);
    const [mistake] = refusalOf(env);
    expect(mistake).toMatchObject({ setting: 'DATA_DIR', problem: expect.stringContaining(secrets) });
    expect(mistake?.fix).toContain('chmod -R go= ');
  });

  test.each([
    ['10.0.0.7', true],
    ['10.0.0.0/8, 192.0.2.7/32', true],
    ['2001:db8::7, fc00::/7', true],
    ['nginx', false],
    ['loopback', false],
    ['10.0.0.7, nginx', false],
    ['0.0.0.0/0', false],
    ['0.0.0.0/1, 128.0.0.0/1', false],
    ['::/0', false],
    ['10.0.0.0/33', false],
    ['10.0.0.0/', false],
    ['10.0.0.0/8/8', false],
    ['10.0.0.0/255.0.0.0', false],
    ['10.0.0', false],
  ])(
    'SE-02 forwarded headers are believed from addresses and own networks only; %s: %s',
    (value, isTaken) => {
      expect(mistakesOf({ TRUSTED_PROXIES: value })).toEqual(isTaken ? [] : ['TRUSTED_PROXIES']);
    },
  );

  test.each([
    ['127.0.0.1', true],
    ['127.0.0.2', true],
    ['::1', true],
    ['localhost', true],
    ['0.0.0.0', false],
    ['::', false],
    ['192.0.2.7', false],
    ['postern.internal', false],
  ])('SE-02 without https the listeners may be on %s: %s', (host, isTaken) => {
    expect(mistakesOf({ HOST: host })).toEqual(isTaken ? [] : ['HOST']);
    expect(mistakesOf({ HOST: host, SERVICE_UI_URL: 'https://postern.example.com' })).toEqual([]);
  });

  test('GW-05 a shared registrable domain is allowed with the one word true, never by a slip', () => {
    expect(read().allowSharedApex).toBe(false);
    expect(read({ SITES_ALLOW_SHARED_APEX: 'true' }).allowSharedApex).toBe(true);
    for (const slip of ['yes', '1', 'TRUE', 'false'])
      expect(mistakesOf({ SITES_ALLOW_SHARED_APEX: slip })).toEqual(['SITES_ALLOW_SHARED_APEX']);
  });

  test('SE-02 processes that share a database do not each make secrets of their own', () => {
    const shared = {
      DATABASE_URL: 'postgresql://db/postern',
      DATA_DIR: join(folder, 'none'),
      SESSION_SECRET: '',
      ENCRYPTION_KEY: '',
      GRANT_SECRET: '',
    };
    expect(mistakesOf(shared)).toEqual(['SESSION_SECRET', 'ENCRYPTION_KEY', 'GRANT_SECRET']);
    expect(mistakesOf({ ...shared, SESSION_SECRET: strong })).toEqual(['ENCRYPTION_KEY', 'GRANT_SECRET']);
    const given = { SESSION_SECRET: strong, ENCRYPTION_KEY: strong, GRANT_SECRET: strong };
    expect(mistakesOf({ ...shared, ...given })).toEqual([]);
    expect(existsSync(join(folder, 'none'))).toBe(false);
  });

  test('an address is kept as its origin', () => {
    expect(read({ SERVICE_UI_URL: 'https://Postern.Example.com:443/' }).uiUrl).toBe(
      'https://postern.example.com',
    );
  });

  test.each(['SESSION_SECRET', 'ENCRYPTION_KEY', 'GRANT_SECRET'])(
    'SE-02 %s is refused when it is empty, short or holds one short value in its list',
    (name) => {
      for (const value of ['secret', ',', ' , ', 'x'.repeat(31), `${strong},short`, `short,${strong}`])
        expect([value, mistakesOf({ [name]: value })]).toEqual([value, [name]]);
      expect(mistakesOf({ [name]: 'x'.repeat(32) })).toEqual([]);
    },
  );

  test('SE-03 a secret may be a list: the first signs, all verify', () => {
    const { sessionSecrets } = read({ SESSION_SECRET: `${strong} two, ${strong} one` });
    expect(sessionSecrets).toEqual([`${strong} two`, `${strong} one`]);
  });

  test('SE-02 an empty secret is as if it were not set: one is generated, kept and readable by this user only', () => {
    const env = { DATA_DIR: join(folder, 'generated'), SESSION_SECRET: '' };
    const first = readConfig(env);
    const [secret = ''] = first.sessionSecrets;
    expect(secret.length).toBeGreaterThanOrEqual(43);
    expect(first.encryptionKeys).not.toEqual(first.sessionSecrets);
    expect(readConfig(env)).toEqual(first);
    const path = join(folder, 'generated', 'secrets', 'session_secret');
    expect(readFileSync(path, 'utf8')).toBe(secret);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    for (const made of ['generated', 'generated/secrets'])
      expect([made, statSync(join(folder, made)).mode & 0o777]).toEqual([made, 0o700]);
  });

  test('SE-02 every secret can come from a file, and is trimmed', () => {
    const path = file('session', `${strong}\n`);
    const env = { DATA_DIR: join(folder, 'data'), ENCRYPTION_KEY: strong, SESSION_SECRET_FILE: path };
    expect(readConfig(env).sessionSecrets).toEqual([strong]);
    const database = file('database', 'postgresql://db/postern\n');
    expect(read({ DATABASE_URL_FILE: database }).databaseUrl).toBe('postgresql://db/postern');
    const email = { BOOTSTRAP_ADMIN_EMAIL: 'ada@example.com' };
    const password = file('password', 'twelve characters\n');
    expect(read({ ...email, BOOTSTRAP_ADMIN_PASSWORD_FILE: password }).bootstrapAdmin).toEqual({
      email: 'ada@example.com',
      password: 'twelve characters',
    });
  });

  test('SE-02 a secret that is set twice, or whose file cannot be read or is too short, is refused', () => {
    const path = file('twice', strong);
    expect(mistakesOf({ SESSION_SECRET_FILE: path })).toEqual(['SESSION_SECRET']);
    const missing = { SESSION_SECRET: '', SESSION_SECRET_FILE: join(folder, 'nowhere') };
    expect(mistakesOf(missing)).toEqual(['SESSION_SECRET_FILE']);
    const short = { SESSION_SECRET: '', SESSION_SECRET_FILE: file('short', 'short') };
    expect(mistakesOf(short)).toEqual(['SESSION_SECRET']);
    const empty = { SESSION_SECRET: '', SESSION_SECRET_FILE: file('empty', '') };
    expect(mistakesOf(empty)).toEqual(['SESSION_SECRET']);
  });

  test('SE-02 half an administrator is refused, and so is a short password', () => {
    expect(mistakesOf({ BOOTSTRAP_ADMIN_EMAIL: 'ada@example.com' })).toEqual(['BOOTSTRAP_ADMIN_EMAIL']);
    expect(mistakesOf({ BOOTSTRAP_ADMIN_PASSWORD: 'twelve characters' })).toEqual(['BOOTSTRAP_ADMIN_EMAIL']);
    const both = { BOOTSTRAP_ADMIN_EMAIL: 'ada@example.com', BOOTSTRAP_ADMIN_PASSWORD: 'short' };
    expect(mistakesOf(both)).toEqual(['BOOTSTRAP_ADMIN_PASSWORD']);
  });

  test('SE-02 a refusal never repeats the secret it refuses', () => {
    const values = {
      SESSION_SECRET: 'hunter2-session',
      ENCRYPTION_KEY: 'hunter2-encryption',
      DATABASE_URL: 'mysql://ada:hunter2@db',
      KV_URL: 'http://:hunter2@kv',
      BOOTSTRAP_ADMIN_EMAIL: 'ada@example.com',
      BOOTSTRAP_ADMIN_PASSWORD: 'hunter2',
      SERVICE_UI_URL: 'http://ada:hunter2@postern.example.com',
    };
    expect(() => read(values)).toThrow(ConfigError);
    expect(() => read(values)).not.toThrow(/hunter2/);
  });

  test('every setting is in the reference, and its secrets are marked', () => {
    const secret = configReference().filter(({ isSecret }) => isSecret);
    expect(secret.map(({ name }) => name).sort()).toEqual([
      'BACKUP_PASSPHRASE',
      'BOOTSTRAP_ADMIN_PASSWORD',
      'DATABASE_URL',
      'ENCRYPTION_KEY',
      'ENVIRONMENTS_DATABASE_URL',
      'GRANT_SECRET',
      'KV_URL',
      'OBJECT_STORE_ACCESS_KEY',
      'OBJECT_STORE_SECRET_KEY',
      'OIDC_CLIENT_SECRET',
      'PRINCIPAL_SYNC_CLIENT_SECRET',
      'SESSION_SECRET',
    ]);
  });
});

describe('the object store', () => {
  const store = {
    OBJECT_STORE_URL: 's3://our-sites?endpoint=https://s3.example.com&region=eu-central-1',
    OBJECT_STORE_ACCESS_KEY: 'ours',
    OBJECT_STORE_SECRET_KEY: 'geheim',
  };

  test('is a bucket at an address, with a key', () => {
    expect(read().objectStore).toBeNull();
    expect(read(store).objectStore).toEqual({
      endpoint: 'https://s3.example.com',
      bucket: 'our-sites',
      prefix: '',
      region: 'eu-central-1',
      isPathStyle: true,
      accessKey: 'ours',
      secretKey: 'geheim',
    });
    const inFolder = 's3://bucket/a/folder/?endpoint=http://127.0.0.1:9000&pathStyle=false';
    expect(read({ ...store, OBJECT_STORE_URL: inFolder }).objectStore).toMatchObject({
      endpoint: 'http://127.0.0.1:9000',
      prefix: 'a/folder/',
      isPathStyle: false,
    });
  });

  test('its key may be in files', () => {
    const { OBJECT_STORE_SECRET_KEY, ...rest } = store;
    const path = file('object-store-key', `${OBJECT_STORE_SECRET_KEY}\n`);
    expect(read({ ...rest, OBJECT_STORE_SECRET_KEY_FILE: path }).objectStore?.secretKey).toBe('geheim');
  });

  test.each(Object.keys(store))(
    'without %s it is half configured: refused, and told what is missing',
    (missing) => {
      const half = Object.entries(store).filter(([name]) => name !== missing);
      expect(refusalOf(Object.fromEntries(half))).toMatchObject([
        {
          setting: missing,
          problem: expect.stringMatching(/^is missing, but OBJECT_STORE_\w+ and OBJECT_STORE_\w+ are set/),
        },
      ]);
    },
  );

  test.each([
    ['https://s3.example.com/our-sites', 'is not the address of a bucket'],
    ['s3://Our_Sites?endpoint=https://s3.example.com', 'is not the address of a bucket'],
    ['s3://our-sites', 'has no endpoint'],
    ['s3://our-sites?endpoint=s3.example.com', 'not an origin'],
    ['s3://our-sites?endpoint=https://s3.example.com/our-sites', 'not an origin'],
    ['s3://our-sites?endpoint=http://s3.example.com', 'unencrypted'],
    ['s3://ours:geheim@our-sites?endpoint=https://s3.example.com', 'has more than a bucket'],
    ['s3://our-sites?endpoint=https://ours:geheim@s3.example.com', 'not an origin'],
    ['s3://our-sites?endpoint=https://s3.example.com&regoin=x', 'unknown option: regoin'],
    ['s3://our-sites?endpoint=https://s3.example.com&pathStyle=maybe', 'neither true nor false'],
  ])('%s is refused', (OBJECT_STORE_URL, problem) => {
    const told = refusalOf({ ...store, OBJECT_STORE_URL });
    expect(told).toMatchObject([{ setting: 'OBJECT_STORE_URL', problem: expect.stringContaining(problem) }]);
    expect(JSON.stringify(told)).not.toContain('geheim');
  });

  test.each(['0', '-1', '1GB', '67108863'])(
    'room of %s bytes for what was fetched is refused',
    (OBJECT_CACHE_BYTES) => {
      expect(mistakesOf({ OBJECT_CACHE_BYTES })).toEqual(['OBJECT_CACHE_BYTES']);
    },
  );
});

describe('Environments', () => {
  test('nothing runs the code of repositories unless it is configured', () => {
    expect(read().environments).toMatchObject({ engine: 'off', isolation: 'bwrap', secretsDir: null });
    const config = read({ ENVIRONMENTS_ENGINE: 'local', SECRETS_DIR: '/srv/secrets', HOME: '/home/ada' });
    expect(config.environments).toEqual({
      engine: 'local',
      isolation: 'bwrap',
      kubernetes: null,
      databaseUrl: null,
      secretsDir: '/srv/secrets',
      home: '/home/ada',
    });
  });

  test('the local engine needs one process that runs all workloads', () => {
    const local = { ENVIRONMENTS_ENGINE: 'local', DATABASE_URL: 'postgresql://a:b@db/postern' };
    expect(mistakesOf(local)).toEqual([]);
    expect(refusalOf({ ...local, KV_URL: 'redis://kv' })).toMatchObject([
      { setting: 'ENVIRONMENTS_ENGINE', problem: expect.stringContaining('KV_URL is set') as string },
    ]);
    for (const workload of ['web', 'worker'] as const) {
      const env = {
        ...local,
        KV_URL: 'redis://kv',
        SESSION_SECRET: strong,
        ENCRYPTION_KEY: strong,
        GRANT_SECRET: strong,
      };
      expect(() => readConfig(env, workload)).toThrow(/ENVIRONMENTS_ENGINE/);
      expect(readConfig({ ...env, ENVIRONMENTS_ENGINE: 'off' }, workload).environments.engine).toBe('off');
    }
    // It does not read the setting.
    expect(
      readConfig({ ...local, KV_URL: 'redis://kv', GRANT_SECRET: strong }, 'gateway').environments.engine,
    ).toBe('off');
  });

  const kubernetes = {
    ENVIRONMENTS_ENGINE: 'kubernetes',
    ENVIRONMENTS_NAMESPACE: 'environments',
    ENVIRONMENTS_POD_IMAGE: 'registry.example.com/postern:0.1.0',
    ENVIRONMENTS_WEB_URL: 'http://postern-web-files.postern.svc:80',
  };
  const apart = {
    DATABASE_URL: 'postgresql://a:b@db/postern',
    KV_URL: 'redis://kv',
    SESSION_SECRET: strong,
    ENCRYPTION_KEY: strong,
    GRANT_SECRET: strong,
  };

  test('the Kubernetes engine works in one process and with the workloads apart; only the worker gets credentials', () => {
    const pods = {
      namespace: 'environments',
      podImage: 'registry.example.com/postern:0.1.0',
      port: 3002,
      webUrl: 'http://postern-web-files.postern.svc',
    };
    const withAccount = { ...kubernetes, KUBECONFIG: '/home/ada/.kube/config' };
    for (const env of [withAccount, { ...withAccount, ...apart }])
      expect(read(env).environments).toMatchObject({
        engine: 'kubernetes',
        kubernetes: { ...pods, kubeconfig: '/home/ada/.kube/config' },
      });
    const of = (workload: 'web' | 'gateway' | 'worker') =>
      readConfig({ ...withAccount, ...apart }, workload).environments;
    expect(of('worker').kubernetes).toEqual({ ...pods, kubeconfig: '/home/ada/.kube/config' });
    expect(of('web').kubernetes).toEqual({ ...pods, kubeconfig: null });
    expect(of('gateway')).toMatchObject({ engine: 'off', kubernetes: null });
  });

  test('the Kubernetes engine is complete or refused, and so are settings of another engine', () => {
    expect(refusalOf({ ENVIRONMENTS_ENGINE: 'kubernetes' })).toMatchObject(
      ['ENVIRONMENTS_NAMESPACE', 'ENVIRONMENTS_POD_IMAGE', 'ENVIRONMENTS_WEB_URL'].map((setting) => ({
        setting,
        problem: 'is required with ENVIRONMENTS_ENGINE=kubernetes',
      })),
    );
    expect(refusalOf({ ...kubernetes, ENVIRONMENTS_ISOLATION: 'bwrap' })).toMatchObject([
      { setting: 'ENVIRONMENTS_ISOLATION', problem: 'is set, but only the local engine uses it' },
    ]);
    expect(refusalOf({ ...kubernetes, ENVIRONMENTS_NAMESPACE: 'postern' })).toMatchObject([
      { setting: 'ENVIRONMENTS_NAMESPACE', problem: expect.stringContaining('Postern itself') as string },
    ]);
    for (const engine of ['', 'off', 'local'])
      expect(
        refusalOf({ ENVIRONMENTS_ENGINE: engine, ENVIRONMENTS_NAMESPACE: 'environments' }),
      ).toMatchObject([
        { setting: 'ENVIRONMENTS_NAMESPACE', problem: 'is set, but only the Kubernetes engine uses it' },
      ]);
    expect(mistakesOf({ ENVIRONMENTS_PORT: '4002' })).toEqual(['ENVIRONMENTS_PORT']);
    expect(mistakesOf({ ...kubernetes, PORT: '3002' })).toEqual(['ENVIRONMENTS_PORT']);
    expect(mistakesOf({ PORT: '3002' })).toEqual([]);
    // Other programs read it too.
    expect(mistakesOf({ KUBECONFIG: '/home/ada/.kube/config' })).toEqual([]);
  });

  test.each([
    ['ENVIRONMENTS_NAMESPACE', 'Environments'],
    ['ENVIRONMENTS_NAMESPACE', 'a'.repeat(64)],
    ['ENVIRONMENTS_POD_IMAGE', 'postern 0.1.0'],
    ['ENVIRONMENTS_WEB_URL', 'postern-web:80'],
    ['ENVIRONMENTS_WEB_URL', 'http://postern-web'],
    ['ENVIRONMENTS_WEB_URL', 'ftp://postern-web.postern.svc'],
    ['ENVIRONMENTS_WEB_URL', 'http://postern-web.postern.svc/api'],
  ])('%s=%s is refused', (name, value) => {
    expect(mistakesOf({ ...kubernetes, [name]: value })).toEqual([name]);
  });

  test('their databases are never on the server of DATABASE_URL, and on one that services can reach', () => {
    const own = 'postgresql://postern@db.internal/postern';
    const problemOf = (ENVIRONMENTS_DATABASE_URL: string) =>
      refusalOf({
        DATABASE_URL: own,
        SESSION_SECRET: strong,
        ENCRYPTION_KEY: strong,
        GRANT_SECRET: strong,
        ENVIRONMENTS_DATABASE_URL,
      })[0]?.problem;
    const same = expect.stringContaining('names the server of DATABASE_URL') as string;
    expect(problemOf('postgresql://maker:secret@DB.internal:5432/other')).toEqual(same);
    const hostless = expect.stringContaining('has no host') as string;
    expect(problemOf('postgresql://maker@/postgres?host=/run/postgresql')).toEqual(hostless);
    expect(problemOf('postgresql://maker@db.internal/postgres?host=/run/postgresql')).toEqual(hostless);
    expect(mistakesOf({ ENVIRONMENTS_DATABASE_URL: 'postgresql://maker@other.internal/postgres' })).toEqual(
      [],
    );
  });

  test('unknown words are refused, and never taken for another', () => {
    expect(mistakesOf({ ENVIRONMENTS_ENGINE: 'docker', ENVIRONMENTS_ISOLATION: 'none' })).toEqual([
      'ENVIRONMENTS_ENGINE',
      'ENVIRONMENTS_ISOLATION',
    ]);
  });
});
