import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { hasEnded, processesWith } from '../../../platform/processes.ts';
import { EngineUnavailable } from '../contract.ts';
import { readJson, writeJson } from './json-files.ts';
import { endMarked, type Mark, pipeOf, slirpDevices, slirpOptions, variableOf } from './run-command.ts';
import { relaySocket, spawnRelay } from './relay.ts';
import { asTenant, giveToTenant, tenantUser } from './tenant.ts';

/**
 * The network namespace of one Environment. An idle process holds it; slirp4netns(1) connects it to the outside, but not to this
 * machine. Either process ends with the other. Both outlive this process, and so does the relay, which is the only way in.
 */
export type EnvironmentNetwork = {
  /** Returns the process that holds the namespace. Creates the network if none exists. Rejects with EngineUnavailable. */
  open(): Promise<number>;
  /** Adopts the network that an earlier process created. */
  adopt(): Promise<void>;
  /** Path of the socket through which Postern reaches ports inside (relay.ts). */
  readonly socket: string;
  /** Restarts the relay if it has ended. Rejects with EngineUnavailable. */
  relay(): Promise<void>;
  close(): Promise<void>;
};

/** Arguments that start a program in a new network. */
const unshared = ['unshare', '--user', '--net', '--map-user=1000', '--map-group=1000', '--'];
/** The holder waits on file 5, a socket whose other end slirp4netns has. */
const hold = 'echo >&5; read -r end <&5';

export function createNetwork(deps: {
  /** Folder that only this network uses. */
  readonly folder: string;
  readonly searchPath: string;
}): EnvironmentNetwork {
  const { folder } = deps;
  const mark: Mark = ['POSTERN_NETWORK', folder];
  const env = { ...variableOf(mark), PATH: deps.searchPath };
  const record = join(folder, 'network.json');
  const socketFolder = join(folder, 'socket');
  let holder: number | undefined;
  let opening: Promise<number> | undefined;
  let relay: number | undefined;
  let starting: Promise<void> | undefined;

  async function openNew(): Promise<number> {
    await endMarked(mark);
    relay = undefined;
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await rm(socketFolder, { recursive: true, force: true });
    await mkdir(socketFolder, { mode: 0o700 });
    await giveToTenant(socketFolder);
    const [program = '', ...words] = asTenant([...unshared, '/bin/sh', '-c', hold]);
    const waiting = spawn(program, words, {
      cwd: '/',
      env,
      stdio: ['ignore', 'ignore', 'ignore', 'ignore', 'ignore', 'pipe'],
      detached: true,
    });
    const shared = pipeOf(waiting, 5);
    await firstOf(shared, waiting, 'unshare');
    // The pid is undefined only if the process did not start.
    const pid = waiting.pid ?? 0;
    shared.pause();
    const [forwarder = '', ...options] = asTenant(
      ['slirp4netns', ...slirpOptions, String(pid), 'tap0'],
      slirpDevices,
    );
    const slirp = spawn(forwarder, options, {
      cwd: '/',
      env,
      stdio: ['ignore', 'ignore', 'ignore', 'pipe', shared],
      detached: true,
    });
    try {
      await firstOf(pipeOf(slirp, 3), slirp, 'slirp4netns');
    } finally {
      pipeOf(slirp, 3).destroy();
      shared.destroy();
      waiting.unref();
      slirp.unref();
    }
    writeJson(record, { holder: pid, relay: null });
    return pid;
  }

  async function startRelay(pid: number): Promise<void> {
    const child = spawnRelay(socketFolder, pid, env);
    try {
      await firstOf(pipeOf(child, 3), child, 'The relay');
    } finally {
      pipeOf(child, 3).destroy();
      child.unref();
    }
    relay = child.pid;
    writeJson(record, { holder: pid, relay });
  }

  async function openOnce(): Promise<number> {
    if (holder === undefined || (await hasEnded(holder))) holder = await openNew();
    return holder;
  }

  return {
    async open() {
      try {
        return await (opening ??= openOnce());
      } finally {
        opening = undefined;
      }
    },

    async adopt() {
      const known = await readJson<{ holder: number; relay?: number | null }>(record);
      // An earlier version forwarded ports of this machine. Its network is replaced.
      if (known?.relay === undefined) return;
      const found = await processesWith(...mark);
      if (!found.includes(known.holder)) return;
      // An earlier version created the network as root, so no sandbox can enter it.
      const { uid } = await stat(`/proc/${known.holder}`).catch(() => ({ uid: undefined }));
      if (uid !== (tenantUser ?? process.getuid?.())) return;
      holder = known.holder;
      if (known.relay !== null && found.includes(known.relay)) relay = known.relay;
    },

    socket: join(socketFolder, relaySocket),

    async relay() {
      if (relay !== undefined && !(await hasEnded(relay))) return;
      if (holder === undefined) throw new EngineUnavailable('its network is not open');
      await (starting ??= startRelay(holder).finally(() => {
        starting = undefined;
      }));
    },

    async close() {
      await endMarked(mark);
      holder = relay = undefined;
    },
  };
}

/** Waits for the first bytes, which the program sends when it is ready. */
async function firstOf(
  pipe: ReturnType<typeof pipeOf>,
  child: ReturnType<typeof spawn>,
  name: string,
): Promise<void> {
  const unavailable = (cause?: unknown) =>
    new EngineUnavailable(`${name} cannot give an Environment a network`, { cause });
  const isReady = await Promise.race([
    once(pipe, 'data').then(() => true),
    once(child, 'exit').then(() => false),
  ]).catch((error: unknown) => {
    throw unavailable(error);
  });
  if (!isReady) throw unavailable();
}
