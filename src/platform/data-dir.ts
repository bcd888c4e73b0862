import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
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
 *
 * Whoever wants the folder lays a claim into it, a file of its own that names the process, and then looks at the
 * other claims. Two that want it at once cannot both overlook the other: the later claim finds the earlier. A claim
 * of a process that is gone is removed; its name is never used again, so nobody else's can be removed by mistake.
 * The one that is left alone with its claim holds the folder, and the file `lock` says so to people.
 *
 * A process listens on a socket in the folder for as long as it lives: whoever sees the folder can ask, also from
 * another container, where process ids and host names mean nothing. A folder shared between machines over a network
 * is not supported.
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

export type Holder = {
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

/** Milliseconds between two looks at the claims of others that want the folder too. */
const lookAgainMs = 20;
/** A process that wants the folder knows within milliseconds whether it has it; one that is stopped may never. */
const patienceMs = 5_000;

/** @throws DataDirInUse naming the holder */
export async function lockDataDir(folder: string): Promise<DataDirLock> {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const lock = join(folder, 'lock');
  const token = randomUUID();
  const mine = join(folder, `lock.${token}`);
  // It listens before it claims: nobody can find the claim and nobody behind it.
  const life = await showLife(folder, `lock.${token}.sock`);
  const me: Holder = {
    pid: process.pid,
    started: startOf(process.pid),
    host: hostname(),
    since: new Date().toISOString(),
    token,
    socket: life === null ? null : `lock.${token}.sock`,
  };
  const leave = () => {
    rmSync(mine, { force: true });
    life?.end();
  };
  try {
    writeWhole(mine, me);
    await untilAlone(folder, token);
    writeWhole(lock, me);
  } catch (error) {
    leave();
    throw error;
  }
  return {
    release() {
      if (readHolder(lock)?.token === token) rmSync(lock, { force: true });
      leave();
    },
  };
}

/** Who has the folder now; undefined when nobody has. Asks, and claims nothing. */
export async function holderOf(folder: string): Promise<Holder | undefined> {
  const holder = readHolder(join(folder, 'lock'));
  return holder !== undefined && (await isAlive(folder, holder)) ? holder : undefined;
}

/**
 * Returns when no other claim of a living process is left. Of several that want the folder at once the smallest token
 * waits and the others go, so that one of them gets it.
 */
async function untilAlone(folder: string, token: string): Promise<void> {
  const begun = performance.now();
  for (;;) {
    const holder = readHolder(join(folder, 'lock'));
    if (holder !== undefined && (await isAlive(folder, holder))) throw new DataDirInUse(folder, holder);
    const others = await livingClaims(folder, token);
    const [other] = others;
    if (other === undefined) {
      if (holder?.socket) rmSync(join(folder, holder.socket), { force: true });
      return;
    }
    const smaller = others.find((one) => one.token < token);
    if (smaller !== undefined) throw new DataDirInUse(folder, smaller);
    if (performance.now() - begun > patienceMs) throw new DataDirInUse(folder, other);
    await new Promise((resolve) => setTimeout(resolve, lookAgainMs));
  }
}

/** The claims of others. Those of processes that are gone are removed on the way. */
async function livingClaims(folder: string, token: string): Promise<Holder[]> {
  const living: Holder[] = [];
  for (const name of readdirSync(folder)) {
    if (!/^lock\.[\w-]+$/.test(name) || name === `lock.${token}`) continue;
    const claim = readHolder(join(folder, name));
    if (claim !== undefined && (await isAlive(folder, claim))) {
      living.push(claim);
      continue;
    }
    // A claim has its name only while it is whole: one that cannot be parsed was left by a power failure.
    rmSync(join(folder, name), { force: true });
    if (claim?.socket) rmSync(join(folder, claim.socket), { force: true });
  }
  return living;
}

/** A reader finds all of it or nothing: rename() gives a file its name at once. */
function writeWhole(path: string, holder: Holder): void {
  const aside = `${path}.${holder.token}.new`;
  writeFileSync(aside, JSON.stringify(holder), { mode: 0o600 });
  renameSync(aside, path);
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

function readHolder(path: string): Holder | undefined {
  try {
    const read = JSON.parse(readFileSync(path, 'utf8')) as Holder;
    // It becomes part of a path.
    return { ...read, socket: /^lock\.[\w-]+\.sock$/.test(read.socket ?? '') ? read.socket : null };
  } catch (error) {
    // Missing or cut short: nobody we could name holds it. One that may not be read is somebody's.
    if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
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

/** Whether a database was made in this folder. */
export function hasDatabase(dataDir: string): boolean {
  return existsSync(join(dataDir, 'database', 'PG_VERSION'));
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
  if (hasDatabase(dataDir)) return folder;
  const aside = join(dataDir, 'database.new');
  rmSync(aside, { recursive: true, force: true });
  mkdirSync(aside, { recursive: true, mode: 0o700 });
  await create(aside);
  rmSync(folder, { recursive: true, force: true });
  renameSync(aside, folder);
  return folder;
}
