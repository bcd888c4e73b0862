import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import type { BuildLimits, DesiredProcess, ObservedProcess } from '../../src/features/engine/contract.ts';
import { openGroups } from '../../src/features/engine/local/cgroups.ts';
import { findOutput, storeOutput } from '../../src/features/engine/output.ts';
import type { LocalEngine } from '../../src/features/engine/local/local-engine.ts';
import { generousLimits, hiddenMemory, sleeps } from './engine-contract.ts';
import { createMachine, isBwrapMissing, processesWithText, programs } from './local-machine.ts';
import { desire, serviceContract, textAt } from './service-contract.ts';

const { folder, blobs, clock, defects, local } = createMachine();

function harness(isolation: 'process' | 'bwrap') {
  const root = join(folder, isolation);
  let engine: LocalEngine | undefined;
  const close = async () => await engine?.stop();
  afterAll(close);
  return {
    isIsolated: isolation === 'bwrap',
    clock,
    close,
    async open(limits: Partial<BuildLimits> = {}) {
      await close();
      engine = local(isolation, { limits });
      await engine.prepare();
      return engine;
    },
    async store(files: Readonly<Record<string, string>>) {
      const place = mkdtempSync(join(folder, 'files-'));
      for (const [path, content] of Object.entries(files)) {
        mkdirSync(dirname(join(place, path)), { recursive: true });
        writeFileSync(join(place, path), content);
      }
      const found = await findOutput(place, { outputFiles: 100 });
      if (found.kind === 'failed') throw new Error(found.message);
      return await storeOutput(found, blobs);
    },
    /** Folders, processes with a mark of the engine, and those that the commands of these tests start. */
    left: () => [
      ...['builds', 'environments'].flatMap((name) => readdirSync(join(root, name))),
      ...processesWithText(`=${root}`).map(({ words }) => words),
      ...programs().filter((line) => Object.values(sleeps).includes(line)),
    ],
  };
}

/** In Perl: the environment of the process becomes 4 GiB of untouched memory (prctl(2), PR_SET_MM_MAP). */
const endlessEnvironment = `
my @stat = split / /, (split /\\) /, do { local $/; open my $file, '<', '/proc/self/stat'; <$file> })[1];
my $size = 4 * 2**30;
my $start = syscall(9, 0, $size, 3, 0x4022, -1, 0);
my @places = (@stat[23, 24, 42 .. 44], syscall(12, 0), @stat[25, 45, 46], $start, $start + $size, 0);
my $map = pack 'Q12 L2', @places, 0, 0xffffffff;
$| = 1;
print syscall(157, 35, 14, $map, length $map, 0) == 0 ? "moved\\n" : "refused: $!\\n";
sleep 1000`;

/** What the engines of this machine promise besides. */
function localContract(
  isolation: 'process' | 'bwrap',
  { open, store, left, close }: ReturnType<typeof harness>,
) {
  let engine: LocalEngine;

  async function begin(): Promise<void> {
    engine = await open();
  }

  async function run(...changes: Partial<DesiredProcess>[]): Promise<void> {
    const processes = await Promise.all(changes.map((one) => desire(store, one)));
    await engine.apply({ environmentId: 'env_one', processes });
  }

  async function becomes(expected: object, service = 'web'): Promise<ObservedProcess> {
    const find = async () => (await engine.observe('env_one')).find((one) => one.service === service);
    await expect.poll(find).toMatchObject(expected);
    // It was just found.
    return (await find()) as ObservedProcess;
  }

  /** Ends processes of the engine that have this mark. */
  function killMarked(mark: string): void {
    const found = processesWithText(`${mark}=${join(folder, isolation)}`);
    expect(found).not.toEqual([]);
    for (const { pid } of found) process.kill(pid, 'SIGKILL');
  }

  afterEach(async () => {
    await engine.remove('env_one');
    expect(left()).toEqual([]);
  });

  test('a service that is needed again while it ends has no address until it has restarted', async () => {
    await begin();
    const service = { variables: { DEAF: '1' } };
    await run(service);
    await becomes({ state: 'ready' });
    await run({ ...service, isAsleep: true });
    await becomes({ lastLines: ['listening', 'asked to end'] });
    await run(service);
    const reason = 'its earlier process has not ended yet';
    expect(await engine.observe('env_one')).toMatchObject([{ state: 'starting', reason }]);
    expect(await engine.address('env_one', 'web')).toBeNull();
    await becomes({ state: 'ready', lastLines: ['listening', 'asked to end', 'listening'] });
    expect(await engine.address('env_one', 'web')).not.toBeNull();
  });

  test('a port on which another process listens is not taken for the service, which gets another one', async () => {
    await begin();
    await run({ command: sleeps.long });
    const { reason } = await becomes({ reason: expect.stringMatching(/port \d+/) as string });
    const SQUAT = /port (\d+)/.exec(reason ?? '')?.[1] ?? '';
    await run({ command: sleeps.long }, { service: 'squatter', variables: { SQUAT } });
    await becomes({ state: 'ready' }, 'squatter');
    await becomes({ state: 'failed', reason: `cannot use port ${SQUAT}, on which another process listens` });
    expect(await engine.address('env_one', 'web')).toBeNull();
    clock.now += 1_000;
    const again = await becomes({
      state: 'starting',
      reason: expect.stringMatching(/^does not listen/) as string,
    });
    expect(again.reason).not.toContain(SQUAT);
  });

  test('a service whose recorder was killed ends, and starts again', async () => {
    await begin();
    await run({});
    await becomes({ state: 'ready' });
    killMarked('POSTERN_RECORDER');
    await becomes({ state: 'failed', reason: 'ended together with its recorder' });
    expect(processesWithText(`POSTERN_SERVICE=${join(folder, isolation)}`)).toEqual([]);
    clock.now += 1_000;
    await becomes({ state: 'ready', restarts: 1 });
  });

  test('a recorder that hangs does not block its service', async () => {
    await begin();
    await run({});
    await becomes({ state: 'ready' });
    for (const { pid } of processesWithText(`POSTERN_RECORDER=${join(folder, isolation)}`))
      process.kill(pid, 'SIGSTOP');
    await engine.remove('env_one');
    expect(left()).toEqual([]);
  });

  // The numbers of the system calls are those of x86_64.
  test.runIf(process.arch === 'x64')(
    'a process whose environment is gigabytes long costs no memory',
    async () => {
      await begin();
      const command = 'perl -e "$MOVE" && exec node server.js';
      const moved = { command, variables: { MOVE: `fork and exit; ${endlessEnvironment}` } };
      await run(moved, { service: 'other' });
      const said = isolation === 'bwrap' ? 'refused: Operation not permitted' : 'moved';
      await expect.poll(async () => (await becomes({}, 'web')).lastLines).toContain(said);
      await becomes({ state: 'ready' }, 'other');
      const before = process.resourceUsage().maxRSS;
      // Whatever ends, the engine looks for what is left of it.
      await run(moved);
      await expect.poll(async () => (await engine.observe('env_one')).length).toBe(1);
      // In KiB.
      expect(process.resourceUsage().maxRSS - before).toBeLessThan(256 * 1_024);
    },
  );

  test('the data of a service that filled its disk is removed, and its files are restored', async () => {
    engine = await open({ diskBytes: 20_000_000 });
    await run({ command: 'ls; head -c 30000000 /dev/zero >big; ' + sleeps.long });
    const reason = 'wrote more than 20000000 bytes, so Postern ended it';
    await becomes({ state: 'failed', reason, lastLines: ['server.js'] });
    const work = join(folder, isolation, 'environments/env_one/services/web/work');
    await expect.poll(() => readdirSync(work)).toEqual([]);
    clock.now += 1_000;
    await becomes({ state: 'failed', restarts: 1, lastLines: ['server.js', 'server.js'] });
  });

  test('no process list shows the values of variables and secrets', async () => {
    await begin();
    await run({ variables: { COLOR: 'value-of-the-test' }, secrets: { TOKEN: 'secret-of-the-test' } });
    await becomes({ state: 'ready' });
    expect(programs().filter((line) => line.includes('recorder.ts'))).not.toEqual([]);
    expect(programs().filter((line) => line.includes('-of-the-test'))).toEqual([]);
    const recorders = processesWithText(`POSTERN_RECORDER=${join(folder, isolation)}`).map(({ pid }) => pid);
    const informed = processesWithText('-of-the-test').map(({ pid }) => pid);
    expect(recorders.filter((pid) => informed.includes(pid))).toEqual([]);
    const place = join(folder, isolation, 'environments');
    expect(spawnSync('grep', ['-r', '-e', '-of-the-test', place], { encoding: 'utf8' }).stdout).toBe('');
  });

  test('an unreadable artifact fails the service with a message', async () => {
    await begin();
    await run({ artifact: { digest: '0'.repeat(64), size: 1 } });
    await becomes({ state: 'failed', reason: 'cannot be started: its files cannot be prepared' });
    expect(defects.splice(0)).toMatchObject([{ code: 'store_unavailable' }]);
  });

  // oxlint-disable-next-line vitest/expect-expect -- becomes() asserts
  test('a value with a NUL byte is refused with a message', async () => {
    await begin();
    await run({ variables: { COLOR: 'blue\0--bind\0/\0/host' } });
    await becomes({ state: 'failed', reason: 'cannot be started: COLOR contains a NUL byte' });
  });

  test('a server that ends leaves its services running, and the next one finds them', async () => {
    await begin();
    await close();
    const program = join(mkdtempSync(join(folder, 'program-')), 'server.ts');
    const options = {
      folder: join(folder, isolation),
      isolation,
      hidden: [],
      searchPath: process.env['PATH'],
      limits: generousLimits,
    };
    const desired = { environmentId: 'env_one', processes: [await desire(store)] };
    const source = (path: string) => JSON.stringify(join(import.meta.dirname, '../../src', path));
    writeFileSync(
      program,
      `import { createLocalEngine } from ${source('features/engine/local/local-engine.ts')};
      import { fileBlobs } from ${source('platform/blobs/file-blobs.ts')};
      const blobs = fileBlobs(${JSON.stringify(join(folder, 'blobs'))});
      const engine = createLocalEngine({ ...${JSON.stringify(options)}, blobs, now: Date.now, onDefect: console.error });
      await engine.prepare();
      await engine.apply(${JSON.stringify(desired)});`,
    );
    const { status, stderr } = spawnSync(process.execPath, [program], { encoding: 'utf8' });
    expect([status, stderr]).toEqual([0, '']);
    await begin();
    await becomes({ state: 'ready', restarts: 0, lastLines: ['listening'] });
  });

  return { begin, run, becomes, killMarked, current: () => engine };
}

describe('local, plain processes', () => {
  const given = harness('process');
  serviceContract(given);
  describe('on this machine', () => {
    const { begin, run, becomes } = localContract('process', given);

    // oxlint-disable-next-line vitest/expect-expect -- becomes() asserts
    test('a service that listens on another port says on which one', async () => {
      await begin();
      await run({ command: 'PORT=0 exec node server.js' });
      const reason =
        /^does not listen on port \d+, which the variable PORT names, but on port \d+; let it use PORT$/;
      await becomes({ state: 'starting', reason: expect.stringMatching(reason) as string });
    });
  });
});

describe.skipIf(isBwrapMissing)('local, bubblewrap', () => {
  const given = harness('bwrap');
  serviceContract(given);
  describe('on this machine', () => {
    const { begin, run, becomes, killMarked, current } = localContract('bwrap', given);

    async function placeNow() {
      const place = await current().address('env_one', 'web');
      if (place === null) throw new Error('The service has no address.');
      return place;
    }

    test('a service that listens only on loopback is reachable', async () => {
      await begin();
      await run({ variables: { LISTEN_ON: '127.0.0.1' } });
      await becomes({ state: 'ready' });
      expect(await textAt(await placeNow(), '/files')).toBe('server.js');
    });

    test('a service that listens on another port says on which one, and the file can name that port', async () => {
      await begin();
      const command = 'PORT=3999 exec node server.js';
      await run({ command });
      const reason =
        'does not listen on port 8080, which the variable PORT names, but on port 3999; let it use PORT, or set run.port to 3999';
      await becomes({ state: 'starting', reason });
      await run({ revision: 'second', command, port: 3999 });
      await becomes({ state: 'ready' });
      expect(await placeNow()).toMatchObject({ port: 3999 });
    });

    test('services of one Environment with the same port get different ones', async () => {
      await begin();
      await run({}, { service: 'api' });
      await becomes({ state: 'ready' });
      await becomes({ state: 'ready' }, 'api');
      const ports = await Promise.all(
        ['web', 'api'].map(async (name) => (await current().address('env_one', name))?.port),
      );
      expect(ports).toContain(8080);
      expect(new Set(ports).size).toBe(2);
    });

    test('no port of this machine leads to a service, and its socket is in a folder that only its user can read', async () => {
      await begin();
      await run({});
      await becomes({ state: 'ready' });
      const { relay = '', ...place } = await placeNow();
      expect(await textAt({ ...place, relay }, '/files')).toBe('server.js');
      await expect(textAt(place, '/files')).rejects.toMatchObject({ code: 'ECONNREFUSED' });
      expect(statSync(dirname(relay)).mode & 0o777).toBe(0o700);
    });

    test('a relay that ended is restarted, even after a restart of Postern', async () => {
      await begin();
      await run({});
      await becomes({ state: 'ready' });
      const network = join(folder, 'bwrap/environments/env_one/network/network.json');
      const relayNow = () => (JSON.parse(readFileSync(network, 'utf8')) as { relay: number }).relay;
      const first = relayNow();
      await begin();
      process.kill(first, 'SIGKILL');
      await expect.poll(relayNow).not.toBe(first);
      await expect.poll(async () => textAt(await placeNow(), '/files')).toBe('server.js');
      expect(await current().observe('env_one')).toMatchObject([{ state: 'ready', restarts: 0 }]);
    });

    test('a service with the label of another Environment is not ended with it', async () => {
      await begin();
      const POSTERN_SERVICE = join(folder, 'bwrap', 'environments', 'env_two', 'services', 'web');
      await run({ variables: { POSTERN_SERVICE } });
      await becomes({ state: 'ready' });
      await current().apply({ environmentId: 'env_two', processes: [await desire(given.store, {})] });
      const find = () => current().observe('env_two');
      await expect.poll(find).toMatchObject([{ state: 'ready' }]);
      await current().remove('env_two');
      expect(await current().observe('env_one')).toMatchObject([{ state: 'ready', restarts: 0 }]);
      expect(await current().address('env_one', 'web')).not.toBeNull();
    });

    // oxlint-disable-next-line vitest/expect-expect -- becomes() asserts
    test.runIf(process.arch === 'x64')('memory that no process has mapped counts', async (context) => {
      if ((await openGroups()) === null) return context.skip('No control group was delegated.');
      await begin();
      await run({
        command: 'exec perl -e "$FILL"',
        variables: { FILL: hiddenMemory },
        memoryBytes: 200_000_000,
      });
      await becomes({
        state: 'failed',
        reason: 'used more than 200000000 bytes of memory, so Postern ended it',
      });
    });

    test.runIf(process.getuid?.() === 0)(
      'a network that an earlier version made as root is replaced',
      async () => {
        const network = join(folder, 'bwrap/environments/env_one/network');
        mkdirSync(network, { recursive: true });
        const earlier = spawn('unshare', ['--user', '--net', 'sleep', '1000'], {
          env: { POSTERN_NETWORK: network, PATH: process.env['PATH'] },
        });
        const ended = once(earlier, 'exit');
        writeFileSync(join(network, 'network.json'), JSON.stringify({ holder: earlier.pid }));
        await begin();
        await run({});
        await becomes({ state: 'ready', restarts: 0 });
        expect(await ended).toEqual([null, 'SIGKILL']);
      },
    );

    // oxlint-disable-next-line vitest/expect-expect -- becomes() asserts
    test('an Environment whose network ended gets a new one', async () => {
      await begin();
      await run({});
      await becomes({ state: 'ready' });
      killMarked('POSTERN_NETWORK');
      await becomes({ state: 'failed', reason: 'lost its network' });
      clock.now += 1_000;
      await becomes({ state: 'ready', restarts: 1 });
    });
  });
});
