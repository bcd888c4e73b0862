import { mkdir, open, readFile, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { Failure, wrongUsage } from '../core/failure.ts';
import type { Io } from '../core/io.ts';
import { systemKeychain } from './keychain.ts';

/**
 * The servers that a person uses, each under a name, with their credentials: one file that only its owner can read. Every
 * change happens under a lock, so that two commands do not lose each other's changes or use one refresh token twice. Where
 * there is a keychain of the system, the file only says that the credential is there.
 */
export type Contexts = {
  /** The name of the one that verbs use. */
  readonly current: string | null;
  readonly servers: Readonly<Record<string, Context>>;
};

export type Context = { readonly origin: string; readonly credential: Credential | null };

export type Credential =
  | { readonly kind: 'key'; readonly key: string }
  /** In the file: it is in the keychain. Elsewhere: it was there, and cannot be read now. */
  | { readonly kind: 'keychain' }
  | {
      readonly kind: 'tokens';
      readonly issuer: string;
      readonly accessToken: string;
      readonly refreshToken: string | null;
      /** Unix milliseconds. */
      readonly expiresAt: number;
    };

export type ContextFile = {
  read(): Promise<Contexts>;
  /** Reads, changes and writes under the lock; returns what `change` returned. */
  update<T>(change: (contexts: Contexts) => Promise<{ contexts: Contexts; result: T }>): Promise<T>;
};

const none: Contexts = { current: null, servers: {} };

/** Longer than a change takes, which sends at most one request. */
const staleLockMs = 60_000;
const attemptEveryMs = 50;

export function contextFile(io: Pick<Io, 'env' | 'wait'>, keychainOf = systemKeychain): ContextFile {
  const folder = configFolder(io.env);
  const file = join(folder ?? '', 'contexts.json');
  const lock = join(folder ?? '', 'contexts.lock');

  async function read(): Promise<Contexts> {
    if (folder === undefined) return none;
    const found = await stat(file).catch(() => undefined);
    if (found === undefined) return none;
    if (process.platform !== 'win32' && (found.mode & 0o077) !== 0)
      throw wrongUsage(`Other users of this machine can read ${file}.`, `Run: chmod 600 ${file}`);
    try {
      return withCredentials(JSON.parse(await readFile(file, 'utf8')), keychainOf);
    } catch {
      throw new Failure('unreadable_contexts', 1, `${file} cannot be read.`, {
        hint: 'Remove the file, and sign in again.',
      });
    }
  }

  async function write(contexts: Contexts): Promise<void> {
    const next = `${file}.${process.pid}`;
    const handle = await open(next, 'w', 0o600);
    await handle.writeFile(`${JSON.stringify(withoutCredentials(contexts, keychainOf), null, 2)}\n`);
    await handle.sync();
    await handle.close();
    await rename(next, file);
  }

  async function acquire(): Promise<void> {
    for (let waited = 0; ; waited += attemptEveryMs) {
      const handle = await open(lock, 'wx', 0o600).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== 'EEXIST') throw error;
      });
      if (handle !== undefined) return await handle.close();
      // A process that was killed leaves its lock behind.
      if (waited >= staleLockMs) await rm(lock, { force: true });
      await io.wait(attemptEveryMs);
    }
  }

  return {
    read,
    async update(change) {
      if (folder === undefined)
        throw wrongUsage('There is no home folder for credentials.', 'Set HOME or XDG_CONFIG_HOME.');
      await mkdir(folder, { recursive: true, mode: 0o700 });
      await acquire();
      try {
        const { contexts, result } = await change(await read());
        await write(contexts);
        return result;
      } finally {
        await rm(lock, { force: true });
      }
    },
  };
}

/** What the file says, with the credentials of the keychain. */
function withCredentials(contexts: Contexts, keychainOf: typeof systemKeychain): Contexts {
  if (!Object.values(contexts.servers).some(({ credential }) => credential?.kind === 'keychain'))
    return contexts;
  const keychain = keychainOf();
  return ofServers(contexts, (name, context) => {
    if (context.credential?.kind !== 'keychain') return context.credential;
    try {
      const text = keychain?.get(entryName(name, context));
      return text === null || text === undefined ? context.credential : JSON.parse(text);
    } catch {
      // The person is asked to sign in again.
      return context.credential;
    }
  });
}

/** What the file says after the credentials went into the keychain; without one, all of it. */
function withoutCredentials(contexts: Contexts, keychainOf: typeof systemKeychain): Contexts {
  const keychain = keychainOf();
  if (keychain === undefined) return contexts;
  return ofServers(contexts, (name, context) => {
    const { credential } = context;
    if (credential?.kind === 'keychain') return credential;
    try {
      if (credential === null) keychain.remove(entryName(name, context));
      else keychain.set(entryName(name, context), JSON.stringify(credential));
      return credential === null ? null : { kind: 'keychain' };
    } catch {
      // A keychain that cannot be used, such as without a desktop, or that had no such entry.
      return credential;
    }
  });
}

function ofServers(
  contexts: Contexts,
  credentialOf: (name: string, context: Context) => Credential | null,
): Contexts {
  const servers = Object.entries(contexts.servers).map(([name, context]) => [
    name,
    { ...context, credential: credentialOf(name, context) },
  ]);
  return { ...contexts, servers: Object.fromEntries(servers) };
}

function entryName(name: string, { origin }: Context): string {
  return `${name} ${origin}`;
}

/** @throws Failure of the code 2 */
export function contextNamed({ servers }: Contexts, name: string): Context {
  const found = Object.hasOwn(servers, name) ? servers[name] : undefined;
  if (found === undefined)
    throw wrongUsage('There is no context of this name.', 'Names: postern context list');
  return found;
}

/** Where the command line keeps what only its user may read; undefined = there is no home folder. */
export function configFolder(env: Io['env']): string | undefined {
  const { APPDATA: ofWindows, XDG_CONFIG_HOME: ofXdg, HOME: home } = env;
  const ofHome = ofXdg || (home ? join(home, '.config') : undefined);
  const base = process.platform === 'win32' ? ofWindows : ofHome;
  return base ? join(base, 'postern') : undefined;
}
