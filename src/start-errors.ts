import type { ConfigMistake } from './config.ts';
import { SigningKeysSealed } from './features/identity/provider/signing-keys.ts';
import { KeycloakRefused } from './features/identity/keycloak/refused.ts';
import { maskKeys } from './core/key-shape.ts';

/**
 * What keeps the program from starting and an operator can mend, in words: the setting, what is wrong with it, what
 * to do. Pure, so that the whole list can be tested. An address is never repeated: it may hold a password.
 */
export class Blamed extends Error {
  /** The setting, or FILE for a file named on the command line. */
  readonly setting: string;
  constructor(setting: string, cause: unknown) {
    super(`${setting} cannot be used.`, { cause });
    this.name = 'Blamed';
    this.setting = setting;
  }
}

/** Whatever `work` rejects with, the setting is told along with it. */
export async function blaming<T>(setting: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    // Held by another process: that is told by its own name.
    if (isInUse(error)) throw error;
    throw new Blamed(setting, error);
  }
}

/** The data folder or the database is held by another process of Postern. */
export function isInUse(error: unknown): error is Error {
  return error instanceof Error && (error.name === 'DataDirInUse' || error.name === 'DatabaseInUse');
}

type Words = readonly [problem: string, fix: string];
type Listeners = Readonly<Record<'PORT' | 'GATEWAY_PORT' | 'METRICS_PORT', number>>;

/** Undefined: not an operator's mistake, as far as we know. `listeners` are the ports of the configuration. */
export function explainStart(error: unknown, listeners: Listeners | null): ConfigMistake | undefined {
  if (error instanceof Blamed) return explainBlamed(error);
  if (error instanceof KeycloakRefused)
    return { setting: error.setting, problem: error.problem, fix: error.fix };
  if (error instanceof SigningKeysSealed)
    return {
      setting: 'ENCRYPTION_KEY',
      problem: 'opens none of the keys that the built-in provider signs with, so nobody could sign in',
      fix: 'Put the value they were made with at the end of the list. It can go when doctor says that nothing is sealed under it.',
    };
  return listeners === null ? undefined : explainListen(error, listeners);
}

function explainBlamed({ setting, cause }: Blamed): ConfigMistake {
  if (setting === 'DATA_DIR' || setting === 'FILE') {
    const trouble = fileTrouble(setting, cause);
    if (trouble !== undefined) return trouble;
  }
  const words = ownWords[setting] ?? {};
  const known = causesOf(cause).flatMap((one) => {
    const found = words[codeOf(one)] ?? networkWords[codeOf(one)] ?? spoken(setting, one.message);
    return found === undefined ? [] : [{ one, found }];
  })[0];
  if (known !== undefined) {
    const [problem, fix] = known.found;
    return { setting, problem: `${problem} (${safe(known.one.message)})`, fix };
  }
  const last = causesOf(cause).at(-1);
  return {
    setting,
    problem: `cannot be used: ${safe(last?.message ?? String(cause))}`,
    fix: unknownFix[setting] ?? 'Mend it, and start again.',
  };
}

const unknownFix: Readonly<Record<string, string>> = {
  DATA_DIR:
    'The embedded database in it does not open. Put back a copy of the folder, or choose another one.',
  DATABASE_URL:
    'Check that the server is PostgreSQL 15 or newer and that psql connects with the same address.',
  KV_URL: 'Check that the server is Redis 7 or Valkey and that redis-cli connects with the same address.',
  OBJECT_STORE_URL: 'Check that it is the address of a bucket of an S3-compatible store, and the key for it.',
};

const networkWords: Readonly<Record<string, Words>> = {
  ECONNREFUSED: ['nobody listens at its address', 'Start the server, or mend host and port.'],
  ECONNRESET: ['the server hung up', 'Check that the port is the right one and whether it wants TLS.'],
  ENOTFOUND: ['its host name is not known', 'Mend the host, or the name service of this machine.'],
  EAI_AGAIN: ['its host name cannot be looked up', 'Mend the name service of this machine, or try again.'],
  ETIMEDOUT: ['its server does not answer', 'Check host and port, and the firewalls between.'],
  EHOSTUNREACH: ['its server cannot be reached', 'Check host and port, and the network between.'],
  ENETUNREACH: ['its server cannot be reached', 'Check host and port, and the network between.'],
  ENOENT: ['there is no such socket', 'Start the server, or mend the path of its socket.'],
  DEPTH_ZERO_SELF_SIGNED_CERT: [
    'the certificate of the server is not trusted',
    'Start Node with NODE_EXTRA_CA_CERTS set to the authority that signed it.',
  ],
  SELF_SIGNED_CERT_IN_CHAIN: [
    'the certificate of the server is not trusted',
    'Start Node with NODE_EXTRA_CA_CERTS set to the authority that signed it.',
  ],
};

/** PostgreSQL's own codes: https://www.postgresql.org/docs/current/errcodes-appendix.html */
const databaseWords: Readonly<Record<string, Words>> = {
  '28P01': ['the server refuses the user name or the password', 'Mend them in the address.'],
  '28000': [
    'the server does not let this user in',
    'Check the user name, and what pg_hba.conf of the server says about this address.',
  ],
  '3D000': ['the server has no such database', 'Create it (createdb), or mend the name in the address.'],
  '42501': [
    'this user may not do there what is needed',
    'Make it the owner: ALTER DATABASE name OWNER TO user.',
  ],
  '53300': ['the server has no connection left', 'Raise its max_connections, or end other clients.'],
  '57P03': ['the server is not ready yet', 'Wait until it accepts connections, and start again.'],
};

/** S3's own codes: https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html */
const objectStoreWords: Readonly<Record<string, Words>> = {
  NoSuchBucket: ['the store has no such bucket', 'Create it, or mend the name in the address.'],
  InvalidAccessKeyId: ['the store does not know this access key', 'Mend OBJECT_STORE_ACCESS_KEY.'],
  SignatureDoesNotMatch: ['the secret key is not that of the access key', 'Mend OBJECT_STORE_SECRET_KEY.'],
  AccessDenied: [
    'this key may not do there what is needed',
    'Let it read, write, remove and list objects, and list and abort multipart uploads, in this bucket.',
  ],
  PermanentRedirect: ['the bucket is at another address', 'Mend the host, or add ?region=… to the address.'],
  AuthorizationHeaderMalformed: ['the bucket is in another region', 'Add ?region=… to the address.'],
  RequestTimeTooSkewed: [
    'the clocks of this machine and the store differ',
    'Set this machine’s clock (NTP).',
  ],
  AbortError: ['its server does not answer', 'Check host and port, and the firewalls between.'],
  TimeoutError: ['its server does not answer', 'Check host and port, and the firewalls between.'],
};

const ownWords: Readonly<Record<string, Readonly<Record<string, Words>>>> = {
  DATABASE_URL: databaseWords,
  OBJECT_STORE_URL: objectStoreWords,
};

/** Refusals that have no code. */
function spoken(setting: string, message: string): Words | undefined {
  if (setting === 'DATABASE_URL') {
    if (/password must be a string/i.test(message))
      return ['the server wants a password', 'Write it into the address: postgresql://user:password@host.'];
    if (/timeout|timed out/i.test(message)) return networkWords['ETIMEDOUT'];
    if (/does not support SSL/i.test(message))
      return ['the server does not speak TLS', 'Leave sslmode out of the address, or turn TLS on there.'];
  }
  if (setting === 'KV_URL') {
    if (message.startsWith('WRONGPASS'))
      return ['the server refuses the user name or the password', 'Mend them in the address.'];
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
    if (/did not answer/.test(message)) return networkWords['ETIMEDOUT'];
  }
  return undefined;
}

const fileWords: Readonly<Record<string, Words>> = {
  EACCES: [
    'this user may not read and write there',
    'Give the user of this process the folder and all in it.',
  ],
  EPERM: ['this user may not do that there', 'Give the user of this process the folder and all in it.'],
  EROFS: ['lies on a file system that is read-only', 'Choose a folder that can be written.'],
  ENOSPC: ['lies on a disk that is full', 'Make room on it.'],
  EDQUOT: ['lies on a disk whose quota is used up', 'Make room on it.'],
  ENOTDIR: ['leads through a file as if it were a folder', 'Mend the path.'],
  EEXIST: ['is a file, and should be a folder', 'Choose a folder.'],
  ELOOP: ['leads in a circle of links', 'Mend the links.'],
  ENAMETOOLONG: ['is too long a path', 'Choose a shorter one.'],
  ENOENT: ['lacks a file that should be there', 'Choose a folder, or put back a copy of it.'],
};

const namedFileWords: Readonly<Record<string, Words>> = {
  ENOENT: ['there is no such file', 'Mend the path; it counts from the folder that package.json is in.'],
  EISDIR: ['is a folder', 'Name the file itself.'],
  ENOTDIR: ['leads through a file as if it were a folder', 'Mend the path.'],
  EACCES: ['this user may not read it', 'Give the user of this process the right to.'],
};

/** What is wrong with a file or a folder; undefined when the error is not of the file system. */
export function fileTrouble(setting: string, error: unknown): ConfigMistake | undefined {
  const words = setting === 'FILE' ? namedFileWords : fileWords;
  for (const one of causesOf(error)) {
    const found = words[codeOf(one)];
    if (found) return { setting, problem: `${found[0]} (${safe(one.message)})`, fix: found[1] };
  }
  return undefined;
}

function explainListen(error: unknown, listeners: Listeners): ConfigMistake | undefined {
  if (!(error instanceof Error) || !('syscall' in error)) return undefined;
  if (error.syscall === 'getaddrinfo')
    return { setting: 'HOST', problem: `is not known (${safe(error.message)})`, fix: 'Give an IP address.' };
  if (error.syscall !== 'listen') return undefined;
  const port = 'port' in error ? error.port : undefined;
  const setting = Object.entries(listeners).find(([, one]) => one === port)?.[0] ?? 'PORT';
  const follows = followers[setting] === undefined ? '' : ` ${followers[setting]} follows it while unset.`;
  switch (codeOf(error)) {
    case 'EADDRINUSE':
      return {
        setting,
        problem: `${String(port)} is used by another program (${safe(error.message)})`,
        fix: `Stop that program, or choose another port.${follows}`,
      };
    case 'EACCES':
      return {
        setting,
        problem: `${String(port)} may not be opened by this user (${safe(error.message)})`,
        fix: `Choose a port above 1023.${follows}`,
      };
    case 'EADDRNOTAVAIL':
      return {
        setting: 'HOST',
        problem: `is not an address of this machine (${safe(error.message)})`,
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

/** The error and what caused it, outermost first; of several attempts (IPv6, IPv4) each. */
function causesOf(error: unknown): Error[] {
  if (!(error instanceof Error)) return [];
  const attempts = error instanceof AggregateError ? error.errors : [];
  return [error, ...attempts.flatMap(causesOf), ...causesOf(error.cause)].filter(
    (one) => one.message !== '' || codeOf(one) !== '',
  );
}

function codeOf(error: Error): string {
  return 'code' in error && typeof error.code === 'string' ? error.code : '';
}

/** One line, without keys and without what stands before an @ in an address. */
function safe(text: string): string {
  return maskKeys(text.replaceAll(/\/\/[^\s/]*@/g, '//…@').replaceAll(/\s+/g, ' ')).trim();
}
