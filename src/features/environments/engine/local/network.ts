import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, open, rm, stat } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { hasEnded, processesWith } from '../../../../platform/processes.ts';
import { EngineUnavailable } from '../engine.ts';
import { readJson, writeJson } from './json-files.ts';
import { endMarked, type Mark, pipeOf, slirpDevices, slirpOptions, variableOf } from './run-command.ts';
import { asTenant, giveToTenant, tenantUser } from './tenant.ts';

/**
 * The network namespace of one Environment. A process that only waits holds it; slirp4netns gives it a way out, but not to this
 * machine, and forwards ports of 127.0.0.1 into it (slirp4netns(1)). Either ends with the other, and both outlive this process.
 */
export type EnvironmentNetwork = {
  /** The process that holds the namespace. Makes a new network when there is none. Rejects with EngineUnavailable. */
  open(): Promise<number>;
  /** Finds the network that an earlier process made. */
  adopt(): Promise<void>;
  /** Forwards a port of 127.0.0.1 to the same port inside. False: something else uses it. */
  forward(port: number): Promise<boolean>;
  close(): Promise<void>;
};

/** The command that starts a program in a new network. */
const unshared = ['unshare', '--user', '--net', '--map-user=1000', '--map-group=1000', '--'];
/** How the holder waits: file 5 is a socket whose other end slirp4netns has. */
const hold = 'echo >&5; read -r end <&5';
const socketName = 'api.sock';
/** slirp4netns answers within this time, or hangs. In ms. */
const answerMs = 5_000;

export function createNetwork(deps: {
  /** Of this network alone. */
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
  let asked: Promise<unknown> = Promise.resolve();

  async function openNew(): Promise<number> {
    await endMarked(mark);
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
    // Only started processes have none.
    const pid = waiting.pid ?? 0;
    shared.pause();
    const [forwarder = '', ...options] = asTenant(
      ['slirp4netns', ...slirpOptions, `--api-socket=${socketName}`, String(pid), 'tap0'],
      slirpDevices,
    );
    const slirp = spawn(forwarder, options, {
      // A path of a socket has at most 107 bytes (unix(7)).
      cwd: socketFolder,
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
    writeJson(record, { holder: pid });
    return pid;
  }

  /** slirp4netns mixes up requests that arrive together. */
  async function ask(request: object): Promise<Answer> {
    const answer = asked.then(() => askNow(request));
    // Its caller gets the failure, and the next request does not.
    asked = answer.catch(() => undefined);
    return await answer;
  }

  async function askNow(request: object): Promise<Answer> {
    const place = await open(socketFolder);
    try {
      const socket = connect(`/proc/self/fd/${place.fd}/${socketName}`);
      socket.setTimeout(answerMs, () => socket.destroy(new Error('It takes too long.')));
      socket.end(JSON.stringify(request));
      // slirp4netns answers in one form.
      return JSON.parse(await text(socket)) as Answer;
    } catch (error) {
      throw new EngineUnavailable('slirp4netns does not answer', { cause: error });
    } finally {
      await place.close();
    }
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
      const known = (await readJson<{ holder: number }>(record))?.holder;
      if (known === undefined || !(await processesWith(...mark)).includes(known)) return;
      // Otherwise no sandbox could enter it: an earlier version made the network as root.
      const { uid } = await stat(`/proc/${known}`).catch(() => ({ uid: undefined }));
      if (uid === (tenantUser ?? process.getuid?.())) holder = known;
    },

    async forward(port) {
      const { return: known } = await ask({ execute: 'list_hostfwd' });
      if (known?.entries?.some(({ host_port }) => host_port === port) === true) return true;
      const place = { proto: 'tcp', host_addr: '127.0.0.1', host_port: port, guest_port: port };
      const { error } = await ask({ execute: 'add_hostfwd', arguments: place });
      return error === undefined;
    },

    async close() {
      await endMarked(mark);
      holder = undefined;
    },
  };
}

type Answer = {
  readonly return?: { readonly entries?: readonly { readonly host_port: number }[] };
  readonly error?: { readonly desc?: string };
};

/** Waits for the first bytes, which say that the program is ready. */
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
