import { AppError } from '../core/errors.ts';
import type { ConfigMistake } from '../config/config-error.ts';
import { causesOf, codeOf, fileTrouble, type Words, withoutSecrets } from '../config/file-trouble.ts';
import { DatabaseUnavailable } from '../platform/database/database.ts';
import { SigningKeysUnreadable } from '../features/identity/provider/signing-keys.ts';
import { KeycloakRefused } from '../features/identity/keycloak/refused.ts';

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
    super(`${mistake.setting} ${mistake.problem}.`);
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
      problem: `its role may not do what this version needs (${withoutSecrets(refusal.message)})`,
      fix: 'With the role that owns the tables, run: npm start -- migrate',
    });
  const isAway = error instanceof AppError && error.code === 'store_unavailable';
  return isAway ? new Blamed('DATABASE_URL', error) : error;
}

/** Another Postern process holds the data folder or the database. */
export function isInUse(error: unknown): error is Error {
  return error instanceof Error && (error.name === 'DataDirInUse' || error.name === 'DatabaseInUse');
}

type Listeners = Readonly<Record<'PORT' | 'GATEWAY_PORT' | 'METRICS_PORT', number>>;

/** Undefined: not a known mistake of the operator. `listeners` are the configured ports. */
export function explainStart(error: unknown, listeners: Listeners | null): ConfigMistake | undefined {
  if (error instanceof Blamed) return explainBlamed(error);
  if (error instanceof KeycloakRefused)
    return { setting: error.setting, problem: error.problem, fix: error.fix };
  if (error instanceof SigningKeysUnreadable)
    return {
      setting: 'ENCRYPTION_KEY',
      problem:
        'is not the one that this database was used with: another installation uses it, or the key was replaced',
      fix: 'Give this installation a database of its own (DATABASE_URL), or the secrets of the other one. Was the key replaced? Put the value of before at the end of the list.',
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
    'The embedded database in it does not open. Restore the folder from a copy, or choose another one.',
  DATABASE_URL:
    'Check that the server is PostgreSQL 15 or newer and that psql connects with the same address.',
  KV_URL: 'Check that the server is Redis 7 or Valkey and that redis-cli connects with the same address.',
  OBJECT_STORE_URL: 'Check that it is the address of a bucket of an S3-compatible store, and the key for it.',
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
  ECONNREFUSED: ['nobody listens at its address', 'Start the server, or fix host and port.'],
  ECONNRESET: ['the server hung up', 'Check that the port is the right one and whether it wants TLS.'],
  ENOTFOUND: ['its host name is not known', 'Fix the host, or the name service of this machine.'],
  EAI_AGAIN: ['its host name cannot be looked up', 'Fix the name service of this machine, or try again.'],
  ETIMEDOUT: ['its server does not answer', 'Check host and port, and the firewalls between.'],
  EHOSTUNREACH: ['its server cannot be reached', 'Check host and port, and the network between.'],
  ENETUNREACH: ['its server cannot be reached', 'Check host and port, and the network between.'],
  ENOENT: ['there is no such socket', 'Start the server, or fix the path of its socket.'],
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
    'the server does not let this user in',
    'Check the user name, and what pg_hba.conf of the server says about this address.',
  ],
  '3D000': ['the server has no such database', 'Create it (createdb), or fix the name in the address.'],
  '42501': [
    'this user may not do there what is needed',
    'Make it the owner: ALTER DATABASE name OWNER TO user.',
  ],
};
const databaseAbsences: Readonly<Record<string, Words>> = {
  '53300': ['the server has no connection left', 'Raise its max_connections, or end other clients.'],
  '57P03': ['the server is not ready yet', 'Wait until it accepts connections.'],
};

/** S3's error codes: https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html */
const objectStoreRefusals: Readonly<Record<string, Words>> = {
  NoSuchBucket: ['the store has no such bucket', 'Create it, or fix the name in the address.'],
  InvalidAccessKeyId: ['the store does not know this access key', 'Fix OBJECT_STORE_ACCESS_KEY.'],
  SignatureDoesNotMatch: ['the secret key is not that of the access key', 'Fix OBJECT_STORE_SECRET_KEY.'],
  AccessDenied: [
    'this key may not do there what is needed',
    'Let it read, write, remove and list objects, and list and abort multipart uploads, in this bucket.',
  ],
  PermanentRedirect: ['the bucket is at another address', 'Fix the host, or add ?region=… to the address.'],
  AuthorizationHeaderMalformed: ['the bucket is in another region', 'Add ?region=… to the address.'],
};
const objectStoreAbsences: Readonly<Record<string, Words>> = {
  RequestTimeTooSkewed: [
    'the clocks of this machine and the store differ',
    'Set this machine’s clock (NTP).',
  ],
  AbortError: ['its server does not answer', 'Check host and port, and the firewalls between.'],
  TimeoutError: ['its server does not answer', 'Check host and port, and the firewalls between.'],
};

type WordsOf = Readonly<Record<string, Readonly<Record<string, Words>>>>;
const refusals: WordsOf = { DATABASE_URL: databaseRefusals, OBJECT_STORE_URL: objectStoreRefusals };
const absences: WordsOf = { DATABASE_URL: databaseAbsences, OBJECT_STORE_URL: objectStoreAbsences };

/** Refusals without an error code. */
function spokenRefusal(setting: string, message: string): Words | undefined {
  if (setting === 'DATABASE_URL') {
    if (/password must be a string/i.test(message))
      return ['the server wants a password', 'Write it into the address: postgresql://user:password@host.'];
    if (/does not support SSL/i.test(message))
      return ['the server does not speak TLS', 'Leave sslmode out of the address, or turn TLS on there.'];
  }
  if (setting === 'KV_URL') {
    if (message.startsWith('WRONGPASS'))
      return ['the server refuses the user name or the password', 'Fix them in the address.'];
    if (/without any password configured/.test(message))
      return [
        'the server has no password, and the address gives one',
        'Leave the password out of the address.',
      ];
    if (message.startsWith('NOAUTH'))
      return ['the server wants a password', 'Write it into the address: redis://:password@host:6379.'];
    if (message.startsWith('NOPERM'))
      return ['this user may not do there what is needed', 'Give it the commands (ACL SETUSER … +@all).'];
    if (/maxmemory-policy/.test(message))
      return ['the server may forget what it is told', 'Set its maxmemory-policy to noeviction.'];
  }
  return undefined;
}

function explainListen(error: unknown, listeners: Listeners): ConfigMistake | undefined {
  if (!(error instanceof Error) || !('syscall' in error)) return undefined;
  if (error.syscall === 'getaddrinfo')
    return {
      setting: 'HOST',
      problem: `is not known (${withoutSecrets(error.message)})`,
      fix: 'Give an IP address.',
    };
  if (error.syscall !== 'listen') return undefined;
  const port = 'port' in error ? error.port : undefined;
  const setting = Object.entries(listeners).find(([, one]) => one === port)?.[0] ?? 'PORT';
  const follows = followers[setting] === undefined ? '' : ` ${followers[setting]} follows it while unset.`;
  switch (codeOf(error)) {
    case 'EADDRINUSE':
      return {
        setting,
        problem: `${String(port)} is used by another program (${withoutSecrets(error.message)})`,
        fix: `Stop that program, or choose another port.${follows}`,
      };
    case 'EACCES':
      return {
        setting,
        problem: `${String(port)} may not be opened by this user (${withoutSecrets(error.message)})`,
        fix: `Choose a port above 1023.${follows}`,
      };
    case 'EADDRNOTAVAIL':
      return {
        setting: 'HOST',
        problem: `is not an address of this machine (${withoutSecrets(error.message)})`,
        fix: 'Use 127.0.0.1, 0.0.0.0 or an address that this machine has.',
      };
    default:
      return undefined;
  }
}

const followers: Readonly<Record<string, string>> = {
  PORT: 'SERVICE_UI_URL',
  GATEWAY_PORT: 'SITES_CONTENT_URL',
};
