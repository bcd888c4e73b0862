import { randomBytes, randomUUID } from 'node:crypto';
import {
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { isIP } from 'node:net';
import { dirname, join, resolve } from 'node:path';
import type { ObjectStore } from './platform/blobs/s3-blobs.ts';
import { flushNamesNow } from './platform/flush-names.ts';
import { fileTrouble } from './start-errors.ts';

/**
 * The only place that reads the environment (contract 1). Every mistake is found and told together, each with its
 * fix; a half-configured part refuses to start, it never falls back silently. `NAME_FILE` works for every secret.
 */
export type Config = {
  readonly uiUrl: string;
  readonly contentUrl: string;
  readonly host: string;
  readonly port: number;
  readonly gatewayPort: number;
  readonly metricsPort: number;
  readonly dataDir: string;
  readonly databaseUrl: string | null;
  readonly kvUrl: string | null;
  /** Null: files in DATA_DIR. */
  readonly objectStore: ObjectStore | null;
  /** Room for what was fetched from the object store, in bytes. */
  readonly objectCacheBytes: number;
  readonly trustedProxies: readonly string[];
  readonly keyPrefix: string;
  readonly logLevel: string;
  readonly backupPassphrase: string | null;
  /** The first signs, all verify. */
  readonly sessionSecrets: readonly string[];
  readonly encryptionKeys: readonly string[];
  readonly grantSecrets: readonly string[];
  /** Private sites although UI and content hosts share a registrable domain. */
  readonly allowSharedApex: boolean;
  readonly bootstrapAdmin: { readonly email: string; readonly password: string } | null;
  /** Null: the built-in provider. Always null for a gateway, which asks nobody who people are. */
  readonly keycloak: KeycloakSettings | null;
};

export type KeycloakSettings = {
  /** Address of the realm, as its tokens name it: without a slash at the end. */
  readonly issuer: string;
  /** Signs people in. */
  readonly login: ClientCredentials;
  /** Reads status and roles, introspects tokens, and may change nothing. */
  readonly principalSync: ClientCredentials;
  /** What the realm calls the two roles of the product. */
  readonly roleNames: { readonly user: string; readonly admin: string };
};

export type ClientCredentials = { readonly id: string; readonly secret: string };

export const workloads = ['all', 'web', 'gateway', 'worker'] as const;
/** `all`: the three in one process, which is what `npm start` is; commands of an operator too. */
export type Workload = (typeof workloads)[number];

export type ConfigMistake = { readonly setting: string; readonly problem: string; readonly fix: string };

export class ConfigError extends Error {
  readonly mistakes: readonly ConfigMistake[];
  constructor(mistakes: readonly ConfigMistake[]) {
    super(mistakes.map(({ setting, problem, fix }) => `  ${setting}: ${problem}\n    ${fix}`).join('\n'));
    this.name = 'ConfigError';
    this.mistakes = mistakes;
  }
}

type Setting = {
  readonly name: string;
  readonly meaning: string;
  readonly default: string;
  readonly secret: boolean;
};

const settings: readonly Setting[] = [
  {
    name: 'SERVICE_UI_URL',
    meaning: 'Public origin of the web app and the API; https, or http on loopback',
    default: 'http://localhost:PORT',
    secret: false,
  },
  {
    name: 'SITES_CONTENT_URL',
    meaning:
      'Base of the content hosts; a site lives at a label in front of its host; https, or http on loopback',
    default: 'http://sites.localhost:GATEWAY_PORT',
    secret: false,
  },
  {
    name: 'SITES_ALLOW_SHARED_APEX',
    meaning:
      'true = private sites also while SERVICE_UI_URL and SITES_CONTENT_URL share a registrable domain; the same on every process',
    default: 'unset: private sites need a content domain of their own',
    secret: false,
  },
  {
    name: 'HOST',
    meaning: 'Address the listeners bind to; beyond loopback SERVICE_UI_URL must be https',
    default: '127.0.0.1',
    secret: false,
  },
  { name: 'PORT', meaning: 'Port of the web workload', default: '3000', secret: false },
  { name: 'GATEWAY_PORT', meaning: 'Port of the gateway workload', default: '3001', secret: false },
  { name: 'METRICS_PORT', meaning: 'Port of /metrics, /livez and /readyz', default: '9464', secret: false },
  { name: 'DATA_DIR', meaning: 'Embedded database and generated secrets', default: './data', secret: false },
  {
    name: 'DATABASE_URL',
    meaning: 'PostgreSQL 15 or newer; absent = embedded in DATA_DIR',
    default: '–',
    secret: true,
  },
  {
    name: 'KV_URL',
    meaning:
      'Redis 7 or Valkey with noeviction, or any node of its cluster; absent = in process, one process only',
    default: '–',
    secret: true,
  },
  {
    name: 'OBJECT_STORE_URL',
    meaning:
      'S3-compatible store of the files of sites: s3://bucket/prefix?endpoint=https://host&region=…, and &pathStyle=false where the bucket is in front of the host; absent = files in DATA_DIR',
    default: '–',
    secret: false,
  },
  {
    name: 'OBJECT_STORE_ACCESS_KEY',
    meaning: 'Name of the key to the object store',
    default: 'required with OBJECT_STORE_URL',
    secret: true,
  },
  {
    name: 'OBJECT_STORE_SECRET_KEY',
    meaning: 'The key to the object store; it reads, writes, removes and lists in the bucket and no more',
    default: 'required with OBJECT_STORE_URL',
    secret: true,
  },
  {
    name: 'OBJECT_CACHE_BYTES',
    meaning: 'Room in DATA_DIR for what was fetched from the object store, in bytes; at least 67108864',
    default: '1073741824',
    secret: false,
  },
  {
    name: 'IDENTITY_PROVIDER',
    meaning: 'Who says who people are: builtin or keycloak',
    default: 'builtin',
    secret: false,
  },
  {
    name: 'OIDC_ISSUER',
    meaning:
      'Address of the Keycloak realm, such as https://id.example.com/realms/postern; https, or http on loopback',
    default: '–; required with IDENTITY_PROVIDER=keycloak, like the four below',
    secret: false,
  },
  {
    name: 'OIDC_CLIENT_ID',
    meaning: 'Client of the realm that signs people in to the web app',
    default: '–',
    secret: false,
  },
  { name: 'OIDC_CLIENT_SECRET', meaning: 'Its secret', default: '–', secret: true },
  {
    name: 'PRINCIPAL_SYNC_CLIENT_ID',
    meaning:
      'Client of the realm that reads the status and roles of people and introspects tokens; one that can manage anything is refused',
    default: '–',
    secret: false,
  },
  { name: 'PRINCIPAL_SYNC_CLIENT_SECRET', meaning: 'Its secret', default: '–', secret: true },
  {
    name: 'OIDC_USER_ROLE',
    meaning: 'Realm role that lets a person use Postern',
    default: 'user',
    secret: false,
  },
  {
    name: 'OIDC_ADMIN_ROLE',
    meaning: 'Realm role of administrators of Postern',
    default: 'admin',
    secret: false,
  },
  { name: 'KEY_PREFIX', meaning: 'Product word in key prefixes', default: 'app', secret: false },
  {
    name: 'TRUSTED_PROXIES',
    meaning: 'IP addresses or ranges (CIDR) whose forwarded headers count, separated by commas',
    default: 'none',
    secret: false,
  },
  {
    name: 'SESSION_SECRET',
    meaning:
      'Signs session cookies and sign-in links; a list separated by commas, the first signs, all verify',
    default: 'generated in DATA_DIR; required with DATABASE_URL',
    secret: true,
  },
  {
    name: 'ENCRYPTION_KEY',
    meaning: 'Encrypts stored provider tokens; a list, the first encrypts, all decrypt',
    default: 'generated in DATA_DIR; required with DATABASE_URL',
    secret: true,
  },
  {
    name: 'GRANT_SECRET',
    meaning:
      'Signs and seals what lets a browser into a private site, on web and gateway; a list, the first signs, all verify',
    default: 'generated in DATA_DIR; required with DATABASE_URL',
    secret: true,
  },
  {
    name: 'BOOTSTRAP_ADMIN_EMAIL',
    meaning: 'First administrator; first boot only',
    default: 'absent: a one-time sign-in link is printed',
    secret: false,
  },
  {
    name: 'BOOTSTRAP_ADMIN_PASSWORD',
    meaning: 'Password of the first administrator',
    default: '–',
    secret: true,
  },
  {
    name: 'BACKUP_PASSPHRASE',
    meaning:
      'Seals the generated secrets in a backup with --with-secrets, and opens them; 16 characters or more',
    default: '–',
    secret: true,
  },
  { name: 'LOG_LEVEL', meaning: 'debug, info, warn, error or silent', default: 'info', secret: false },
];

const keycloakSettings = [
  'OIDC_ISSUER',
  'OIDC_CLIENT_ID',
  'OIDC_CLIENT_SECRET',
  'PRINCIPAL_SYNC_CLIENT_ID',
  'PRINCIPAL_SYNC_CLIENT_SECRET',
] as const;
const roleSettings = ['OIDC_USER_ROLE', 'OIDC_ADMIN_ROLE'] as const;

/** For docs/reference/config.md. */
export function configReference(): readonly Setting[] {
  return settings;
}

/** Why there is no falling back: what each process kept for itself, the others would not know. */
const sharedFix = 'Set it to the same on every process, or run all workloads as one with: npm start';

export type Environment = Readonly<Record<string, string | undefined>>;

/** Where a secret that is not set comes from. */
export type SecretSource = (name: string, dataDir: string) => readonly string[];

/**
 * A configuration with mistakes leaves nothing behind: DATA_DIR and its secrets are made when there are none.
 * @throws ConfigError naming every mistake at once
 */
export function readConfig(
  env: Environment = process.env,
  workload: Workload | 'migrate' = 'all',
  secretOf: SecretSource = generatedSecrets,
): Config {
  const mistakes: ConfigMistake[] = [];
  const wrong = (setting: string, problem: string, fix: string) =>
    void mistakes.push({ setting, problem, fix });
  const raw = (name: string) => readSetting(env, name, wrong);

  const port = readPort('PORT', raw('PORT'), 3000, wrong);
  const gatewayPort = readPort('GATEWAY_PORT', raw('GATEWAY_PORT'), 3001, wrong);
  const metricsPort = readPort('METRICS_PORT', raw('METRICS_PORT'), 9464, wrong);
  checkPorts({ PORT: port, GATEWAY_PORT: gatewayPort, METRICS_PORT: metricsPort }, wrong);
  const uiUrl = readOrigin('SERVICE_UI_URL', raw('SERVICE_UI_URL') ?? `http://localhost:${port}`, wrong);
  const contentUrl = readOrigin(
    'SITES_CONTENT_URL',
    raw('SITES_CONTENT_URL') ?? `http://sites.localhost:${gatewayPort}`,
    wrong,
  );
  const dataDir = resolve(raw('DATA_DIR') ?? './data');
  const databaseUrl = raw('DATABASE_URL') ?? null;
  if (databaseUrl !== null && !isAddress(databaseUrl, /^postgres(?:ql)?:$/)) {
    wrong(
      'DATABASE_URL',
      'is not a PostgreSQL address',
      'Write postgresql://user:password@host:5432/database; signs such as / ? # % @ in the password as %2F %3F %23 %25 %40.',
    );
  }
  const kvUrl = raw('KV_URL') ?? null;
  if (kvUrl !== null && !isAddress(kvUrl, /^rediss?:$/)) {
    wrong(
      'KV_URL',
      'is not a Redis address',
      'Write redis://host:6379 or redis://:password@host:6379; signs such as / ? # % @ in the password as %2F %3F %23 %25 %40.',
    );
  }
  if (workload !== 'all' && workload !== 'migrate') {
    if (databaseUrl === null) wrong('DATABASE_URL', `is required by ${workload} on its own`, sharedFix);
    if (kvUrl === null) wrong('KV_URL', `is required by ${workload} on its own`, sharedFix);
  }
  const objectStore = readObjectStore(raw, wrong);
  const objectCacheBytes = readBytes('OBJECT_CACHE_BYTES', raw('OBJECT_CACHE_BYTES'), wrong);
  const keycloak = workload === 'gateway' ? null : readIdentity(env, raw, wrong);
  const keyPrefix = raw('KEY_PREFIX') ?? 'app';
  if (!/^[a-z][a-z0-9]{0,15}$/.test(keyPrefix)) {
    wrong(
      'KEY_PREFIX',
      'is not a product word',
      'Use 1 to 16 lower-case letters and digits, starting with a letter.',
    );
  }
  const logLevel = raw('LOG_LEVEL') ?? 'info';
  if (!['debug', 'info', 'warn', 'error', 'silent'].includes(logLevel)) {
    wrong('LOG_LEVEL', `"${logLevel}" is not a level`, 'Use debug, info, warn, error or silent.');
  }
  const email = raw('BOOTSTRAP_ADMIN_EMAIL');
  const password = raw('BOOTSTRAP_ADMIN_PASSWORD');
  if ((email === undefined) !== (password === undefined)) {
    wrong(
      'BOOTSTRAP_ADMIN_EMAIL',
      'is set without its partner',
      'Set both BOOTSTRAP_ADMIN_EMAIL and BOOTSTRAP_ADMIN_PASSWORD, or neither.',
    );
  }
  if (email !== undefined && !/^[^\s@]+@[^\s@]+$/.test(email)) {
    wrong(
      'BOOTSTRAP_ADMIN_EMAIL',
      'is not an e-mail address',
      'Write one such as ada@example.com; people sign in with it.',
    );
  }
  if (password !== undefined && password.length < 12) {
    wrong('BOOTSTRAP_ADMIN_PASSWORD', 'is too short', 'Use at least 12 characters.');
  }
  const backupPassphrase = raw('BACKUP_PASSPHRASE') ?? null;
  if (backupPassphrase !== null && backupPassphrase.length < 16)
    wrong(
      'BACKUP_PASSPHRASE',
      'is too short',
      'Use at least 16 characters: whoever has a backup can try for ever.',
    );
  const host = raw('HOST') ?? '127.0.0.1';
  if (!isLoopback(isIP(host) === 6 ? `[${host}]` : host) && uiUrl.startsWith('http:')) {
    wrong(
      'HOST',
      'opens the listeners to the network while SERVICE_UI_URL is http: keys would cross it in clear',
      'Give SERVICE_UI_URL its https address, or leave HOST unset.',
    );
  }
  const trustedProxies = list(raw('TRUSTED_PROXIES') ?? '');
  if (!trustedProxies.every(isProxyRange)) {
    wrong(
      'TRUSTED_PROXIES',
      'holds what is neither an IP address nor a range of a network of its own',
      'Write the addresses of your proxies, such as 10.0.0.7 or 10.0.0.0/8; names and all the world are not taken.',
    );
  }
  const sharedApex = raw('SITES_ALLOW_SHARED_APEX');
  if (sharedApex !== undefined && sharedApex !== 'true') {
    wrong(
      'SITES_ALLOW_SHARED_APEX',
      'is neither true nor unset',
      'Set it to true on every process, or unset it everywhere.',
    );
  }
  // A migration looks at tables alone. A gateway has neither secret of web (contract 1), also where its environment does.
  const ofAll = (name: string) => (workload === 'migrate' ? [] : readSecret(name, raw(name), wrong));
  const ofWeb = (name: string) => (workload === 'gateway' ? [] : ofAll(name));
  const given = {
    SESSION_SECRET: ofWeb('SESSION_SECRET'),
    ENCRYPTION_KEY: ofWeb('ENCRYPTION_KEY'),
    GRANT_SECRET: ofAll('GRANT_SECRET'),
  };
  for (const [name, values] of Object.entries(given)) {
    const file = env[`${name}_FILE`];
    // A file that cannot be read has been told already.
    if (values !== null || databaseUrl === null || (file !== undefined && file !== '')) continue;
    wrong(
      name,
      'is required with DATABASE_URL: every process on that database must have the same',
      'Set it to the output of: openssl rand -base64 32',
    );
  }
  if (mistakes.length > 0) throw new ConfigError(mistakes);

  const secret = (name: keyof typeof given) => given[name] ?? secretOf(name, dataDir);
  return {
    uiUrl,
    contentUrl,
    host,
    port,
    gatewayPort,
    metricsPort,
    dataDir,
    databaseUrl,
    kvUrl,
    objectStore,
    objectCacheBytes,
    trustedProxies,
    keyPrefix,
    logLevel,
    backupPassphrase,
    sessionSecrets: secret('SESSION_SECRET'),
    encryptionKeys: secret('ENCRYPTION_KEY'),
    grantSecrets: secret('GRANT_SECRET'),
    allowSharedApex: sharedApex === 'true',
    bootstrapAdmin: email === undefined || password === undefined ? null : { email, password },
    keycloak,
  };
}

type Raw = (name: string) => string | undefined;

/** Null: the built-in provider. Half of Keycloak is a mistake, never a falling back. */
function readIdentity(env: Environment, raw: Raw, wrong: Wrong): KeycloakSettings | null {
  const provider = raw('IDENTITY_PROVIDER') ?? 'builtin';
  const isSet = (name: string) =>
    [name, `${name}_FILE`].some((one) => env[one] !== undefined && env[one] !== '');
  if (provider !== 'keycloak') {
    if (provider !== 'builtin') {
      wrong('IDENTITY_PROVIDER', `"${provider}" is not available`, 'Write builtin or keycloak.');
      return null;
    }
    for (const name of [...keycloakSettings, ...roleSettings].filter(isSet)) {
      wrong(
        name,
        'is set, and the built-in provider does not use it',
        'Set IDENTITY_PROVIDER=keycloak, or unset this.',
      );
    }
    return null;
  }
  for (const name of ['BOOTSTRAP_ADMIN_EMAIL', 'BOOTSTRAP_ADMIN_PASSWORD'].filter(isSet)) {
    wrong(
      name,
      'is for the built-in provider alone',
      'Unset it, and give a person the administrators’ role (OIDC_ADMIN_ROLE) in Keycloak.',
    );
  }
  const required = (name: (typeof keycloakSettings)[number]): string => {
    const value = raw(name);
    if (value === undefined && !isSet(`${name}_FILE`)) {
      wrong(
        name,
        'is required with IDENTITY_PROVIDER=keycloak',
        'See docs/how-to/sign-in-with-keycloak.md for where its value is found.',
      );
    }
    return value ?? '';
  };
  const issuer = required('OIDC_ISSUER');
  const keycloak = {
    issuer: issuer === '' ? '' : readIssuer(issuer, wrong),
    login: { id: required('OIDC_CLIENT_ID'), secret: required('OIDC_CLIENT_SECRET') },
    principalSync: {
      id: required('PRINCIPAL_SYNC_CLIENT_ID'),
      secret: required('PRINCIPAL_SYNC_CLIENT_SECRET'),
    },
    roleNames: { user: raw('OIDC_USER_ROLE') ?? 'user', admin: raw('OIDC_ADMIN_ROLE') ?? 'admin' },
  };
  if (keycloak.roleNames.user === keycloak.roleNames.admin) {
    wrong('OIDC_ADMIN_ROLE', 'is the role of every user', 'Name two realm roles.');
  }
  return keycloak;
}

function readIssuer(text: string, wrong: Wrong): string {
  const fix = 'Write the address of the realm, such as https://id.example.com/realms/postern.';
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !/^https?:$/.test(url.protocol)) {
    wrong('OIDC_ISSUER', 'is not an address', fix);
    return text;
  }
  const realm = /^(?:\/[^/]+)*\/realms\/([^/]+)$/.exec(url.pathname)?.[1];
  if (realm === undefined || url.search !== '' || url.hash !== '' || url.username !== '') {
    wrong('OIDC_ISSUER', 'is not the address of a realm', fix);
  }
  if (realm === 'master') {
    wrong(
      'OIDC_ISSUER',
      'names the realm in which Keycloak itself is administered',
      'Make a realm for the people of Postern: deploy/keycloak/postern-realm.json is one.',
    );
  }
  if (url.protocol !== 'https:' && !isLoopback(url.hostname)) {
    wrong(
      'OIDC_ISSUER',
      'is neither https nor a loopback address',
      'Use https, or http on localhost for trying it out.',
    );
  }
  // As it is written: the provider's own spelling is compared with it, letter by letter (OpenID Connect Discovery 4.3).
  return text;
}

type Wrong = (setting: string, problem: string, fix: string) => void;

function readSetting(env: Environment, name: string, wrong: Wrong): string | undefined {
  const direct = env[name];
  const file = env[`${name}_FILE`];
  if (direct !== undefined && direct !== '' && file !== undefined && file !== '') {
    wrong(name, `is set twice, as ${name} and ${name}_FILE`, 'Set one of them.');
  }
  if (file === undefined || file === '') return direct === '' ? undefined : direct;
  try {
    return readFileSync(file, 'utf8').trim();
  } catch {
    wrong(`${name}_FILE`, 'names a file that cannot be read', 'Check the path and its permissions.');
    return undefined;
  }
}

/** Http is for loopback only: a credential must not cross a network in clear (contract 3). */
function readOrigin(name: string, text: string, wrong: Wrong): string {
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(text)) {
    wrong(
      name,
      'has no scheme',
      'Put https:// in front, such as https://postern.example.com, or http:// on loopback, such as http://localhost:3000.',
    );
    return text;
  }
  if (!URL.canParse(text)) {
    wrong(name, 'is not an address', 'Write an origin such as https://postern.example.com.');
    return text;
  }
  const url = new URL(text);
  if (url.pathname !== '/' || url.search !== '' || url.hash !== '' || url.username !== '') {
    wrong(
      name,
      'has more than an origin',
      'Write scheme, host and port only, such as https://postern.example.com.',
    );
  }
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && isLoopback(url.hostname))) {
    wrong(
      name,
      'is neither https nor a loopback address',
      'Use https, or http on localhost for trying it out.',
    );
  }
  return url.origin;
}

function isLoopback(hostname: string): boolean {
  return (
    hostname === 'localhost' ||
    hostname.endsWith('.localhost') ||
    hostname === '[::1]' ||
    /^127(?:\.\d{1,3}){3}$/.test(hostname)
  );
}

/**
 * Who is in the range says which address a request comes from, so it holds proxies only: nothing wider than the widest
 * private networks, 10.0.0.0/8 (RFC 1918) and fc00::/7 (RFC 4193).
 */
function isProxyRange(text: string): boolean {
  const [address = '', length, ...more] = text.split('/');
  const family = isIP(address);
  if (family === 0 || address.includes('%') || more.length > 0) return false;
  if (length === undefined) return true;
  if (!/^\d{1,3}$/.test(length)) return false;
  const bits = Number(length);
  return family === 4 ? bits >= 8 && bits <= 32 : bits >= 7 && bits <= 128;
}

function readPort(name: string, text: string | undefined, fallback: number, wrong: Wrong): number {
  if (text === undefined) return fallback;
  const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN;
  if (!(port >= 0 && port <= 65_535)) wrong(name, 'is not a port', 'Use a number from 0 to 65535.');
  return port;
}

/** Two listeners on one port would keep each other out. Port 0 is a free port each time. */
function checkPorts(ports: Readonly<Record<string, number>>, wrong: Wrong): void {
  const named = Object.entries(ports);
  for (const [index, [name, port]] of named.entries()) {
    const same = named.slice(0, index).find(([, other]) => other === port && port !== 0);
    if (same !== undefined)
      wrong(name, `is ${port}, and so is ${same[0]}`, 'Give each listener its own port.');
  }
}

/** All of it or nothing: with a part missing, files would land where nobody looks for them. */
function readObjectStore(raw: (name: string) => string | undefined, wrong: Wrong): ObjectStore | null {
  const given = raw('OBJECT_STORE_URL');
  const [accessKey, secretKey] = [raw('OBJECT_STORE_ACCESS_KEY'), raw('OBJECT_STORE_SECRET_KEY')];
  const parts = Object.entries({
    OBJECT_STORE_URL: given,
    OBJECT_STORE_ACCESS_KEY: accessKey,
    OBJECT_STORE_SECRET_KEY: secretKey,
  });
  if (parts.every(([, value]) => value === undefined)) return null;
  for (const [name, value] of parts) {
    if (value !== undefined) continue;
    const others = parts.filter(([, other]) => other !== undefined).map(([other]) => other);
    wrong(
      name,
      `is missing, and ${others.join(' and ')} ${others.length === 1 ? 'is' : 'are'} set`,
      'Set all three, or none: then files are in DATA_DIR.',
    );
  }
  if (given === undefined) return null;
  return {
    ...readBucket(given, (problem, fix) => wrong('OBJECT_STORE_URL', problem, fix)),
    accessKey: accessKey ?? '',
    secretKey: secretKey ?? '',
  };
}

const bucketOptions = ['endpoint', 'region', 'pathStyle'];

/** `s3://bucket/prefix?endpoint=…&region=…` (contract 1). */
function readBucket(
  text: string,
  wrong: (problem: string, fix: string) => void,
): Omit<ObjectStore, 'accessKey' | 'secretKey'> {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const bucket = url?.host ?? '';
  // https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html
  if (url?.protocol !== 's3:' || !/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(bucket))
    wrong(
      'is not the address of a bucket',
      'Write s3://bucket?endpoint=https://host, such as s3://our-sites?endpoint=https://s3.eu-central-1.amazonaws.com&region=eu-central-1.',
    );
  else if (url.username !== '' || url.password !== '' || url.hash !== '')
    wrong(
      'has more than bucket, folder and options',
      'Give the key as OBJECT_STORE_ACCESS_KEY and OBJECT_STORE_SECRET_KEY.',
    );
  const option = (name: string) => url?.searchParams.get(name) ?? undefined;
  const unknown = [...(url?.searchParams.keys() ?? [])].find((name) => !bucketOptions.includes(name));
  if (unknown !== undefined)
    wrong(`has an option that is not known: ${unknown}`, `The options are ${bucketOptions.join(', ')}.`);
  const pathStyle = option('pathStyle') ?? 'true';
  if (!/^(?:true|false)$/.test(pathStyle))
    wrong(
      'has a pathStyle that is neither true nor false',
      'Say pathStyle=false where the bucket is in front of the host.',
    );
  const prefix = (url?.pathname ?? '').split('/').filter((folder) => folder !== '');
  return {
    endpoint: url?.protocol === 's3:' ? readEndpoint(option('endpoint'), wrong) : '',
    region: option('region') ?? 'us-east-1',
    bucket,
    prefix: prefix.map((folder) => `${folder}/`).join(''),
    isPathStyle: pathStyle === 'true',
  };
}

function readEndpoint(text: string | undefined, wrong: (problem: string, fix: string) => void): string {
  const url = text !== undefined && URL.canParse(text) ? new URL(text) : undefined;
  const isOrigin = url !== undefined && url.href === `${url.origin}/`;
  if (!isOrigin || !/^https?:$/.test(url.protocol)) {
    wrong(
      text === undefined ? 'does not say where the store is' : 'has an endpoint that is not an origin',
      'Add endpoint=https://host, with scheme, host and port only.',
    );
    return '';
  }
  if (url.protocol === 'http:' && !isLoopback(url.hostname))
    wrong(
      'has an endpoint that is neither https nor a loopback address: private content would cross the network in clear',
      'Use https.',
    );
  return url.origin;
}

const leastCacheBytes = 64 * 1024 * 1024;

function readBytes(name: string, text: string | undefined, wrong: Wrong): number {
  if (text === undefined) return 1024 ** 3;
  const bytes = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (!(bytes >= leastCacheBytes))
    wrong(
      name,
      'is not a number of bytes that is enough',
      `Use a whole number of at least ${leastCacheBytes}.`,
    );
  return bytes;
}

/** What the clients of PostgreSQL and Redis can take apart. They name the whole address, password included, otherwise. */
function isAddress(text: string, scheme: RegExp): boolean {
  // A PostgreSQL on a socket: postgresql://user:password@/database?host=/run/postgresql
  const address = text.replace('@/', '@socket/');
  if (!URL.canParse(address)) return false;
  const { protocol, username, password } = new URL(address);
  return scheme.test(protocol) && address.includes('://') && [username, password].every(isPercentEncoded);
}

function isPercentEncoded(text: string): boolean {
  return !/%(?![0-9a-f]{2})/i.test(text);
}

function list(text: string): string[] {
  return text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
}

const secretsFolder = 'secrets';
/** Characters. */
const shortestSecret = 32;

/** Null: it is not set. */
function readSecret(name: string, given: string | undefined, wrong: Wrong): string[] | null {
  if (given === undefined) return null;
  const values = list(given);
  if (values.length === 0 || values.some((value) => value.length < shortestSecret)) {
    wrong(
      name,
      'is too short',
      'Use at least 32 random characters each, such as the output of: openssl rand -base64 32',
    );
  }
  return values;
}

/**
 * Made once and kept beside the data, readable by this user only. What is there already is used only when nobody else
 * can have put it there or read it: whoever knows these secrets signs in as anybody. @throws ConfigError
 */
function generatedSecrets(name: string, dataDir: string): string[] {
  return list(secretIn(dataDir, name, makeSecret));
}

/** The same without making any, for commands that must not: empty when there is none yet. @throws ConfigError */
export function existingSecrets(name: string, dataDir: string): string[] {
  if (!existsSync(join(dataDir, secretsFolder))) return [];
  return list(secretIn(dataDir, name, () => undefined) ?? '');
}

/** Of those that are made when they are not set. */
export const generatedNames = ['SESSION_SECRET', 'ENCRYPTION_KEY', 'GRANT_SECRET'] as const;

/** Whether somebody set it, so that what is in DATA_DIR is not the one in use. */
export function isSecretSet(name: string, env: Environment = process.env): boolean {
  return [name, `${name}_FILE`].some((one) => (env[one] ?? '') !== '');
}

/**
 * Puts other values in place of generated ones, whole or not at all; in use from the next start on. False when `change`
 * gives null, which leaves them as they are. @throws ConfigError when what is there cannot be trusted
 */
export function replaceGenerated(
  name: string,
  dataDir: string,
  change: (values: readonly string[]) => readonly string[] | null,
): boolean {
  const folder = join(dataDir, secretsFolder);
  const path = join(folder, name.toLowerCase());
  const aside = `${path}.next`;
  // Before anything is read: of two commands at once one would take the other's value away.
  claim(name, aside);
  try {
    const values = change(existingSecrets(name, dataDir));
    if (values === null) return false;
    writeFileSync(aside, values.join(','), { flush: true });
    renameSync(aside, path);
    // What the server seals next must not outlive the value it is sealed under.
    flushNamesNow(folder);
    return true;
  } finally {
    rmSync(aside, { force: true });
  }
}

/** Makes a file for the owner alone. @throws ConfigError when it is there */
function claim(name: string, aside: string): void {
  try {
    writeFileSync(aside, '', { mode: 0o600, flag: 'wx' });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    throw new ConfigError([
      {
        setting: name,
        problem: `is being changed by another command, which has ${aside}; nothing was changed by this one`,
        fix: 'Run the command again. If no other one is running, one was killed: remove that file first.',
      },
    ]);
  }
}

export function newSecret(): string {
  return randomBytes(32).toString('base64url');
}

function secretIn<Made extends string | undefined>(
  dataDir: string,
  name: string,
  make: (path: string) => Made,
): string | Made {
  const folder = join(dataDir, secretsFolder);
  const path = join(folder, name.toLowerCase());
  let secret: string | Made;
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    checkIsPrivate(folder, folder);
    secret = readIfThere(path) ?? make(path);
    if (secret === undefined) return secret;
    checkIsPrivate(path, folder);
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    const trouble = fileTrouble('DATA_DIR', error);
    if (trouble === undefined) throw error;
    throw new ConfigError([trouble]);
  }
  if (list(secret).every(({ length }) => length >= shortestSecret) && list(secret).length > 0) return secret;
  throw new ConfigError([
    {
      setting: name,
      problem: `was generated in ${path}, and what is there now is too short to be it`,
      fix: 'Put the file back from a copy of DATA_DIR. Without one, remove it: a new secret is made at the next start, and what the old one protected is lost.',
    },
  ]);
}

/** POSIX only: elsewhere there is no owner and no mode to look at. @throws ConfigError */
function checkIsPrivate(path: string, folder: string): void {
  const me = process.getuid?.();
  if (me === undefined) return;
  // A link counts as its maker's, and what it leads to as its owner's.
  const owners = [lstatSync(path).uid, statSync(path).uid];
  const problem = owners.some((owner) => owner !== me)
    ? `${path} belongs to another user, who may know the secret`
    : (statSync(path).mode & 0o077) === 0
      ? undefined
      : `${path} can be read or written by other users`;
  if (problem === undefined) return;
  throw new ConfigError([
    {
      setting: 'DATA_DIR',
      problem,
      fix: `If nobody else can have been there, run: chown -R ${me} ${folder} && chmod -R go= ${folder}. If somebody can, remove the folder as well: new secrets are made at the next start, and what the old ones protected is lost.`,
    },
  ]);
}

/** Gets its name when it is whole: a start that was cut short leaves no half secret to go on with. */
function makeSecret(path: string): string {
  const aside = `${path}.${randomUUID()}`;
  const secret = newSecret();
  try {
    writeFileSync(aside, secret, { mode: 0o600, flag: 'wx', flush: true });
    linkSync(aside, path);
    // Before anything is sealed under it.
    flushNamesNow(dirname(path));
    return secret;
  } catch (error) {
    // Another process of this installation was first; its secret is the one to use.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    return readFileSync(path, 'utf8').trim();
  } finally {
    rmSync(aside, { force: true });
  }
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
