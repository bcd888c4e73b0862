import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { resolve } from 'node:path';
import { isLoopback } from '../core/loopback.ts';
import type { ObjectStore } from '../platform/blobs/s3-blobs.ts';
import { ConfigError, type ConfigMistake } from './config-error.ts';
import { type Environment, generatedSecrets, isSet, type SecretSource } from './generated-secrets.ts';
import { generatedNames, type Workload } from './names.ts';
import { readersOf, type SettingName, settings, type ValueOf } from './settings.ts';

/**
 * The only place that reads the environment (contract 1). It collects every mistake and reports them together, each with
 * its fix. A partly configured feature refuses to start; it never falls back silently. Instead of a setting, NAME_FILE
 * may name a file with its value, such as `SESSION_SECRET_FILE`.
 */
export type Config = {
  readonly uiUrl: string;
  readonly contentUrl: string;
  /** Where Environments are served; may be `contentUrl`. */
  readonly environmentsContentUrl: string;
  readonly host: string;
  readonly port: number;
  readonly gatewayPort: number;
  readonly metricsPort: number;
  readonly dataDir: string;
  readonly databaseUrl: string | null;
  /** Null: the operator grants the privileges of a gateway's role, or no gateway has a separate role. */
  readonly gatewayDatabaseRole: string | null;
  readonly kvUrl: string | null;
  /** Null: files in DATA_DIR. */
  readonly objectStore: ObjectStore | null;
  /** Size of the cache for the object store, in bytes. */
  readonly objectCacheBytes: number;
  readonly trustedProxies: readonly string[];
  readonly keyPrefix: string;
  /** Requests in any 60 seconds that a gateway process accepts; 0 = no limit. */
  readonly gatewayLimits: { readonly perAddress: number; readonly perHost: number };
  /** False: node:http reads every request to the gateway (decision 0032). */
  readonly gatewayFastHttp: boolean;
  readonly outbound: OutboundSettings;
  readonly git: GitSettings;
  readonly environments: EnvironmentSettings;
  readonly logLevel: string;
  readonly backupPassphrase: string | null;
  /** The first signs; all of them verify. */
  readonly sessionSecrets: readonly string[];
  readonly encryptionKeys: readonly string[];
  readonly grantSecrets: readonly string[];
  /** Allows private sites although the UI and content hosts share a registrable domain. */
  readonly allowSharedApex: boolean;
  readonly bootstrapAdmin: { readonly email: string; readonly password: string } | null;
  /** Null: the built-in provider. Always null for a gateway, which never looks up people. */
  readonly keycloak: KeycloakSettings | null;
  /** Minutes between checks of the owners of keys. */
  readonly ownerSweepMinutes: number;
};

export type KeycloakSettings = {
  /** The issuer URL of the realm, as in its tokens: without a slash at the end. */
  readonly issuer: string;
  /** Signs people in. */
  readonly login: ClientCredentials;
  /** Reads status and roles, and introspects tokens; must not be able to change anything. */
  readonly principalSync: ClientCredentials;
  /** The realm's names for the two roles of the product. */
  readonly roleNames: { readonly user: string; readonly admin: string };
};

/** Requests to repositories and to external MCP servers. */
export type OutboundSettings = {
  /** Hosts and networks. True: all. */
  readonly allowsPrivate: boolean | readonly string[];
  /** Certificate authorities in PEM; null: those of the machine. */
  readonly caFile: string | null;
};

/** How git reads the repositories of the registry. */
export type GitSettings = {
  readonly allowsFiles: boolean;
  /** PATH: where git and ssh are. */
  readonly searchPath: string;
};

/** How Environments are built and run. */
export type EnvironmentSettings = {
  readonly engine: 'off' | 'local' | 'kubernetes';
  /** Isolation of the local engine. */
  readonly isolation: 'bwrap' | 'process';
  /** Null: another engine, or none. */
  readonly kubernetes: KubernetesSettings | null;
  /** The PostgreSQL in which databases of Environments are made. */
  readonly databaseUrl: string | null;
  /** Absolute. Null: there are no secrets. */
  readonly secretsDir: string | null;
  /** HOME of this process; null when it has none. */
  readonly home: string | null;
};

/** Where the pods of Environments run, and what they are made of. */
export type KubernetesSettings = {
  readonly namespace: string;
  /** Postern's own image. */
  readonly podImage: string;
  /** At which web answers pods. */
  readonly port: number;
  /** Where pods reach that port: an origin. */
  readonly webUrl: string;
  /** Path of a file with credentials for the API server. Null: the service account of the pod. */
  readonly kubeconfig: string | null;
};

export type ClientCredentials = { readonly id: string; readonly secret: string };

/** Why there is no fallback: each process would keep data that the others do not see. */
const sharedFix = 'Set the same value on every process, or run all workloads in one process with: npm start';

type Wrong = (setting: string, problem: string, fix: string) => void;
/** Values of settings by name. An invalid one counts as set, but has the value of an unset one: check `isWrong`. */
type Values = {
  <Name extends SettingName>(name: Name): ValueOf<Name>;
  isSet(name: SettingName): boolean;
  isWrong(name: SettingName): boolean;
};

/**
 * When the configuration has mistakes, nothing is created. Otherwise DATA_DIR and its secrets are created if missing.
 * @throws ConfigError naming every mistake at once
 */
export function readConfig(
  env: Environment = process.env,
  workload: Workload | 'migrate' = 'all',
  secretOf: SecretSource = generatedSecrets,
): Config {
  const mistakes: ConfigMistake[] = [];
  const wrong: Wrong = (setting, problem, fix) => void mistakes.push({ setting, problem, fix });
  const value = valuesOf(env, workload, wrong);

  const [port, gatewayPort, metricsPort] = [value('PORT'), value('GATEWAY_PORT'), value('METRICS_PORT')];
  const environmentsPort = value('ENVIRONMENTS_ENGINE') === 'kubernetes' ? value('ENVIRONMENTS_PORT') : 0;
  checkPorts(
    {
      PORT: port,
      GATEWAY_PORT: gatewayPort,
      METRICS_PORT: metricsPort,
      ENVIRONMENTS_PORT: environmentsPort,
    },
    value,
    wrong,
  );
  const uiUrl = value('SERVICE_UI_URL') ?? `http://localhost:${port}`;
  const databaseUrl = value('DATABASE_URL');
  const gatewayDatabaseRole = value('GATEWAY_DATABASE_ROLE');
  if (gatewayDatabaseRole !== null && !value.isSet('DATABASE_URL'))
    wrong(
      'GATEWAY_DATABASE_ROLE',
      'is set, but DATABASE_URL is not: the embedded database has only one role',
      'Set DATABASE_URL, or unset GATEWAY_DATABASE_ROLE.',
    );
  const kvUrl = value('KV_URL');
  if (workload !== 'all' && workload !== 'migrate')
    for (const name of ['DATABASE_URL', 'KV_URL'] as const)
      if (!value.isSet(name)) wrong(name, `is required when ${workload} runs on its own`, sharedFix);
  const host = value('HOST');
  const isOpen = !isLoopback(isIP(host) === 6 ? `[${host}]` : host);
  if (isOpen && uiUrl.startsWith('http:') && !value.isWrong('SERVICE_UI_URL'))
    wrong(
      'HOST',
      'opens the listeners to the network, but SERVICE_UI_URL uses http: clients would send keys unencrypted',
      'Set SERVICE_UI_URL to its https address, or unset HOST.',
    );
  const objectStore = readObjectStore(value, wrong);
  const keycloak = readIdentity(value, wrong);
  const bootstrapAdmin = readAdministrator(value, wrong);
  const secretNames = generatedNames.filter((name) => isReadBy(name, workload));
  // A setting reports its mistake when it is first read, and secret() below reads these after the mistakes were thrown.
  for (const name of secretNames)
    if (value(name) === null && !value.isSet(name) && value.isSet('DATABASE_URL'))
      wrong(
        name,
        'is required with DATABASE_URL: every process on that database must have the same value',
        'Set it to the output of: openssl rand -base64 32',
      );
  const dataDir = resolve(value('DATA_DIR'));
  const allowedPrivate: readonly string[] = value('OUTBOUND_ALLOW_PRIVATE');
  const environments = readEnvironments(env, value, workload, wrong);
  const contentUrl = value('SITES_CONTENT_URL') ?? `http://sites.localhost:${gatewayPort}`;
  const config = {
    uiUrl,
    contentUrl,
    environmentsContentUrl: value('ENVIRONMENTS_CONTENT_URL') ?? contentUrl,
    host,
    port,
    gatewayPort,
    metricsPort,
    dataDir,
    databaseUrl,
    gatewayDatabaseRole,
    kvUrl,
    objectStore,
    objectCacheBytes: value('OBJECT_CACHE_BYTES'),
    trustedProxies: value('TRUSTED_PROXIES'),
    keyPrefix: value('KEY_PREFIX'),
    gatewayLimits: {
      perAddress: value('GATEWAY_REQUESTS_PER_ADDRESS'),
      perHost: value('GATEWAY_REQUESTS_PER_HOST'),
    },
    gatewayFastHttp: value('GATEWAY_FAST_HTTP') === 'on',
    ownerSweepMinutes: value('OWNER_SWEEP_MINUTES'),
    outbound: {
      allowsPrivate: allowedPrivate.includes('true') ? true : allowedPrivate,
      caFile: value('OUTBOUND_CA_FILE'),
    },
    git: {
      allowsFiles: value('ENVIRONMENTS_ALLOW_FILE_REPOSITORIES') === 'true',
      searchPath: env['PATH'] ?? '',
    },
    environments,
    logLevel: value('LOG_LEVEL'),
    backupPassphrase: value('BACKUP_PASSPHRASE'),
    allowSharedApex: value('SITES_ALLOW_SHARED_APEX') === 'true',
    bootstrapAdmin,
    keycloak,
  };
  if (mistakes.length > 0) throw new ConfigError(mistakes);

  const secret = (name: (typeof secretNames)[number]) =>
    secretNames.includes(name) ? (value(name) ?? secretOf(name, dataDir)) : [];
  return {
    ...config,
    sessionSecrets: secret('SESSION_SECRET'),
    encryptionKeys: secret('ENCRYPTION_KEY'),
    grantSecrets: secret('GRANT_SECRET'),
  };
}

function isReadBy(name: SettingName, workload: Workload | 'migrate'): boolean {
  return workload === 'all' || readersOf(name).includes(workload);
}

/** Each mistake is reported once, when its setting is first read. */
function valuesOf(env: Environment, workload: Workload | 'migrate', wrong: Wrong): Values {
  const known = new Map<SettingName, unknown>();
  const wrongs = new Set<SettingName>();
  function read(name: SettingName): unknown {
    const { schema, unset } = settings[name];
    const text = isReadBy(name, workload) ? textOf(env, name, wrong) : undefined;
    if (text === undefined) return unset;
    const parsed = schema.safeParse(text);
    if (parsed.success) return parsed.data;
    wrongs.add(name);
    for (const issue of parsed.error.issues)
      wrong(name, issue.message, String(issue.code === 'custom' ? issue.params?.['fix'] : ''));
    return unset;
  }
  const value = <Name extends SettingName>(name: Name): ValueOf<Name> => {
    if (!known.has(name)) known.set(name, read(name));
    return known.get(name) as ValueOf<Name>;
  };
  return Object.assign(value, {
    isSet: (name: SettingName) => isReadBy(name, workload) && isSet(name, env),
    isWrong(name: SettingName) {
      value(name);
      return wrongs.has(name);
    },
  });
}

function textOf(env: Environment, name: string, wrong: Wrong): string | undefined {
  const direct = env[name];
  const file = env[`${name}_FILE`];
  if (direct !== undefined && direct !== '' && file !== undefined && file !== '') {
    wrong(name, `is set twice, as ${name} and as ${name}_FILE`, 'Set only one of them.');
  }
  if (file === undefined || file === '') return direct === '' ? undefined : direct;
  try {
    return readFileSync(file, 'utf8').trim();
  } catch {
    wrong(`${name}_FILE`, 'names a file that cannot be read', 'Check the path and its permissions.');
    return undefined;
  }
}

/** Two listeners cannot share a port. Port 0 selects a free port each time. */
function checkPorts(
  ports: Readonly<Record<'PORT' | 'GATEWAY_PORT' | 'METRICS_PORT' | 'ENVIRONMENTS_PORT', number>>,
  { isWrong }: Values,
  wrong: Wrong,
): void {
  const named = Object.entries(ports).filter(([name]) => !isWrong(name as keyof typeof ports));
  for (const [index, [name, port]] of named.entries()) {
    const same = named.slice(0, index).find(([, other]) => other === port && port !== 0);
    if (same !== undefined)
      wrong(name, `is ${port}, and so is ${same[0]}`, 'Give each listener its own port.');
  }
}

/** All of its settings or none: with one missing, files would be stored in the wrong place. */
function readObjectStore(value: Values, wrong: Wrong): ObjectStore | null {
  const names = ['OBJECT_STORE_URL', 'OBJECT_STORE_ACCESS_KEY', 'OBJECT_STORE_SECRET_KEY'] as const;
  const [bucket, accessKey, secretKey] = [value(names[0]), value(names[1]), value(names[2])];
  const missing = names.filter((name) => !value.isSet(name));
  if (missing.length === names.length) return null;
  const there = names.filter((name) => value.isSet(name));
  for (const name of missing)
    wrong(
      name,
      `is missing, but ${there.join(' and ')} ${there.length === 1 ? 'is' : 'are'} set`,
      'Set all three. To keep the files in DATA_DIR, set none of them.',
    );
  return bucket === null ? null : { ...bucket, accessKey: accessKey ?? '', secretKey: secretKey ?? '' };
}

function readEnvironments(
  env: Environment,
  value: Values,
  workload: Workload | 'migrate',
  wrong: Wrong,
): EnvironmentSettings {
  const [engine, isolation] = [value('ENVIRONMENTS_ENGINE'), value('ENVIRONMENTS_ISOLATION')];
  const secretsDir = value('SECRETS_DIR');
  const databaseUrl = value('ENVIRONMENTS_DATABASE_URL');
  const own = value('DATABASE_URL');
  if (databaseUrl !== null && own !== null && serverIn(databaseUrl) === serverIn(own))
    wrong(
      'ENVIRONMENTS_DATABASE_URL',
      'names the server of DATABASE_URL: code of repositories would reach what Postern stores',
      'Use a separate PostgreSQL server for Environments.',
    );
  if (engine === 'local' && (workload !== 'all' || value.isSet('KV_URL')))
    wrong(
      'ENVIRONMENTS_ENGINE',
      workload === 'all'
        ? 'is local, but KV_URL is set: the local engine needs one process that runs all workloads'
        : `is local, but ${workload} runs on its own: the local engine needs one process that runs all workloads`,
      workload === 'all'
        ? 'Unset KV_URL, or set ENVIRONMENTS_ENGINE to kubernetes or off.'
        : 'Run all workloads in one process with: npm start; or set ENVIRONMENTS_ENGINE to kubernetes or off.',
    );
  return {
    engine: engine === 'local' || engine === 'kubernetes' ? engine : 'off',
    isolation: isolation === 'process' ? isolation : 'bwrap',
    kubernetes: value.isWrong('ENVIRONMENTS_ENGINE') ? null : readKubernetes(value, wrong),
    databaseUrl,
    secretsDir: secretsDir === null ? null : resolve(secretsDir),
    home: env['HOME'] ?? null,
  };
}

const kubernetesSettings = [
  'ENVIRONMENTS_NAMESPACE',
  'ENVIRONMENTS_POD_IMAGE',
  'ENVIRONMENTS_WEB_URL',
] as const;

/** Null: another engine, or none. KUBECONFIG alone means nothing: other programs read it too. */
function readKubernetes(value: Values, wrong: Wrong): KubernetesSettings | null {
  if (value('ENVIRONMENTS_ENGINE') !== 'kubernetes') {
    for (const name of [...kubernetesSettings, 'ENVIRONMENTS_PORT' as const].filter((one) =>
      value.isSet(one),
    ))
      wrong(
        name,
        'is set, but only the Kubernetes engine uses it',
        'Set ENVIRONMENTS_ENGINE=kubernetes, or unset this setting.',
      );
    return null;
  }
  for (const name of kubernetesSettings.filter((one) => !value.isSet(one)))
    wrong(
      name,
      'is required with ENVIRONMENTS_ENGINE=kubernetes',
      'docs/reference/config.md explains its value. To run no Environments, set ENVIRONMENTS_ENGINE=off.',
    );
  if (value.isSet('ENVIRONMENTS_ISOLATION'))
    wrong(
      'ENVIRONMENTS_ISOLATION',
      'is set, but only the local engine uses it',
      'Unset it: with ENVIRONMENTS_ENGINE=kubernetes, pods isolate the code.',
    );
  const [namespace = '', podImage = '', webUrl = ''] = kubernetesSettings.map((name) => value(name) ?? '');
  const [, ownNamespace = ''] = webUrl.split('.');
  if (namespace !== '' && namespace === ownNamespace)
    wrong(
      'ENVIRONMENTS_NAMESPACE',
      'is the namespace of Postern itself, by ENVIRONMENTS_WEB_URL',
      'Create a namespace in which nothing but Environments runs, and name it.',
    );
  return { namespace, podImage, port: value('ENVIRONMENTS_PORT'), webUrl, kubeconfig: value('KUBECONFIG') };
}

/** Host and port. */
function serverIn(databaseUrl: string): string {
  const { hostname, port } = new URL(databaseUrl.replace('@/', '@socket/'));
  return `${hostname.toLowerCase()}:${port || '5432'}`;
}

const keycloakSettings = [
  'OIDC_ISSUER',
  'OIDC_CLIENT_ID',
  'OIDC_CLIENT_SECRET',
  'PRINCIPAL_SYNC_CLIENT_ID',
  'PRINCIPAL_SYNC_CLIENT_SECRET',
] as const;

/** Null: the built-in provider. An incomplete Keycloak configuration is a mistake, never a fallback. */
function readIdentity(value: Values, wrong: Wrong): KeycloakSettings | null {
  if (value.isWrong('IDENTITY_PROVIDER')) return null;
  const text = (name: (typeof keycloakSettings)[number]) => value(name) ?? '';
  const roleNames = { user: value('OIDC_USER_ROLE'), admin: value('OIDC_ADMIN_ROLE') };
  const [issuer, loginId, loginSecret, syncId, syncSecret] = keycloakSettings.map(text);
  if (value('IDENTITY_PROVIDER') === 'builtin') {
    const roles = ['OIDC_USER_ROLE', 'OIDC_ADMIN_ROLE'] as const;
    for (const name of [...keycloakSettings, ...roles].filter((one) => value.isSet(one)))
      wrong(
        name,
        'is set, but the built-in provider does not use it',
        'Set IDENTITY_PROVIDER=keycloak, or unset this setting.',
      );
    return null;
  }
  for (const name of keycloakSettings)
    if (!value.isSet(name))
      wrong(
        name,
        'is required with IDENTITY_PROVIDER=keycloak',
        'docs/how-to/sign-in-with-keycloak.md explains where to find its value.',
      );
  if (roleNames.user === roleNames.admin)
    wrong(
      'OIDC_ADMIN_ROLE',
      `is ${roleNames.admin}, and so is OIDC_USER_ROLE`,
      'Set two different realm roles.',
    );
  return {
    issuer: issuer ?? '',
    login: { id: loginId ?? '', secret: loginSecret ?? '' },
    principalSync: { id: syncId ?? '', secret: syncSecret ?? '' },
    roleNames,
  };
}

function readAdministrator(value: Values, wrong: Wrong): Config['bootstrapAdmin'] {
  const names = ['BOOTSTRAP_ADMIN_EMAIL', 'BOOTSTRAP_ADMIN_PASSWORD'] as const;
  const [email, password] = [value(names[0]), value(names[1])];
  if (value('IDENTITY_PROVIDER') === 'keycloak')
    for (const name of names.filter((one) => value.isSet(one)))
      wrong(
        name,
        'is set, but only the built-in provider uses it',
        'Unset it, and give a person the role of OIDC_ADMIN_ROLE in Keycloak.',
      );
  else if (value.isSet(names[0]) !== value.isSet(names[1]))
    wrong(
      'BOOTSTRAP_ADMIN_EMAIL',
      value.isSet(names[0]) ? `is set, but ${names[1]} is not` : `is not set, but ${names[1]} is`,
      'Set both BOOTSTRAP_ADMIN_EMAIL and BOOTSTRAP_ADMIN_PASSWORD, or neither.',
    );
  return email === null || password === null ? null : { email, password };
}
