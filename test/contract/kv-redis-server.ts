import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as wait } from 'node:timers/promises';
import { freePort } from '../../scripts/local-servers.ts';
import { minute } from '../../src/core/clock.ts';
import { createLog } from '../../src/platform/log.ts';
import { type RedisKv, redisKv } from '../../src/platform/kv/redis-kv.ts';

/** A Redis for one test: on loopback, on a separate port, without persistence. */
export type RedisServer = {
  readonly url: string;
  /** Freezes it: connections stay open, nothing is answered. */
  freeze(): void;
  thaw(): void;
  /** Ends it; start() brings up a new one, empty, at the same address. */
  stop(): Promise<void>;
  start(): Promise<void>;
  /** Like stop(), but start() then restarts the same member of its cluster. */
  kill(): Promise<void>;
};

/** In CI a missing server is a failure; elsewhere these tests are left out. */
export const isRedisMissing = process.env['CI'] !== 'true' && !isInstalled();

function isInstalled(): boolean {
  try {
    execFileSync('redis-server', ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

export async function startRedis(...options: string[]): Promise<RedisServer> {
  const port = await freePort();
  const directory = await mkdtemp(join(tmpdir(), 'postern-redis-'));
  let running = await launch(port, directory, options);
  return {
    url: `redis://127.0.0.1:${port}`,
    freeze: () => void running.child.kill('SIGSTOP'),
    thaw: () => void running.child.kill('SIGCONT'),
    async stop() {
      await running.end();
      await rm(directory, { recursive: true, force: true });
    },
    async start() {
      // Kept after a kill(), gone after a stop().
      await mkdir(directory, { recursive: true });
      running = await launch(port, directory, options);
    },
    kill: () => running.end(),
  };
}

/** A client with a silent log and the short limit of production, for servers that do not answer. */
export function connectTo({ url }: { readonly url: string }): RedisKv {
  return redisKv({ url, log: createLog({ level: 'silent' }) });
}

/** The same with a limit that no healthy command meets, however busy the machine is. */
export function connectPatiently({ url }: { readonly url: string }): RedisKv {
  return redisKv({ url, log: createLog({ level: 'silent' }), answerMs: minute });
}

/** A network in between that can lose everything of the connections it has, without closing them. */
export async function startRelay(server: RedisServer) {
  const target = new URL(server.url);
  const pairs: Socket[][] = [];
  const relay = createServer((near) => {
    const far = connect(Number(target.port), target.hostname);
    near.pipe(far).pipe(near);
    for (const end of [near, far]) end.on('error', () => {});
    pairs.push([near, far]);
  }).listen(0, '127.0.0.1');
  await once(relay, 'listening');
  return {
    url: `redis://127.0.0.1:${portOf(relay)}`,
    accepted: () => pairs.length,
    swallow() {
      for (const [near, far] of pairs) near?.unpipe(far).resume();
    },
    async stop() {
      for (const end of pairs.flat()) end.destroy();
      relay.close();
      await once(relay, 'close');
    },
  };
}

async function launch(port: number, directory: string, options: string[]) {
  const settings = ['--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', directory];
  const child = spawn('redis-server', ['--port', String(port), ...settings, ...options], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  // A test run that is broken off leaves no server behind.
  const kill = () => void child.kill('SIGKILL');
  process.once('exit', kill);
  await readiness(child);
  return {
    child,
    async end() {
      process.off('exit', kill);
      if (child.exitCode === null && child.signalCode === null) {
        kill();
        await once(child, 'exit');
      }
    },
  };
}

function readiness(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`redis-server ended with ${code} before it was ready.`)));
    if (child.stdout === null) throw new Error('redis-server was started without its output.');
    createInterface({ input: child.stdout }).on('line', (line) => {
      if (/ready to accept connections/i.test(line)) resolve();
    });
  });
}

function portOf(server: Server): number {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('The server listens on no port.');
  return address.port;
}

export type RedisCluster = {
  readonly url: string;
  readonly nodes: readonly RedisServer[];
  stop(): Promise<void>;
};

/** Three masters that share the key space. */
export async function startCluster(): Promise<RedisCluster> {
  const nodes = await Promise.all(
    [1, 2, 3].map(() => startRedis('--cluster-enabled', 'yes', '--cluster-node-timeout', '2000')),
  );
  const addresses = nodes.map(({ url }) => new URL(url).host);
  execFileSync('redis-cli', ['--cluster', 'create', ...addresses, '--cluster-yes'], { stdio: 'ignore' });
  // Each node learns by itself that all slots are served, and answers nothing before.
  for (const node of nodes) while (!isServing(node)) await wait(20);
  return {
    url: nodes[0]?.url ?? '',
    nodes,
    stop: async () => void (await Promise.all(nodes.map((node) => node.stop()))),
  };
}

function isServing({ url }: RedisServer): boolean {
  return execFileSync('redis-cli', ['-u', url, 'cluster', 'info'], { encoding: 'utf8' }).includes(
    'cluster_state:ok',
  );
}
