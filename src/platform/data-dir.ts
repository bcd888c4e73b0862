import { randomUUID } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { answers, showLife } from './sign-of-life.ts';

/**
 * Locks the folder of the embedded backends. PGlite does not lock it, and a second open corrupts it (decision 0002).
 *
 * A process that wants the folder writes a claim, a file that names the process, and then reads the other claims. Two
 * processes cannot miss each other: the later claim finds the earlier. A claim of an ended process is removed; its name
 * is never reused, so no other claim can be removed by mistake. The process whose claim is the only one left holds the
 * folder. It writes the file `lock`, for people to read.
 *
 * The process listens on a socket in the folder as long as it runs (sign-of-life.ts). A folder shared between machines
 * over a network is not supported.
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
  /** Distinguishes this holder from every other one. */
  readonly token: string;
  /** Null: the file system has no sockets, and the process id is used instead. */
  readonly socket: string | null;
};

export type DataDirLock = { release(): void };

/** Milliseconds between two reads of the other claims. */
const lookAgainMs = 20;
/**
 * Fails after this time. A process gets the folder or an error within milliseconds, unless another claimant is
 * suspended.
 */
const patienceMs = 5_000;

/** @throws DataDirInUse naming the holder */
export async function lockDataDir(folder: string): Promise<DataDirLock> {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const lock = join(folder, 'lock');
  const token = randomUUID();
  const mine = join(folder, `lock.${token}`);
  // Listen before the claim: otherwise another process could find the claim without a listener and remove it.
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

/** The current holder of the folder; undefined when there is none. Makes no claim. */
export async function holderOf(folder: string): Promise<Holder | undefined> {
  const holder = readHolder(join(folder, 'lock'));
  return holder !== undefined && (await isAlive(folder, holder)) ? holder : undefined;
}

/**
 * Returns when no other claim of a living process is left. Among several claimants, the one with the smallest token
 * waits and the others fail, so that one of them gets the folder.
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

/** The claims of other living processes. Removes those of ended processes. */
async function livingClaims(folder: string, token: string): Promise<Holder[]> {
  const living: Holder[] = [];
  for (const name of readdirSync(folder)) {
    if (!/^lock\.[\w-]+$/.test(name) || name === `lock.${token}`) continue;
    const claim = readHolder(join(folder, name));
    if (claim !== undefined && (await isAlive(folder, claim))) {
      living.push(claim);
      continue;
    }
    // A claim gets its name only when it is complete. One that cannot be parsed was left by a power failure.
    rmSync(join(folder, name), { force: true });
    if (claim?.socket) rmSync(join(folder, claim.socket), { force: true });
  }
  return living;
}

/** rename() is atomic, so a reader finds the complete file or none. */
function writeWhole(path: string, holder: Holder): void {
  const staging = `${path}.${holder.token}.new`;
  writeFileSync(staging, JSON.stringify(holder), { mode: 0o600 });
  renameSync(staging, path);
}

function readHolder(path: string): Holder | undefined {
  try {
    const read = JSON.parse(readFileSync(path, 'utf8')) as Holder;
    // The name becomes part of a path.
    return { ...read, socket: /^lock\.[\w-]+\.sock$/.test(read.socket ?? '') ? read.socket : null };
  } catch (error) {
    // Missing or incomplete: it names no holder. A file that cannot be read for another reason still belongs to someone.
    if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

async function isAlive(folder: string, holder: Holder): Promise<boolean> {
  if (holder.socket !== null) return await answers(folder, holder.socket);
  // A process on another host cannot be checked, so its lock counts as held.
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
 * Returns the folder of the embedded database. The first start creates it under a temporary name and renames it when it
 * is complete, so that an interrupted start leaves no partial database.
 */
export async function ensureDatabaseFolder(
  dataDir: string,
  create: (folder: string) => Promise<void>,
): Promise<string> {
  const folder = join(dataDir, 'database');
  if (hasDatabase(dataDir)) return folder;
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  for (const left of readdirSync(dataDir).filter((name) => name.startsWith('database.new')))
    rmSync(join(dataDir, left), { recursive: true, force: true, maxRetries: 5 });
  // A unique name (mode 0700): an interrupted start may still write for a moment, and must not write here.
  const staging = mkdtempSync(join(dataDir, 'database.new-'));
  await create(staging);
  rmSync(folder, { recursive: true, force: true });
  renameSync(staging, folder);
  return folder;
}
