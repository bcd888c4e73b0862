import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, symlinkSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { openBuildLog } from '../../src/features/engine/build-log.ts';
import { type BuildLimits, EngineUnavailable } from '../../src/features/engine/contract.ts';
import { openGroups } from '../../src/features/engine/local/cgroups.ts';
import { tenantUser } from '../../src/features/engine/local/tenant.ts';
import { engineContract, hiddenMemory, nothing, sleeps } from './engine-contract.ts';
import { createMachine, isBwrapMissing, programs } from './local-machine.ts';

const { folder, blobs, local } = createMachine();

function harness(isolation: 'process' | 'bwrap') {
  const root = join(folder, isolation);
  return {
    isIsolated: isolation === 'bwrap',
    async open(limits: Partial<BuildLimits>) {
      const engine = local(isolation, { limits });
      onTestFinished(() => engine.stop());
      await engine.prepare();
      return { engine, read: (digest: string) => blobs.read(digest) };
    },
    /** Folders, and processes that the commands of these tests start. */
    left: () => [
      ...readdirSync(join(root, 'builds')),
      ...programs().filter((line) => Object.values(sleeps).includes(line)),
    ],
  };
}

describe('local, plain processes', () => {
  const { open } = harness('process');
  engineContract(harness('process'));

  test('the sweep ends and removes the leftovers of a killed process', async () => {
    const { engine } = await open({});
    mkdirSync(join(folder, 'process/builds/old'));
    const orphan = spawn('sleep', ['1001'], { env: { POSTERN_BUILD: 'old', ...process.env } });
    const ended = once(orphan, 'exit');
    await once(orphan, 'spawn');
    expect(await engine.sweep(async () => ({ ...(await nothing()), builds: new Set(['old']) }))).toEqual([]);
    expect(await engine.sweep(nothing)).toEqual(['old']);
    expect(await ended).toEqual([null, 'SIGKILL']);
    expect(readdirSync(join(folder, 'process/builds'))).toEqual([]);
  });
});

describe.skipIf(isBwrapMissing)('local, bubblewrap', () => {
  engineContract(harness('bwrap'));

  async function linesOf(
    command: string,
    options: Parameters<typeof local>[1] & {
      variables?: Record<string, string>;
      onLine?: (cancel: () => void) => void;
    } = {},
  ) {
    const { variables = {}, onLine = () => undefined } = options;
    const controller = new AbortController();
    const engine = local('bwrap', options);
    const isolation = await engine.prepare();
    const lines: string[] = [];
    const log = openBuildLog({
      secrets: [],
      maxBytes: 10_000,
      now: () => 0,
      write({ text }) {
        lines.push(text);
        onLine(() => controller.abort());
      },
    });
    const job = { id: 'a-build', image: null, command, directory: '.', output: '.', variables, secrets: {} };
    const outcome = await engine.build({ ...job, fill: async () => undefined }, log, controller.signal);
    return { isolation, lines, outcome };
  }

  test('a folder that is hidden is not shown below folders with programs', async () => {
    expect((await linesOf('ls /usr/share | wc -l', { hidden: ['/usr/share'] })).lines).toEqual(['0']);
  });

  test('to the kernel, no command is root', async () => {
    const { lines } = await linesOf('read -r inside outside count </proc/self/uid_map; echo $outside $count');
    const user = process.getuid?.();
    expect(lines).toEqual([`${user === 0 ? tenantUser : user} 1`]);
    expect(tenantUser).not.toBe(0);
  });

  test('no kernel setting can be written, not even from namespaces inside the sandbox', async () => {
    const places = 'sys sysrq-trigger irq bus fs'.split(' ').map((name) => `/proc/${name}`);
    const writable = `find ${places.join(' ')} -writable 2>/dev/null | head -n 3;`;
    const inNested = `unshare -Urpf sh -c 'mount -t proc proc /tmp && find /tmp/sys -writable | head -n 3' 2>/dev/null;`;
    const covered = `unshare -Urm sh -c 'umount /proc/sys && find /proc/sys -writable | head -n 3' 2>/dev/null;`;
    expect((await linesOf(`${writable} ${inNested} ${covered} echo end`)).lines).toEqual(['end']);
  });

  // The numbers of the system calls are those of x86_64.
  test.runIf(process.arch === 'x64')(
    'a command has no files but its input and output, no keyring, no user namespace and no io_uring',
    async () => {
      const calls = {
        keyctl: [250, 0, -3, 0],
        clone: [56, 0x10000000, 0],
        x32: [0x40000000 + 39],
        io_uring: [425, 1, 0],
      };
      const perl = Object.entries(calls).map(
        ([name, [number, ...words]]) =>
          `$! = 0; my $got = syscall(${[number, ...words.concat(0, 0, 0, 0)].slice(0, 6).join()}); print "${name} ", $got < 0 ? $! + 0 : "done", "\n";`,
      );
      const { lines } = await linesOf(
        `ls /proc/self/fd | tr '\n' ' '; echo; unshare -U true 2>/dev/null || echo refused; perl -e '${perl.join(' ')}'`,
      );
      // File 3 is the folder that ls reads. 1 is EPERM and 38 ENOSYS.
      expect(lines).toEqual(['0 1 2 3 ', 'refused', 'keyctl 1', 'clone 1', 'x32 38', 'io_uring 38']);
    },
  );

  test('no process list shows the values of variables', async () => {
    const listed: string[] = [];
    const variables = { COLOR: 'a-value-of-the-test' };
    const { lines } = await linesOf(`echo started; ${sleeps.long}`, {
      variables,
      onLine(cancel) {
        listed.push(...programs());
        cancel();
      },
    });
    // A shell may also say that its command was terminated.
    expect(lines[0]).toBe('started');
    expect(listed.filter((line) => line.startsWith('bwrap'))).not.toEqual([]);
    expect(listed.filter((line) => line.includes('a-value-of'))).toEqual([]);
  });

  test('with a separate network, a build does not reach this machine', async (context) => {
    const server = createServer((socket) => socket.end('reached')).listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => void server.close());
    const address = server.address();
    const port = typeof address === 'object' ? address?.port : undefined;
    const reach = (host: string) => `bash -c 'cat </dev/tcp/${host}/${port}' 2>/dev/null || echo no;`;
    const { isolation, lines } = await linesOf(`${reach('127.0.0.1')} ${reach('10.0.2.2')}`);
    // A machine without /dev/net/tun, or where this user may not open it.
    if (isolation.kind === 'bwrap' && isolation.network === 'shared') return context.skip();
    expect(lines).toEqual(['no', 'no']);
  });

  test.runIf(process.arch === 'x64')('memory that no process has mapped counts', async (context) => {
    const limits = { memoryBytes: 200_000_000 };
    // Otherwise it would end after the time of a build, with all that memory until then.
    if ((await openGroups()) === null) return context.skip('No control group was delegated.');
    const { outcome } = await linesOf(`perl -e '${hiddenMemory}'`, { limits });
    expect(outcome).toMatchObject({ kind: 'failed', reason: 'out_of_memory' });
  });

  test('without slirp4netns, the network is shared, and prepare() says so', async () => {
    const programs = mkdtempSync(join(folder, 'programs-'));
    for (const name of ['bwrap', 'du', 'chmod', 'cp', 'mkdir', 'mount', 'setpriv', 'unshare'])
      symlinkSync(spawnSync('which', [name], { encoding: 'utf8' }).stdout.trim(), join(programs, name));
    const { isolation, lines } = await linesOf('echo fine', { searchPath: programs });
    expect(isolation).toMatchObject({ kind: 'bwrap', network: 'shared' });
    expect(lines).toEqual(['fine']);
  });

  test('without bwrap, the engine is unavailable, and says what to install', async () => {
    const engine = local('bwrap', { searchPath: '/nonexistent' });
    await expect(engine.prepare()).rejects.toThrow(/Install bubblewrap/);
    await expect(engine.prepare()).rejects.toBeInstanceOf(EngineUnavailable);
  });
});
