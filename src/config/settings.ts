import { isIP } from 'node:net';
import { z } from 'zod';
import { isLoopback } from '../core/loopback.ts';
import { isPrivateTarget } from '../platform/outbound.ts';

/** Which processes read a setting. `commands`, an operator's commands, read all of them. */
type Reader = 'web' | 'gateway' | 'worker' | 'migrate' | 'commands';
const everyProcess = ['web', 'gateway', 'worker', 'migrate'] as const;
const servers = ['web', 'gateway', 'worker'] as const;
const withIdentity = ['web', 'worker'] as const;

/** One environment variable. docs/reference/config.md shows everything but its schema. */
type Setting<Value, Unset extends string | number | readonly string[] | null> = {
  /** Parses the text. Each issue says what is wrong; its `params.fix` is the fix. */
  readonly schema: z.ZodType<Value, string>;
  /** The value when it is not set. */
  readonly unset: Unset;
  readonly meaning: string;
  /** How the reference describes `unset`, where the value alone is not clear. */
  readonly shown?: string;
  readonly secret?: true;
  readonly readBy?: readonly Reader[];
};

type AnySetting = Setting<unknown, string | number | readonly string[] | null>;

/** A text for which `isFine` holds. */
const textThat = (isFine: (text: string) => boolean, problem: string, fix: string) =>
  z.string().refine(isFine, { error: problem, params: { fix } });

/** Like `textThat`, for words and numbers: the problem repeats the value, unless it is long enough to be a secret. */
const wordThat = (isFine: (text: string) => boolean, problem: string, fix: string) =>
  z.string().refine(isFine, {
    error: ({ input }) => (/^[\w.-]{1,11}$/.test(String(input)) ? `"${String(input)}" ${problem}` : problem),
    params: { fix },
  });

const oneOf = <const Word extends string>(words: readonly Word[], problem: string, fix: string) =>
  wordThat((text) => words.some((word) => word === text), problem, fix).transform((text) => text as Word);

const wholeNumber = (from: number, to: number, problem: string, fix: string) =>
  wordThat(
    (text) => /^\d{1,15}$/.test(text) && Number(text) >= from && Number(text) <= to,
    problem,
    fix,
  ).transform(Number);

const someText = z.string();
const port = wholeNumber(0, 65_535, 'is not a port', 'Use a number from 0 to 65535.');
const requests = wholeNumber(
  0,
  999_999_999,
  'is not a number of requests',
  'Use a whole number from 0 to 999999999; 0 = no limit.',
);
const minCacheBytes = 64 * 1024 * 1024;

/** Minimum number of characters of a secret. */
export const minSecretLength = 32;
const secrets = z
  .string()
  .transform(listOf)
  .refine((values) => values.length > 0 && values.every(({ length }) => length >= minSecretLength), {
    error: `has a value shorter than ${minSecretLength} characters`,
    params: {
      fix: `Use at least ${minSecretLength} random characters each, such as the output of: openssl rand -base64 32`,
    },
  });

type Problem = (message: string, fix: string) => void;

const originThat = (check: (url: URL, problem: Problem) => void) =>
  z.string().transform((text, context) => {
    const problem = (message: string, fix: string) => {
      context.addIssue({ code: 'custom', message, params: { fix } });
      return text;
    };
    if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(text))
      return problem(
        'has no scheme',
        'Begin it with https://, such as https://postern.example.com, or on loopback with http://, such as http://localhost:3000.',
      );
    if (!URL.canParse(text))
      return problem('is not an address', 'Write an origin such as https://postern.example.com.');
    const url = new URL(text);
    if (url.pathname !== '/' || url.search !== '' || url.hash !== '' || url.username !== '')
      problem(
        'has more than scheme, host and port',
        'Write only scheme, host and port, such as https://postern.example.com.',
      );
    check(url, problem);
    return url.origin;
  });

/** http is allowed on loopback only: a credential must not cross a network unencrypted (contract 3). */
const origin = originThat(({ protocol, hostname }, problem) => {
  if (protocol !== 'https:' && !(protocol === 'http:' && isLoopback(hostname)))
    problem('must use https, or http on a loopback address', 'Use https. For trials, use http on localhost.');
});

/** http too: a Service of Kubernetes has no certificate. Its name says in which namespace Postern is. */
const originOfService = originThat(({ protocol, hostname }, problem) => {
  if (!/^https?:$/.test(protocol) || !/^[a-z0-9-]+\.[a-z0-9-]+\.svc(?:\.[a-z0-9.-]+)?$/.test(hostname))
    problem(
      'is not the http or https address of a Service with its namespace',
      'Write it such as http://postern-web-files.postern.svc:80.',
    );
});

/** Kept as written: it is compared with the provider's own spelling character by character (OpenID Connect Discovery 4.3). */
const realm = z.string().superRefine((text, context) => {
  const usualFix = 'Write the address of the realm, such as https://id.example.com/realms/postern.';
  const problem = (message: string, fix = usualFix) =>
    context.addIssue({ code: 'custom', message, params: { fix } });
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !/^https?:$/.test(url.protocol)) return problem('is not an address');
  const name = /^(?:\/[^/]+)*\/realms\/([^/]+)$/.exec(url.pathname)?.[1];
  if (name === undefined || url.search !== '' || url.hash !== '' || url.username !== '')
    problem('is not the address of a realm');
  if (name === 'master')
    problem(
      'names the realm in which Keycloak itself is administered',
      'Create a realm for the users of Postern, such as the one in deploy/keycloak/postern-realm.json.',
    );
  if (url.protocol !== 'https:' && !isLoopback(url.hostname))
    problem('must use https, or http on a loopback address', 'Use https. For trials, use http on localhost.');
});

/**
 * Addresses that the clients of PostgreSQL and Redis can parse. Otherwise their errors repeat the whole address, password
 * included.
 */
const server = (scheme: RegExp, what: string, example: string) =>
  textThat(
    (text) => {
      // A PostgreSQL on a Unix socket: postgresql://user:password@/database?host=/run/postgresql
      const address = text.replace('@/', '@socket/');
      if (!URL.canParse(address)) return false;
      const { protocol, username, password } = new URL(address);
      return scheme.test(protocol) && address.includes('://') && [username, password].every(isPercentEncoded);
    },
    `is not a ${what} address`,
    `Write ${example}. In the password, write / ? # % @ as %2F %3F %23 %25 %40.`,
  );

/** One that services of Environments can reach: not a Unix socket of this machine. */
const postgresWithHost = server(
  /^postgres(?:ql)?:$/,
  'PostgreSQL',
  'postgresql://user:password@host:5432/database',
).refine((text) => !/@\/|[?&]host=/.test(text), {
  error: 'has no host, so services of Environments cannot reach the server',
  params: { fix: 'Write the name or the address of the server before the first /, and no option host.' },
});

const bucketOptions = ['endpoint', 'region', 'pathStyle'];

/** `s3://bucket/prefix?endpoint=…&region=…` (contract 1). */
const bucket = z.string().transform((text, context) => {
  const problem = (message: string, fix: string) => {
    context.addIssue({ code: 'custom', message, params: { fix } });
    return z.NEVER;
  };
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const name = url?.host ?? '';
  // https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html
  if (url?.protocol !== 's3:' || !/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(name))
    return problem(
      'is not the address of a bucket',
      'Write s3://bucket?endpoint=https://host, such as s3://our-sites?endpoint=https://s3.eu-central-1.amazonaws.com&region=eu-central-1.',
    );
  if (url.username !== '' || url.password !== '' || url.hash !== '')
    return problem(
      'has more than a bucket, a folder and options',
      'Set the key in OBJECT_STORE_ACCESS_KEY and OBJECT_STORE_SECRET_KEY.',
    );
  const option = (one: string) => url.searchParams.get(one) ?? undefined;
  const unknown = [...url.searchParams.keys()].find((one) => !bucketOptions.includes(one));
  if (unknown !== undefined)
    return problem(`has an unknown option: ${unknown}`, `The options are ${bucketOptions.join(', ')}.`);
  const pathStyle = option('pathStyle') ?? 'true';
  if (!/^(?:true|false)$/.test(pathStyle))
    return problem(
      'has a pathStyle that is neither true nor false',
      'Use pathStyle=false when the bucket is the first part of the host name, and omit it otherwise.',
    );
  const given = option('endpoint');
  const endpoint = given !== undefined && URL.canParse(given) ? new URL(given) : undefined;
  if (endpoint?.href !== `${endpoint?.origin}/` || !/^https?:$/.test(endpoint.protocol))
    return problem(
      given === undefined ? 'has no endpoint' : 'has an endpoint that is not an origin',
      'Add endpoint=https://host with only scheme, host and port.',
    );
  if (endpoint.protocol === 'http:' && !isLoopback(endpoint.hostname))
    return problem(
      'has an http endpoint that is not loopback: private content would cross the network unencrypted',
      'Use an https endpoint.',
    );
  const folders = url.pathname.split('/').filter((folder) => folder !== '');
  return {
    endpoint: endpoint.origin,
    region: option('region') ?? 'us-east-1',
    bucket: name,
    prefix: folders.map((folder) => `${folder}/`).join(''),
    isPathStyle: pathStyle === 'true',
  };
});

/**
 * An address in the range decides which client address a request has, so the range must hold proxies only. The widest
 * ranges allowed are the private networks 10.0.0.0/8 (RFC 1918) and fc00::/7 (RFC 4193).
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

function isPercentEncoded(text: string): boolean {
  return !/%(?![0-9a-f]{2})/i.test(text);
}

export function listOf(text: string): string[] {
  return text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
}

const setting = <Value, Unset extends AnySetting['unset']>(one: Setting<Value, Unset>) => one;
const generated = 'generated in DATA_DIR; required with DATABASE_URL';

/**
 * Every setting, defined once: its schema, its default, its meaning, whether it is secret, and which processes read it. A
 * process ignores settings that are not for it (contract 1), even if its environment has them.
 */
export const settings = {
  SERVICE_UI_URL: setting({
    schema: origin,
    unset: null,
    meaning: 'Public origin of the web app and the API; https, or http on loopback',
    shown: 'http://localhost:PORT',
  }),
  SITES_CONTENT_URL: setting({
    schema: origin,
    unset: null,
    meaning:
      'Base address of the content hosts; each site has a label in front of this host; https, or http on loopback',
    shown: 'http://sites.localhost:GATEWAY_PORT',
  }),
  ENVIRONMENTS_CONTENT_URL: setting({
    schema: origin,
    unset: null,
    meaning:
      'The same for Environments; a separate registrable domain keeps their code away from the cookies of sites',
    shown: 'SITES_CONTENT_URL',
  }),
  SITES_ALLOW_SHARED_APEX: setting({
    schema: oneOf(
      ['true'],
      'is neither true nor unset',
      'Set it to true on every process, or unset it everywhere.',
    ),
    unset: null,
    meaning:
      'true = private sites and Environments work although SERVICE_UI_URL shares a registrable domain with their content hosts; the same on every process',
    shown: 'unset: they need a separate content domain',
  }),
  HOST: setting({
    schema: someText,
    unset: '127.0.0.1',
    meaning: 'Address that the listeners bind to; unless it is loopback, SERVICE_UI_URL must be https',
  }),
  PORT: setting({ schema: port, unset: 3000, meaning: 'Port of the web workload' }),
  GATEWAY_PORT: setting({ schema: port, unset: 3001, meaning: 'Port of the gateway workload' }),
  METRICS_PORT: setting({ schema: port, unset: 9464, meaning: 'Port of /metrics, /livez and /readyz' }),
  DATA_DIR: setting({
    schema: someText,
    unset: './data',
    meaning: 'Folder of the embedded database and the generated secrets',
  }),
  DATABASE_URL: setting({
    schema: server(/^postgres(?:ql)?:$/, 'PostgreSQL', 'postgresql://user:password@host:5432/database'),
    unset: null,
    meaning: 'PostgreSQL 15 or newer; absent = embedded in DATA_DIR',
    secret: true,
  }),
  GATEWAY_DATABASE_ROLE: setting({
    schema: someText,
    unset: null,
    meaning:
      'PostgreSQL role of gateways that run on their own; each migration grants it the views that they read',
    shown: 'unset: grant them yourself',
    readBy: ['web', 'worker', 'migrate'],
  }),
  KV_URL: setting({
    schema: server(/^rediss?:$/, 'Redis', 'redis://host:6379 or redis://:password@host:6379'),
    unset: null,
    meaning:
      'Redis 7 or Valkey with noeviction, or any node of its cluster; absent = in process, one process only',
    secret: true,
    readBy: servers,
  }),
  OBJECT_STORE_URL: setting({
    schema: bucket,
    unset: null,
    meaning:
      'S3-compatible store for the files of sites: s3://bucket/prefix?endpoint=https://host&region=…, with &pathStyle=false when the bucket is the first part of the host name; absent = files in DATA_DIR',
    readBy: servers,
  }),
  OBJECT_STORE_ACCESS_KEY: setting({
    schema: someText,
    unset: null,
    meaning: 'Id of the access key for the object store',
    shown: 'required with OBJECT_STORE_URL',
    secret: true,
    readBy: servers,
  }),
  OBJECT_STORE_SECRET_KEY: setting({
    schema: someText,
    unset: null,
    meaning:
      'Secret of the access key; it needs to read, write, remove and list objects in the bucket, and nothing else',
    shown: 'required with OBJECT_STORE_URL',
    secret: true,
    readBy: servers,
  }),
  OBJECT_CACHE_BYTES: setting({
    schema: wholeNumber(
      minCacheBytes,
      Number.MAX_SAFE_INTEGER,
      'is not a sufficient number of bytes',
      `Use a whole number of at least ${minCacheBytes}.`,
    ),
    unset: 1024 ** 3,
    meaning: `Size of the cache for the object store, in DATA_DIR, in bytes; at least ${minCacheBytes}`,
    readBy: servers,
  }),
  IDENTITY_PROVIDER: setting({
    schema: oneOf(['builtin', 'keycloak'], 'is not an identity provider', 'Use builtin or keycloak.'),
    unset: 'builtin',
    meaning: 'Identity provider: builtin or keycloak',
    readBy: withIdentity,
  }),
  OIDC_ISSUER: setting({
    schema: realm,
    unset: null,
    meaning:
      'Address of the Keycloak realm, such as https://id.example.com/realms/postern; https, or http on loopback',
    shown: '–; required with IDENTITY_PROVIDER=keycloak, like the four below',
    readBy: withIdentity,
  }),
  OIDC_CLIENT_ID: setting({
    schema: someText,
    unset: null,
    meaning: 'Client of the realm that signs people in to the web app',
    readBy: withIdentity,
  }),
  OIDC_CLIENT_SECRET: setting({
    schema: someText,
    unset: null,
    meaning: 'Secret of this client',
    secret: true,
    readBy: withIdentity,
  }),
  PRINCIPAL_SYNC_CLIENT_ID: setting({
    schema: someText,
    unset: null,
    meaning:
      'Client of the realm that reads the status and roles of people and introspects tokens; Postern refuses a client that can manage anything',
    readBy: withIdentity,
  }),
  PRINCIPAL_SYNC_CLIENT_SECRET: setting({
    schema: someText,
    unset: null,
    meaning: 'Secret of this client',
    secret: true,
    readBy: withIdentity,
  }),
  OIDC_USER_ROLE: setting({
    schema: someText,
    unset: 'user',
    meaning:
      'Realm role that lets a person use Postern; without it a person can sign in, and see and revoke keys they own',
    readBy: withIdentity,
  }),
  OIDC_ADMIN_ROLE: setting({
    schema: someText,
    unset: 'admin',
    meaning: 'Realm role of administrators of Postern',
    readBy: withIdentity,
  }),
  OWNER_SWEEP_MINUTES: setting({
    schema: wholeNumber(1, 60, 'is not a number of minutes', 'Use a whole number from 1 to 60.'),
    unset: 5,
    meaning:
      'Minutes between checks of the owners of keys, from 1 to 60; a key of a disabled person, or of a person who lost the role, can work that long',
    readBy: withIdentity,
  }),
  KEY_PREFIX: setting({
    schema: textThat(
      (text) => /^[a-z][a-z0-9]{0,15}$/.test(text),
      'is not a valid prefix',
      'Use 1 to 16 lower-case letters and digits, beginning with a letter.',
    ),
    unset: 'app',
    meaning: 'First part of key prefixes, such as app in app_pat_',
    readBy: servers,
  }),
  TRUSTED_PROXIES: setting({
    schema: z
      .string()
      .transform(listOf)
      .refine((ranges) => ranges.every(isProxyRange), {
        error: 'contains an entry that is neither an IP address nor a range that is narrow enough',
        params: {
          fix: 'Write only the addresses of your proxies, such as 10.0.0.7 or 10.0.0.0/8, and no host names. The widest ranges allowed are /8 (IPv4) and /7 (IPv6).',
        },
      }),
    unset: [],
    meaning:
      'IP addresses or ranges (CIDR) of proxies whose forwarded headers Postern trusts, separated by commas',
    shown: 'none',
    readBy: servers,
  }),
  GATEWAY_REQUESTS_PER_ADDRESS: setting({
    schema: requests,
    unset: 60_000,
    meaning:
      'Requests of one address that a gateway process answers in any 60 seconds; it refuses more with 429; 0 = no limit',
    readBy: ['gateway'],
  }),
  GATEWAY_REQUESTS_PER_HOST: setting({
    schema: requests,
    unset: 600_000,
    meaning: 'The same for one content host, from all addresses together; 0 = no limit',
    readBy: ['gateway'],
  }),
  GATEWAY_FAST_HTTP: setting({
    schema: oneOf(['on', 'off'], 'is neither on nor off', 'Use on or off, or unset it.'),
    unset: 'on',
    meaning:
      'on or off; on = the gateway parses plain requests itself; off = node:http parses every request to the gateway',
    readBy: ['gateway'],
  }),
  SESSION_SECRET: setting({
    schema: secrets,
    unset: null,
    meaning:
      'Signs session cookies and sign-in links; a list separated by commas: the first value signs, all verify',
    shown: generated,
    secret: true,
    readBy: withIdentity,
  }),
  ENCRYPTION_KEY: setting({
    schema: secrets,
    unset: null,
    meaning: 'Encrypts stored provider tokens; a list: the first value encrypts, all decrypt',
    shown: generated,
    secret: true,
    readBy: withIdentity,
  }),
  GRANT_SECRET: setting({
    schema: secrets,
    unset: null,
    meaning:
      'Signs and encrypts the grants of private sites, on web and gateway; a list: the first value signs, all verify',
    shown: generated,
    secret: true,
    readBy: servers,
  }),
  BOOTSTRAP_ADMIN_EMAIL: setting({
    schema: textThat(
      (text) => /^[^\s@]+@[^\s@]+$/.test(text),
      'is not an e-mail address',
      'Write an address such as ada@example.com. The administrator signs in with it.',
    ),
    unset: null,
    meaning: 'First administrator; first boot only',
    shown: 'absent: a one-time sign-in link is printed',
    readBy: withIdentity,
  }),
  BOOTSTRAP_ADMIN_PASSWORD: setting({
    schema: textThat(
      ({ length }) => length >= 12,
      'is shorter than 12 characters',
      'Use at least 12 characters.',
    ),
    unset: null,
    meaning: 'Password of the first administrator',
    secret: true,
    readBy: withIdentity,
  }),
  BACKUP_PASSPHRASE: setting({
    schema: textThat(
      ({ length }) => length >= 16,
      'is shorter than 16 characters',
      'Use at least 16 characters: a person with a backup can try passphrases without a limit.',
    ),
    unset: null,
    meaning:
      'Encrypts the generated secrets in a backup with --with-secrets, and decrypts them; 16 characters or more',
    secret: true,
    readBy: ['commands'],
  }),
  OUTBOUND_ALLOW_PRIVATE: setting({
    schema: z
      .string()
      .transform(listOf)
      .refine((targets) => targets.every(isPrivateTarget), {
        error: 'contains an entry that is neither a host name, an IP address nor a network',
        params: {
          fix: 'Write hosts and networks without ports, separated by commas, such as git.inside.example,10.20.0.0/16.',
        },
      }),
    unset: [],
    meaning:
      'Host names and networks (CIDR), separated by commas, that requests to addresses of users, such as clone URLs, external MCP servers and issuers of ID tokens, may reach although they are private; `true` = all of them. Link-local addresses are always refused',
    shown: 'unset: only public addresses',
    readBy: withIdentity,
  }),
  OUTBOUND_CA_FILE: setting({
    schema: someText,
    unset: null,
    meaning:
      'File with the certificate authorities, in PEM, that git trusts for https, and that external MCP servers and issuers of ID tokens may have besides the public ones; needed for a server with a private authority',
    shown: 'unset: those of the machine',
    readBy: withIdentity,
  }),
  ENVIRONMENTS_ALLOW_FILE_REPOSITORIES: setting({
    schema: oneOf(['true'], 'is neither true nor unset', 'Set it to true, or unset it.'),
    unset: null,
    meaning:
      'true = a repository may have a clone URL that begins with file://, for trials on one machine: a client that may register a repository can read every git repository that this process can read',
    shown: 'unset: only https and ssh',
    readBy: withIdentity,
  }),
  ENVIRONMENTS_ENGINE: setting({
    schema: oneOf(['off', 'local', 'kubernetes'], 'is not an engine', 'Use off, local or kubernetes.'),
    unset: 'off',
    meaning:
      'Engine that builds and runs Environments: off, local or kubernetes; local = processes of this machine, which run the code of every registered repository: Linux only, and only when one process runs all workloads; kubernetes = pods, which the worker makes',
    readBy: withIdentity,
  }),
  ENVIRONMENTS_ISOLATION: setting({
    schema: oneOf(['bwrap', 'process'], 'is not an isolation', 'Use bwrap or process.'),
    unset: 'bwrap',
    meaning:
      'What keeps the code of repositories from this machine, with ENVIRONMENTS_ENGINE=local: bwrap = bubblewrap, which must be installed; process = nothing: whoever can push to a registered repository controls Postern; never as root',
    readBy: withIdentity,
  }),
  ENVIRONMENTS_NAMESPACE: setting({
    schema: textThat(
      (text) => /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(text),
      'is not the name of a namespace',
      'Use lower-case letters, digits and hyphens, at most 63, such as postern-environments.',
    ),
    unset: null,
    meaning:
      'Namespace in which Environments run, with ENVIRONMENTS_ENGINE=kubernetes; never that of Postern or of anything else',
    readBy: withIdentity,
  }),
  ENVIRONMENTS_POD_IMAGE: setting({
    schema: textThat(
      (text) => /^\S{1,512}$/.test(text),
      'is not the name of an image',
      'Write an image such as registry.example.com/postern:0.1.0.',
    ),
    unset: null,
    meaning:
      'Image of this version of Postern, which fetches and sends files in pods, with ENVIRONMENTS_ENGINE=kubernetes',
    readBy: withIdentity,
  }),
  ENVIRONMENTS_PORT: setting({
    schema: port,
    unset: 3002,
    meaning:
      'Port at which the web workload gives pods their files and takes outputs of builds, and answers nothing else, with ENVIRONMENTS_ENGINE=kubernetes',
    readBy: withIdentity,
  }),
  ENVIRONMENTS_WEB_URL: setting({
    schema: originOfService,
    unset: null,
    meaning:
      'Where pods reach ENVIRONMENTS_PORT of the web workload, with ENVIRONMENTS_ENGINE=kubernetes; such as http://postern-web-files.postern.svc:80',
    readBy: withIdentity,
  }),
  KUBECONFIG: setting({
    schema: someText,
    unset: null,
    meaning:
      'File with the address of the Kubernetes API server and the credentials for it, with ENVIRONMENTS_ENGINE=kubernetes',
    shown: 'unset: the service account of the pod',
    readBy: ['worker'],
  }),
  ENVIRONMENTS_DATABASE_URL: setting({
    schema: postgresWithHost,
    unset: null,
    meaning:
      'PostgreSQL 15 or newer for the databases of Environments, with a role that may create databases and roles; services connect to the same host, so they must reach it. Never the server of DATABASE_URL: everyone who can push to a registered repository can run SQL on it',
    shown: 'unset: PGlite with the local engine, otherwise no `postgres` services',
    secret: true,
    readBy: ['worker'],
  }),
  SECRETS_DIR: setting({
    schema: someText,
    unset: null,
    meaning:
      'Folder of the secrets that postern.yaml references: one file for each, SECRETS_DIR/{repository id}/{name}; at most 64 KiB of UTF-8',
    shown: 'unset: there are no secrets',
    readBy: withIdentity,
  }),
  LOG_LEVEL: setting({
    schema: oneOf(
      ['debug', 'info', 'warn', 'error', 'silent'],
      'is not a log level',
      'Use debug, info, warn, error or silent.',
    ),
    unset: 'info',
    meaning: 'debug, info, warn, error or silent',
  }),
} as const satisfies Record<string, AnySetting>;

export type SettingName = keyof typeof settings;
export type ValueOf<Name extends SettingName> =
  | z.output<(typeof settings)[Name]['schema']>
  | (typeof settings)[Name]['unset'];

export function readersOf(name: SettingName): readonly Reader[] {
  const one: AnySetting = settings[name];
  return one.readBy ?? everyProcess;
}

/** For docs/reference/config.md. */
export function configReference() {
  return Object.entries(settings).map(([name, one]: [string, AnySetting]) => ({
    name,
    meaning: one.meaning,
    default: one.shown ?? (one.unset === null ? '–' : String(one.unset)),
    isSecret: one.secret === true,
    readers: readersOf(name as SettingName),
  }));
}
