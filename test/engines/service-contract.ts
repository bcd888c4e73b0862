import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { connect, createServer } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import type { Address, DesiredProcess, Engine } from '../../src/features/engine/contract.ts';
import { connectTo } from '../../src/platform/place.ts';
import { sleeps } from './engine-contract.ts';

export type ServiceHarness = {
  /** An engine with these limits of a service. One at a time: it replaces the last one, and finds what it ran. */
  readonly open: (limits?: Limits) => Promise<Engine>;
  /** Afterwards no engine runs, and the services do. */
  readonly close: () => Promise<void>;
  readonly clock: { now: number };
  /** Stores these files as an artifact: path → content. */
  readonly store: (files: Readonly<Record<string, string>>) => Promise<DesiredProcess['artifact']>;
  /** What the engine has left: folders, processes and the like. */
  readonly left: () => Promise<readonly string[]> | readonly string[];
  /** Whether an Environment is kept from what is not its own. */
  readonly isIsolated: boolean;
  /** In which commands run: then Kubernetes decides about pauses. Absent: on the machine of the engine, by `clock`. */
  readonly image?: string;
};

type Limits = { readonly processes?: number; readonly diskBytes?: number };

/** Answers with what the path asks for, in one line. */
const server = `
const { createServer, get } = require('node:http');
const { existsSync, readdirSync, writeFileSync } = require('node:fs');
const start = Math.random();
const pages = {
  '/start': () => start,
  '/env': () => JSON.stringify(process.env),
  '/files': () => readdirSync('.').join(' '),
  '/write': () => writeFileSync('written', ''),
  '/fix': () => writeFileSync('fixed', ''),
  '/exit': () => setImmediate(() => process.exit(7)),
  '/leave': () => {
    listener.close();
    setTimeout(() => process.exit(7), 1000);
  },
};
const listener = createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url, 'http://service');
  if (pathname === '/healthz') response.writeHead(existsSync('fixed') ? 302 : 500).end();
  else if (pathname === '/ask')
    get(searchParams.get('url'), (answer) => answer.pipe(response)).on('error', ({ code }) => response.end(code));
  else response.end(String(pages[pathname]?.()));
}).listen(process.env.PORT, process.env.LISTEN_ON, () => console.log('listening'));
if (process.env.SQUAT) createServer().listen(process.env.SQUAT);
process.on('SIGTERM', () => {
  console.log('asked to end');
  if (!process.env.DEAF) process.exit(0);
});
`;
const files = { 'server.js': server };
const environmentId = 'env_one';

/** A service that runs `server`, with these changes. */
export async function desire(
  store: ServiceHarness['store'],
  changes: Partial<DesiredProcess> = {},
): Promise<DesiredProcess> {
  return {
    service: 'web',
    revision: 'first',
    artifact: changes.artifact ?? (await store(files)),
    image: null,
    command: 'node server.js',
    port: 8080,
    health: null,
    variables: {},
    secrets: {},
    redacted: [],
    memoryBytes: 500_000_000,
    milliCpu: 500,
    logBytes: 100_000,
    isAsleep: false,
    ...changes,
  };
}

/** What every engine promises about process services. Called inside a describe() of each implementation. */
export function serviceContract(harness: ServiceHarness): void {
  describe('process services', () => {
    casesOf(harness);
  });
}

export async function textAt(address: Address, path: string): Promise<string> {
  const asked = request({ path, host: address.host, createConnection: () => connectTo(address) }).end();
  // The types of events do not name their arguments.
  const [answer] = (await once(asked, 'response')) as [IncomingMessage];
  return await text(answer);
}

async function isReached({ host, port }: Address): Promise<boolean> {
  const socket = connect(port, host);
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

function casesOf({ open, close, clock, store, left, isIsolated, image: ownImage }: ServiceHarness): void {
  const image = ownImage ?? null;
  const isInPods = image !== null;
  let engine: Engine;
  /** A command that runs at the first start alone: Kubernetes starts it again at once. */
  const once = (command: string) =>
    isInPods ? `[ -e ran ] && exec ${sleeps.long}; touch ran; ${command}` : command;

  async function begin(limits?: Limits): Promise<Engine> {
    engine = await open(limits);
    return engine;
  }

  /** Applies one process, or several. */
  async function run(...changes: Partial<DesiredProcess>[]): Promise<void> {
    await engine.apply({
      environmentId,
      processes: await Promise.all(changes.map((one) => desire(store, { image, ...one }))),
    });
  }

  async function observed(service = 'web', id = environmentId) {
    return (await engine.observe(id)).find((one) => one.service === service);
  }

  /** Waits until the service is as expected. */
  async function becomes(expected: object, service = 'web', id = environmentId, timeout?: number) {
    const limit = timeout === undefined ? {} : { timeout };
    await expect.poll(() => observed(service, id), limit).toMatchObject(expected);
  }

  async function ask(path: string, service = 'web', id = environmentId): Promise<string> {
    const address = await engine.address(id, service);
    if (address === null) return 'no address';
    // The node sends nothing to a pod until a moment after it is ready. Then the first connection is refused.
    if (isInPods) await vi.waitUntil(() => isReached(address), { timeout: 150_000 });
    return await textAt(address, path);
  }

  async function linesOf(service = 'web'): Promise<string[]> {
    const entries = await engine.logs(environmentId, service, 0, 100_000);
    return entries.map(({ text }) => text);
  }

  afterEach(async () => {
    await engine.remove(environmentId);
    await engine.remove('env_two');
    expect(await left()).toEqual([]);
  });

  test('a service starts, and answers at its address with its variables and nothing else of Postern', async () => {
    await begin();
    expect(await engine.observe(environmentId)).toEqual([]);
    await run({ variables: { COLOR: 'blue & "green"', TOKEN: 'replaced' }, secrets: { TOKEN: 'a-secret' } });
    await becomes({ state: 'ready', reason: null, revision: 'first', restarts: 0, lastLines: ['listening'] });
    // JSON.stringify() wrote it.
    const env = JSON.parse(await ask('/env')) as Record<string, string>;
    expect(env).toMatchObject({ COLOR: 'blue & "green"', TOKEN: 'a-secret' });
    expect(Object.keys(env).filter((name) => /NODE|VITEST|DATABASE/.test(name))).toEqual([]);
    expect(env['HOME']).not.toBe(process.env['HOME']);
  });

  test('starting the same again changes nothing', async () => {
    await begin();
    await run({});
    await becomes({ state: 'ready' });
    const before = await ask('/start');
    await run({});
    await run({ secrets: { TOKEN: 'used at the next start' } });
    expect([await ask('/start'), await observed()]).toMatchObject([before, { state: 'ready', restarts: 0 }]);
  });

  test('with a health page, a service is ready when the page answers', async () => {
    await begin();
    await run(
      { health: '/healthz' },
      { service: 'fixed', health: '/healthz', command: 'touch fixed; exec node server.js' },
    );
    await becomes({ state: 'starting', reason: 'answers 500 to GET /healthz' });
    expect(await engine.address(environmentId, 'web')).toBeNull();
    await becomes({ state: 'ready' }, 'fixed');
  });

  test('a service that does not listen is not ready, and says on which port it should', async () => {
    await begin();
    await run({ command: sleeps.long });
    await becomes({
      state: 'starting',
      reason: expect.stringMatching(/^does not listen on port \d+/) as string,
    });
  });

  test('a service that ends says how, with its last lines, and starts again after a pause that grows', async () => {
    await begin();
    const command = 'for i in 1 2 3; do echo "line $i"; done; echo broken >&2; exit 3';
    await run({ command });
    const failed = {
      state: 'failed',
      reason: expect.stringMatching(/^exited with 3 after [01] s$/) as string,
    };
    await becomes(isInPods ? failed : { ...failed, restarts: 0 });
    const lastLines = async () => [...new Set((await observed())?.lastLines)].toSorted();
    await expect.poll(lastLines).toEqual(['broken', 'line 1', 'line 2', 'line 3']);
    for (const restarts of isInPods ? [1, 2] : []) await becomes({ ...failed, restarts });
    for (const [restarts, pauseMs] of isInPods ? [] : [1_000, 2_000, 4_000].entries()) {
      clock.now += pauseMs - 1;
      const other = `other-${restarts}`;
      await run({ command }, { service: other, command: 'exit 1' });
      await becomes({ state: 'failed' }, other);
      expect(await observed()).toMatchObject({ ...failed, restarts });
      clock.now += 1;
      await becomes({ ...failed, restarts: restarts + 1 });
    }
    await expect
      .poll(() => linesOf())
      .toContainEqual(expect.stringMatching(/^The service exited with 3 after [01] s\.$/));
  });

  test.skipIf(isInPods)('after five minutes of being ready, the pause is short again', async () => {
    await begin();
    const command = '[ -e written ] || { touch written; exit 1; }; exec node server.js';
    await run({ command });
    await becomes({ state: 'failed' });
    clock.now += 1_000;
    await becomes({ state: 'ready', restarts: 1 });
    await ask('/exit');
    await becomes({
      state: 'failed',
      reason: expect.stringMatching(/^exited with 7 after \d+ s$/) as string,
    });
    expect(await engine.address(environmentId, 'web')).toBeNull();
    clock.now += 1_999;
    await run({ command });
    expect(await observed()).toMatchObject({ state: 'failed' });
    clock.now += 1;
    await becomes({ state: 'ready', restarts: 2 });
    clock.now += 5 * 60_000;
    // It closes its port a second before it ends.
    await ask('/leave');
    await becomes({ state: 'failed' });
    clock.now += 1_000;
    await becomes({ state: 'ready', restarts: 3 });
  });

  test('a new revision replaces the old one, its files and its last lines', async () => {
    await begin();
    await run({});
    await becomes({ state: 'ready' });
    await ask('/write');
    const start = await ask('/start');
    await run({
      revision: 'second',
      artifact: await store({ ...files, 'new.txt': '' }),
      command: 'node server.js; true',
    });
    await becomes({ state: 'ready', revision: 'second', lastLines: ['listening'] });
    expect(await ask('/files')).toBe('new.txt server.js');
    expect(await ask('/start')).not.toBe(start);
    expect((await linesOf()).filter((line) => line === 'listening')).toHaveLength(2);
  });

  test('a service is asked to end, and killed if it does not', async () => {
    await begin();
    // Kubernetes asks the first process alone, which is otherwise the shell.
    const changes = isInPods ? { command: 'exec node server.js' } : {};
    await run(changes, {
      service: 'deaf',
      command: `trap "" TERM; echo ready; while :; do ${sleeps.short}; done`,
    });
    await becomes({ state: 'ready' });
    await becomes({ lastLines: ['ready'] }, 'deaf');
    await run({ isAsleep: true }, { service: 'deaf', isAsleep: true });
    await becomes({ state: 'stopped', reason: null, lastLines: ['listening', 'asked to end'] });
    await becomes({ state: 'stopped' }, 'deaf');
    expect(await engine.address(environmentId, 'web')).toBeNull();
    await run({});
    await becomes({ state: 'ready' });
    expect((await engine.observe(environmentId)).map(({ service }) => service)).toEqual(['web']);
  });

  test('processes that a service leaves behind end with it', async () => {
    await begin();
    await run({
      command: `${sleeps.long} & (setsid ${sleeps.long} &) ; nohup ${sleeps.long} >/dev/null 2>&1 & exit 1`,
    });
    await becomes({ state: 'failed' });
    await expect.poll(async () => (await left()).filter((line) => line.startsWith('sleep'))).toEqual([]);
  });

  test('a service outlives the engine, and the next one finds it', async () => {
    await begin();
    await run({ health: '/healthz', command: 'touch fixed; exec node server.js' }, { service: 'short' });
    await becomes({ state: 'ready' });
    await becomes({ state: 'ready' }, 'short');
    const [start, address] = [await ask('/start'), await engine.address(environmentId, 'short')];
    await begin();
    await becomes({ state: 'ready', restarts: 0, lastLines: ['listening'] });
    expect(await ask('/start')).toBe(start);
    // This engine does not know the values.
    await engine.apply({ environmentId, processes: [], kept: ['web', 'short'] });
    expect(await ask('/start')).toBe(start);
    await run({ health: '/healthz' }, { service: 'short' });
    expect(await ask('/start')).toBe(start);
    expect(await engine.address(environmentId, 'short')).toEqual(address);
  });

  /** The process exits with 7 meanwhile. */
  async function exitWithoutEngine(): Promise<void> {
    await begin();
    await run({});
    await becomes({ state: 'ready' });
    await ask('/start');
    const address = await engine.address(environmentId, 'web');
    await close();
    if (address !== null) await textAt(address, '/exit').catch(() => undefined);
    await begin();
  }

  test.skipIf(isInPods)('an engine knows how a service ended while no engine ran', async () => {
    await exitWithoutEngine();
    await becomes({
      state: 'failed',
      reason: expect.stringMatching(/^exited with 7 after \d+ s$/) as string,
      lastLines: ['listening'],
    });
    expect(await engine.address(environmentId, 'web')).toBeNull();
  });

  test.runIf(isInPods)(
    'a service that started again while no engine ran has a log without gaps',
    async () => {
      await exitWithoutEngine();
      await becomes({ state: 'ready', restarts: 1 });
      await run({});
      const end = expect.stringMatching(/^The service exited with 7 after \d+ s\.$/) as string;
      await expect.poll(() => linesOf()).toEqual(['listening', end, 'listening']);
    },
  );

  test('secrets are in no line of the log', async () => {
    await begin();
    await run({
      command: once('echo "a $TOKEN b"; echo "$OTHER" >&2; printf %s "$TOKEN" | base64; exit 1'),
      secrets: { TOKEN: 'a-secret-token' },
      variables: { OTHER: 'a-redacted-value' },
      redacted: ['a-redacted-value'],
    });
    const expected = [
      expect.stringMatching(/^The service exited with 1 after \d+ s\.$/) as string,
      '[redacted]',
      '[redacted]',
      'a [redacted] b',
    ];
    await expect.poll(async () => (await linesOf()).toSorted()).toEqual(expected);
  });

  test('a log of a gigabyte is bounded, and its newest lines stay', async () => {
    await begin();
    const command = 'yes "a line of the gigabyte" | head -c 1000000000; echo; echo the end; exit 1';
    await run({ command: once(command) });
    const isOver = async () => (await linesOf()).at(-1)?.includes('exited with 1');
    await expect.poll(isOver, { timeout: isInPods ? 280_000 : 100_000 }).toBe(true);
    const entries = await engine.logs(environmentId, 'web', 0, 1_000_000);
    expect(Buffer.byteLength(entries.map(({ text }) => text).join('\n'))).toBeLessThan(100_000);
    expect(entries.map(({ text }) => text).slice(-2)).toEqual([
      'the end',
      expect.stringContaining('exited with 1'),
    ]);
    expect((await observed())?.lastLines.at(-1)).toBe('the end');
    const ids = entries.map(({ id }) => id);
    expect(ids).toEqual(ids.map((_, at) => (ids[0] ?? 0) + at));
    expect(await engine.logs(environmentId, 'web', ids.at(-3) ?? 0, 1)).toEqual(entries.slice(-2, -1));
  });

  // Kubernetes limits the processes of a pod by a setting of its nodes.
  test.skipIf(isInPods)('a service that forks too often is ended', async () => {
    await begin({ processes: 60 });
    await run({ command: `n=0; while [ $n -lt 500 ]; do ${sleeps.long} & n=$((n+1)); done; wait` });
    await becomes({
      state: 'failed',
      reason: 'started more than 60 processes or 240 threads, so Postern ended it',
    });
    expect((await left()).filter((line) => line.startsWith('sleep'))).toEqual([]);
  });

  test('a service that takes too much memory is ended', async () => {
    await begin();
    await run({
      command: `x=0123456789abcdef; n=0; while [ $n -lt 24 ]; do x=$x$x; n=$((n+1)); done; ${sleeps.long}`,
      memoryBytes: 64 * 1024 ** 2,
    });
    await becomes({
      state: 'failed',
      reason: 'used more than 67108864 bytes of memory, so Postern ended it',
    });
    await expect
      .poll(() => linesOf())
      .toContain('The service used more than 67108864 bytes of memory, so Postern ended it.');
  });

  // oxlint-disable-next-line vitest/expect-expect -- becomes() asserts
  test('a service that fills its disk is ended', async () => {
    await begin({ diskBytes: 20_000_000 });
    await run({
      command: 'for n in 1 2 3 4 5 6 7 8; do head -c 4000000 /dev/zero >"$n"; done; exec node server.js',
    });
    // A kubelet measures the files of a pod once a minute, and later on a busy node.
    const measuredMs = isInPods ? 3 * 60_000 : undefined;
    const reason = 'wrote more than 20000000 bytes, so Postern ended it';
    await becomes({ state: 'failed', reason }, 'web', environmentId, measuredMs);
  });

  test('the sweep ends and removes unknown Environments', async () => {
    await begin();
    await run({});
    await engine.apply({ environmentId: 'env_two', processes: [await desire(store, { image })] });
    await becomes({ state: 'ready' });
    await becomes({ state: 'ready' }, 'web', 'env_two');
    await begin();
    const known = async () => ({ builds: new Set<string>(), environments: new Set([environmentId]) });
    expect(await engine.sweep(known)).toEqual(['env_two']);
    expect(await engine.observe('env_two')).toEqual([]);
    await becomes({ state: 'ready' });
    expect(await engine.sweep(known)).toEqual([]);
  });

  test('the sweep skips an Environment that begins while it reads the list', async () => {
    await begin();
    const processes = [await desire(store, { image })];
    const gone = await engine.sweep(async () => {
      await engine.apply({ environmentId: 'env_two', processes });
      return { builds: new Set(), environments: new Set() };
    });
    expect(gone).toEqual([]);
    await becomes({ state: 'ready' }, 'web', 'env_two');
  });

  test('services of one Environment reach each other at their addresses', async () => {
    await begin();
    await run({}, { service: 'api' });
    await becomes({ state: 'ready' });
    await becomes({ state: 'ready' }, 'api');
    expect(await ask('/files', 'api')).toBe('server.js');
    const address = await engine.address(environmentId, 'api');
    expect(await ask(`/ask?url=http://${address?.host}:${address?.port}/files`)).toBe('server.js');
  });

  describe.skipIf(!isIsolated)('an Environment cannot reach what is not its own', () => {
    test('ports, processes and files of another Environment, and ports of this machine', async () => {
      const listener = createServer((socket) => socket.end('HTTP/1.1 200 OK\r\n\r\nreached')).listen(
        0,
        '127.0.0.1',
      );
      onTestFinished(() => void listener.close());
      await begin();
      await run({});
      const curious = await desire(store, {
        image,
        port: 9090,
        secrets: { TOKEN: 'secret-of-the-neighbour' },
        artifact: await store({ ...files, 'trace-of-the-neighbour': '' }),
      });
      await engine.apply({ environmentId: 'env_two', processes: [curious] });
      await becomes({ state: 'ready' });
      await becomes({ state: 'ready' }, 'web', 'env_two');
      const other = await engine.address('env_two', 'web');
      const place = listener.address();
      const port = typeof place === 'object' ? place?.port : 0;
      for (const url of [
        `http://127.0.0.1:${other?.port}/start`,
        `http://10.0.2.2:${other?.port}/start`,
        `http://127.0.0.1:${port}/`,
        `http://10.0.2.2:${port}/`,
      ])
        expect(await ask(`/ask?url=${encodeURIComponent(url)}`)).toMatch(
          /^(?:ECONNREFUSED|ENETUNREACH|EHOSTUNREACH|ECONNRESET)$/,
        );
      const command = `ls /proc | grep -c '^[0-9]'; cat /proc/*/environ 2>/dev/null | grep -c of-the-neighbour; find / -path /usr -prune -o -path /proc -prune -o -name 'trace-of-*' -print 2>/dev/null; echo end; exit 1`;
      await run({ revision: 'second', command: once(command) });
      await becomes({ lastLines: expect.arrayContaining(['end']) as string[] });
      const [processes, ...rest] = (await observed())?.lastLines ?? [];
      expect(Number(processes)).toBeLessThan(10);
      expect(rest).toEqual(['0', 'end']);
    });
  });
}
