import { AppError } from '../../core/errors.ts';
import type { ConfigMistake } from '../../config/config-error.ts';
import type { Listeners } from '../../config/listeners.ts';
import { causesOf, codeOf, fileTrouble, type Words, withoutSecrets } from '../../config/file-trouble.ts';
import { MigrationRefused } from '../../platform/database/migrate.ts';
import { DatabaseUnavailable } from '../../platform/database/database.ts';
import { SigningKeysUnreadable } from '../../features/oidc-provider/signing-keys.ts';
import { KeycloakRefused } from '../../features/keycloak/refused.ts';

/**
 * Explains errors at startup that an operator can fix: the setting, what is wrong with it, and the fix. Pure, so that the
 * whole list can be tested. It never repeats an address, which may contain a password.
 */
export class Blamed extends Error {
  /** The setting, or FILE for a file from the command line. */
  readonly setting: string;
  constructor(setting: string, cause: unknown) {
    super(`${setting} cannot be used.`, { cause });
    this.name = 'Blamed';
    this.setting = setting;
  }
}

/** Adds the setting to any error of `work`. */
export async function blaming<T>(setting: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    // Another process holds the store, or must prepare it first. These errors explain themselves.
    if (isInUse(error) || error instanceof Unprepared) throw error;
    throw new Blamed(setting, error);
  }
}

/** The store responds, but another process must prepare it first: create the tables, or grant the privileges. */
export class Unprepared extends Error {
  readonly mistake: ConfigMistake;
  constructor(mistake: ConfigMistake) {
    super(`${mistake.setting}: ${mistake.problem}.`);
    this.name = 'Unprepared';
    this.mistake = mistake;
  }
}

/** SQLSTATE insufficient_privilege (PostgreSQL appendix A). */
const denied = '42501';

/**
 * Converts an error of a start on a database into one that the process can wait for, where waiting helps. A single
 * workload may have a role that cannot create tables. Then another process migrates, with the role that owns them.
 */
export function databaseTrouble(
  error: unknown,
  { isMigratedByOthers }: { isMigratedByOthers: boolean },
): unknown {
  const refusal = causesOf(error).find((one) => codeOf(one) === denied);
  if (refusal !== undefined && isMigratedByOthers)
    return new Unprepared({
      setting: 'DATABASE_URL',
      problem: `its role lacks a privilege that this version needs (${withoutSecrets(refusal.message)})`,
      fix: 'With the role that owns the tables, run: npm start -- migrate',
    });
  const isAway = error instanceof AppError && error.code === 'store_unavailable';
  return isAway ? new Blamed('DATABASE_URL', error) : error;
}

/** Another Postern process holds the data folder or the database. */
export function isInUse(error: unknown): error is Error {
  return error instanceof Error && (error.name === 'DataDirInUse' || error.name === 'DatabaseInUse');
}

/** Undefined: not a known mistake of the operator. `listeners` are the configured ports. */
export function explainStart(error: unknown, listeners: Listeners | null): ConfigMistake | undefined {
  if (error instanceof Blamed) return explainBlamed(error);
  if (error instanceof KeycloakRefused)
    return { setting: error.setting, problem: error.problem, fix: error.fix };
  if (error instanceof SigningKeysUnreadable)
    return {
      setting: 'ENCRYPTION_KEY',
      problem:
        'does not decrypt this database: another installation uses the database, or the key was replaced',
      fix: 'Give this installation its own database (DATABASE_URL), or the secrets of the other installation. If the key was replaced, append the previous value to the list.',
    };
  return listeners === null ? undefined : explainListen(error, listeners);
}

/**
 * Why a store does not open, when the process should wait for it; null when waiting cannot help and the start fails. The
 * process waits for a store that cannot be reached, and not for one that responds and refuses the settings (decision
 * 0042).
 */
export function awaited(error: unknown): ConfigMistake | null {
  if (error instanceof Unprepared) return error.mistake;
  if (!(error instanceof Blamed) || error.setting === 'DATA_DIR') return null;
  const causes = causesOf(error.cause);
  const isAway = causes.some(
    (one) =>
      one instanceof DatabaseUnavailable || (one instanceof AppError && one.code === 'store_unavailable'),
  );
  const isRefused = causes.some((one) => refusalIn(error.setting, one) !== undefined);
  return isAway && !isRefused ? explainBlamed(error) : null;
}

function explainBlamed({ setting, cause }: Blamed): ConfigMistake {
  if (setting === 'DATA_DIR' || setting === 'FILE') {
    const trouble = fileTrouble(setting, cause);
    if (trouble !== undefined) return trouble;
  }
  const refused = causesOf(cause).find((one) => one instanceof MigrationRefused);
  if (refused !== undefined) return { setting, problem: refused.message, fix: refused.fix };
  const known = causesOf(cause).flatMap((one) => {
    const found = refusalIn(setting, one) ?? absenceIn(setting, one);
    return found === undefined ? [] : [{ one, found }];
  })[0];
  if (known !== undefined) {
    const [problem, fix] = known.found;
    return { setting, problem: `${problem} (${withoutSecrets(known.one.message)})`, fix };
  }
  const last = causesOf(cause).at(-1);
  return {
    setting,
    problem: `cannot be used: ${withoutSecrets(last?.message ?? String(cause))}`,
    fix: unknownFix[setting] ?? 'Fix it, and start again.',
  };
}

const unknownFix: Readonly<Record<string, string>> = {
  DATA_DIR:
    'The embedded database in this folder does not open. Restore the folder from a backup, or choose another folder.',
  DATABASE_URL:
    'Check that the server is PostgreSQL 15 or newer and that psql connects with the same address.',
  KV_URL: 'Check that the server is Redis 7 or Valkey and that redis-cli connects with the same address.',
  OBJECT_STORE_URL:
    'Check that it is the address of a bucket in an S3-compatible store, and check the access key.',
};

/** The server responded and refuses the settings. */
function refusalIn(setting: string, error: Error): Words | undefined {
  const words = { ...certificateWords, ...refusals[setting] };
  return words[codeOf(error)] ?? spokenRefusal(setting, error.message);
}

/** The server did not respond, or is not ready yet. */
function absenceIn(setting: string, error: Error): Words | undefined {
  const words = { ...networkWords, ...absences[setting] };
  return words[codeOf(error)] ?? (late[setting]?.test(error.message) ? networkWords['ETIMEDOUT'] : undefined);
}

const late: Readonly<Record<string, RegExp>> = {
  DATABASE_URL: /timeout|timed out/i,
  KV_URL: /did not answer/,
};

const networkWords: Readonly<Record<string, Words>> = {
  ECONNREFUSED: [
    'no server listens at this address',
    'Start the server, or fix the host and port in the address.',
  ],
  ECONNRESET: [
    'the server closed the connection',
    'Check the port, and check whether the server requires TLS.',
  ],
  ENOTFOUND: [
    'the host name cannot be resolved',
    'Fix the host name, or the DNS configuration of this machine.',
  ],
  EAI_AGAIN: [
    'the DNS lookup of the host name failed',
    'Fix the DNS configuration of this machine, or try again.',
  ],
  ETIMEDOUT: ['the server does not answer', 'Check the host, the port and the firewalls in between.'],
  EHOSTUNREACH: ['the server cannot be reached', 'Check the host, the port and the network in between.'],
  ENETUNREACH: ['the server cannot be reached', 'Check the host, the port and the network in between.'],
  ENOENT: ['the socket does not exist', 'Start the server, or fix the path of its socket.'],
};

const untrusted: Words = [
  'the certificate of the server is not trusted',
  'Start Node with NODE_EXTRA_CA_CERTS set to a PEM file with the certificate of the authority that signed it.',
];
/** OpenSSL's codes for a certificate chain without an authority that Node trusts. */
export const certificateWords: Readonly<Record<string, Words>> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: untrusted,
  SELF_SIGNED_CERT_IN_CHAIN: untrusted,
  UNABLE_TO_GET_ISSUER_CERT: untrusted,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: untrusted,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: untrusted,
};

/** The meaning of a network error code, and the fix; undefined for any other code. */
export const explainNetwork = (code: string): Words | undefined =>
  networkWords[code] ?? certificateWords[code];

/** PostgreSQL's error codes: https://www.postgresql.org/docs/current/errcodes-appendix.html */
const databaseRefusals: Readonly<Record<string, Words>> = {
  '28P01': ['the server refuses the user name or the password', 'Fix them in the address.'],
  '28000': [
    'the server refuses this user',
    'Check the user name, and the entry for this address in pg_hba.conf on the server.',
  ],
  '3D000': [
    'the database does not exist on the server',
    'Create it (createdb), or fix the name in the address.',
  ],
  '42501': [
    'this user lacks a privilege that Postern needs',
    'Make it the owner: ALTER DATABASE name OWNER TO user.',
  ],
};
const databaseAbsences: Readonly<Record<string, Words>> = {
  '53300': ['the server has no free connection', 'Raise its max_connections, or close other connections.'],
  '57P03': ['the server is not ready yet', 'Wait until it accepts connections.'],
};

/** S3's error codes: https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html */
const objectStoreRefusals: Readonly<Record<string, Words>> = {
  NoSuchBucket: ['the bucket does not exist in the store', 'Create it, or fix the name in the address.'],
  InvalidAccessKeyId: ['the store does not know this access key', 'Fix OBJECT_STORE_ACCESS_KEY.'],
  SignatureDoesNotMatch: ['the secret key does not belong to the access key', 'Fix OBJECT_STORE_SECRET_KEY.'],
  AccessDenied: [
    'this key lacks a permission that Postern needs',
    'Allow it to read, write, remove and list objects, and to list and abort multipart uploads, in this bucket.',
  ],
  PermanentRedirect: ['the bucket is at another address', 'Fix the host, or add ?region=… to the address.'],
  AuthorizationHeaderMalformed: ['the bucket is in another region', 'Add ?region=… to the address.'],
};
const objectStoreAbsences: Readonly<Record<string, Words>> = {
  RequestTimeTooSkewed: [
    'the clocks of this machine and the store differ',
    'Set this machine’s clock (NTP).',
  ],
  AbortError: ['the server does not answer', 'Check the host, the port and the firewalls in between.'],
  TimeoutError: ['the server does not answer', 'Check the host, the port and the firewalls in between.'],
};

type WordsOf = Readonly<Record<string, Readonly<Record<string, Words>>>>;
const refusals: WordsOf = { DATABASE_URL: databaseRefusals, OBJECT_STORE_URL: objectStoreRefusals };
const absences: WordsOf = { DATABASE_URL: databaseAbsences, OBJECT_STORE_URL: objectStoreAbsences };

/** Refusals without an error code. */
function spokenRefusal(setting: string, message: string): Words | undefined {
  if (setting === 'DATABASE_URL') {
    if (/password must be a string/i.test(message))
      return ['the server requires a password', 'Write it in the address: postgresql://user:password@host.'];
    if (/does not support SSL/i.test(message))
      return [
        'the server does not support TLS',
        'Remove sslmode from the address, or enable TLS on the server.',
      ];
  }
  if (setting === 'KV_URL') {
    if (message.startsWith('WRONGPASS'))
      return ['the server refuses the user name or the password', 'Fix them in the address.'];
    if (/without any password configured/.test(message))
      return ['the server has no password, but the address has one', 'Remove the password from the address.'];
    if (message.startsWith('NOAUTH'))
      return ['the server requires a password', 'Write it in the address: redis://:password@host:6379.'];
    if (message.startsWith('NOPERM'))
      return ['this user lacks a command that Postern needs', 'Allow the commands (ACL SETUSER … +@all).'];
    if (/maxmemory-policy/.test(message))
      return ['the server may evict data', 'Set its maxmemory-policy to noeviction.'];
  }
  return undefined;
}

function explainListen(error: unknown, listeners: Listeners): ConfigMistake | undefined {
  if (!(error instanceof Error) || !('syscall' in error)) return undefined;
  if (error.syscall === 'getaddrinfo')
    return {
      setting: 'HOST',
      problem: `cannot be resolved (${withoutSecrets(error.message)})`,
      fix: 'Use an IP address.',
    };
  if (error.syscall !== 'listen') return undefined;
  const port = 'port' in error ? error.port : undefined;
  const setting = Object.entries(listeners).find(([, one]) => one === port)?.[0] ?? 'PORT';
  const follows =
    followers[setting] === undefined ? '' : ` ${followers[setting]} uses the same port unless it is set.`;
  switch (codeOf(error)) {
    case 'EADDRINUSE':
      return {
        setting,
        problem: `${String(port)} is used by another program (${withoutSecrets(error.message)})`,
        fix: `Stop that program, or set another port: ${setting}=${examplePorts[setting] ?? 4310} npm start.${follows}`,
      };
    case 'EACCES':
      return {
        setting,
        problem: `this user may not open ${String(port)} (${withoutSecrets(error.message)})`,
        fix: `Choose a port above 1023.${follows}`,
      };
    case 'EADDRNOTAVAIL':
      return {
        setting: 'HOST',
        problem: `is not an address of this machine (${withoutSecrets(error.message)})`,
        fix: 'Use 127.0.0.1, 0.0.0.0 or another address of this machine.',
      };
    default:
      return undefined;
  }
}

const examplePorts: Readonly<Record<string, number>> = {
  PORT: 4310,
  GATEWAY_PORT: 4311,
  METRICS_PORT: 4312,
  ENVIRONMENTS_PORT: 4313,
};

const followers: Readonly<Record<string, string>> = {
  PORT: 'SERVICE_UI_URL',
  GATEWAY_PORT: 'SITES_CONTENT_URL',
};
