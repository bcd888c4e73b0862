import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import {
  closeSync,
  existsSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { connect, createServer } from 'node:net';
import { hostname } from 'node:os';
import { join } from 'node:path';

/**
 * The folder of the embedded parts. PGlite does not lock it and a second open corrupts it (decision 0002), so we do.
 * A lock file names its holder, and the holder listens on a socket in the folder for as long as it lives: whoever
 * sees the folder can ask, also from another container, where process ids and host names mean nothing. A folder
 * shared between machines over a network is not supported.
 */
export class DataDirInUse extends Error {
  constructor(folder: string, holder: Holder) {
    super(
      `${folder} is in use by process ${holder.pid} on ${holder.host} since ${holder.since}. ` +
        'Stop that process, or choose another folder with DATA_DIR.',
    );
    this.name = 'DataDirInUse';
  }
}

type Holder = {
  readonly pid: number;
  readonly started: string;
  readonly host: string;
  readonly since: string;
  /** Tells this holder from every other one. */
  readonly token: string;
  /** Null: the file system has no sockets, and the process id has to do. */
  readonly socket: string | null;
};

export type DataDirLock = { release(): void };

/** @throws DataDirInUse naming the holder */
export async function lockDataDir(folder: string): Promise<DataDirLock> {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const lock = join(folder, 'lock');
  const token = randomUUID();
  const mine = join(folder, `lock.${token}`);
  // It listens before the lock has its name: nobody can find the lock and nobody behind it.
  const life = await showLife(folder, `lock.${token}.sock`);
  const me: Holder = {
    pid: process.pid,
    started: startOf(process.pid),
    host: hostname(),
    since: new Date().toISOString(),
    token,
    socket: life === null ? null : `lock.${token}.sock`,
  };
  try {
    writeFileSync(mine, JSON.stringify(me), { mode: 0o600 });
    if (!tryLink(mine, lock)) await takeOver(folder, lock, mine);
  } catch (error) {
    life?.end();
    throw error;
  } finally {
    rmSync(mine, { force: true });
  }
  return {
    release() {
      if (readHolder(lock)?.token === token) rmSync(lock, { force: true });
      life?.end();
    },
  };
}

/** Replaces the lock of a holder that is gone. One process at a time, and only if the lock is still that holder's. */
async function takeOver(folder: string, lock: string, mine: string): Promise<void> {
  const guard = join(folder, 'lock.takeover');
  const holder = readHolder(lock);
  if (holder !== undefined && (await isAlive(folder, holder))) throw new DataDirInUse(folder, holder);
  if (!tryLink(mine, guard)) {
    const other = readHolder(guard);
    if (other !== undefined && (await isAlive(folder, other))) throw new DataDirInUse(folder, other);
    rmSync(guard, { force: true });
    if (!tryLink(mine, guard))
      throw new Error(`${folder} is being taken over by another process; try again.`);
  }
  try {
    const now = readHolder(lock);
    if (now !== undefined && (await isAlive(folder, now))) throw new DataDirInUse(folder, now);
    rmSync(lock, { force: true });
    if (!tryLink(mine, lock)) throw new Error(`${folder} was taken by another process; try again.`);
    if (now?.socket) rmSync(join(folder, now.socket), { force: true });
  } finally {
    rmSync(guard, { force: true });
  }
}

/** Listens until end(), without keeping the process. Null where the file system has no sockets. */
async function showLife(folder: string, name: string): Promise<{ end(): void } | null> {
  const at = addressOf(folder, name);
  const server = createServer((asking) => asking.destroy()).listen(at.path);
  try {
    await once(server, 'listening');
  } catch {
    at.close();
    return null;
  }
  server.unref();
  return {
    end() {
      // Removes the socket's file too, by the address it was made with.
      server.close();
      at.close();
    },
  };
}

/** True when somebody listens there. */
async function answers(folder: string, name: string): Promise<boolean> {
  const at = addressOf(folder, name);
  const asking = connect(at.path);
  try {
    await once(asking, 'connect');
    return true;
  } catch (error) {
    // Nobody listens, or there is no such socket. Any other failure proves nothing: somebody may be there.
    const { code } = error as NodeJS.ErrnoException;
    return code !== 'ECONNREFUSED' && code !== 'ENOENT';
  } finally {
    asking.destroy();
    at.close();
  }
}

/** Longest path of a socket on macOS, in bytes; Linux takes four more (unix(7)). */
const longestSocketPath = 103;

/** How a socket in the folder is reached; close() when it is not needed any longer. */
function addressOf(folder: string, name: string): { readonly path: string; close(): void } {
  const nothing = () => undefined;
  // Sockets have no files there; the name holds a random part.
  if (process.platform === 'win32') return { path: `\\\\.\\pipe\\postern-${name}`, close: nothing };
  const path = join(folder, name);
  if (Buffer.byteLength(path) <= longestSocketPath) return { path, close: nothing };
  if (!existsSync('/proc/self/fd'))
    throw new Error(`${folder} is too long a path for a socket in it. Choose a shorter one with DATA_DIR.`);
  const descriptor = openSync(folder, 'r');
  return { path: `/proc/self/fd/${descriptor}/${name}`, close: () => closeSync(descriptor) };
}

/** link() is the one file operation that creates a name with its content at once, and fails when it exists. */
function tryLink(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

function readHolder(path: string): Holder | undefined {
  try {
    const read = JSON.parse(readFileSync(path, 'utf8')) as Holder;
    // It becomes part of a path.
    return { ...read, socket: /^lock\.[\w-]+\.sock$/.test(read.socket ?? '') ? read.socket : null };
  } catch {
    // Missing or cut short: nobody we could name holds it.
    return undefined;
  }
}

async function isAlive(folder: string, holder: Holder): Promise<boolean> {
  if (holder.socket !== null) return await answers(folder, holder.socket);
  // A process on another host cannot be asked, so its lock is believed.
  if (holder.host !== hostname()) return true;
  try {
    process.kill(holder.pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;
  }
  return holder.started === '' || startOf(holder.pid) === holder.started;
}

/** When a process started, in clock ticks since boot (proc(5) stat, field 22); empty where there is no /proc. */
function startOf(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? '';
  } catch {
    return '';
  }
}

/**
 * Where the embedded database lives. On the first start it is made aside and renamed when whole, so that a start
 * that was interrupted leaves nothing half-made behind.
 */
export async function ensureDatabaseFolder(
  dataDir: string,
  create: (folder: string) => Promise<void>,
): Promise<string> {
  const folder = join(dataDir, 'database');
  if (existsSync(join(folder, 'PG_VERSION'))) return folder;
  const aside = join(dataDir, 'database.new');
  rmSync(aside, { recursive: true, force: true });
  mkdirSync(aside, { recursive: true, mode: 0o700 });
  await create(aside);
  rmSync(folder, { recursive: true, force: true });
  renameSync(aside, folder);
  return folder;
}
