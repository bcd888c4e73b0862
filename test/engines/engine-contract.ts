import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { createGunzip } from 'node:zlib';
import { extract } from 'tar-stream';
import { describe, expect, onTestFinished, test } from 'vitest';
import { openBuildLog, type LogLine } from '../../src/features/engine/build-log.ts';
import type { BuildJob, BuildLimits, Engine } from '../../src/features/engine/contract.ts';

export type EngineHarness = {
  /** An engine with these limits and defaults for the others, and the artifact of a digest. */
  readonly open: (limits: Partial<BuildLimits>) => Promise<{
    readonly engine: Pick<Engine, 'build' | 'sweep'>;
    readonly read: (digest: string) => Promise<Readable>;
  }>;
  /** What the engine has left of builds: folders, processes and the like. */
  readonly left: () => Promise<readonly string[]> | readonly string[];
  /** Whether a build is kept from what is not its own. */
  readonly isIsolated: boolean;
  /** In which commands run. Absent: on the machine of the engine. */
  readonly image?: string;
};

export const generousLimits: BuildLimits = {
  timeMs: 60_000,
  processes: 200,
  memoryBytes: 1024 ** 3,
  fileBytes: 200 * 1024 ** 2,
  diskBytes: 500 * 1024 ** 2,
  outputFiles: 1_000,
};

type Files = Readonly<Record<string, string | { readonly to: string }>>;
/** Commands whose processes are recognized as those of this run. */
export const sleeps = { long: `sleep 1000.${process.pid}`, short: `sleep 0.05${process.pid}` };
/** In Perl, for x86_64: fills 400 MB that no process has mapped (memfd_create(2)). */
export const hiddenMemory =
  'my $name = "x"; open my $file, ">&=", syscall(319, $name, 0); print $file "x" x 1_000_000 for 1 .. 400; sleep 1000';
let builds = 0;
export const nothing = async () => ({ builds: new Set<string>(), environments: new Set<string>() });

/** What every engine promises about builds. Called inside a describe() of each implementation. */
export function engineContract({ open, left, isIsolated, image: ownImage }: EngineHarness): void {
  const image = ownImage ?? null;
  const isInPods = image !== null;

  async function build(
    command: string | null,
    {
      files = { 'a.txt': 'hello' },
      limits = {},
      ofBuild = {},
      secrets = {},
      signal = new AbortController().signal,
      onLine = () => undefined,
      ...rest
    }: Partial<Omit<BuildJob, 'command'>> & {
      files?: Files;
      limits?: Partial<BuildLimits>;
      /** Limits of this build only. */
      ofBuild?: NonNullable<BuildJob['limits']>;
      signal?: AbortSignal;
      onLine?: (line: LogLine) => void;
    } = {},
  ) {
    const { engine, read } = await open(limits);
    const lines: LogLine[] = [];
    const log = openBuildLog({
      secrets: Object.values(secrets),
      maxBytes: 100_000,
      now: () => 0,
      write(line) {
        lines.push(line);
        onLine(line);
      },
    });
    builds += 1;
    const job: BuildJob = {
      id: `build-${builds}`,
      image,
      command,
      directory: '.',
      output: '.',
      variables: {},
      secrets,
      limits: ofBuild,
      async fill(folder) {
        fill(folder, files);
        return undefined;
      },
      ...rest,
    };
    const outcome = await engine.build(job, log, signal);
    expect(await left()).toEqual([]);
    const output = lines.filter(({ stream }) => stream !== 'postern').map((line) => line.text);
    const entries = async () =>
      outcome.kind === 'built' ? await entriesOf(await read(outcome.artifact.digest)) : {};
    return { outcome, lines, output, entries };
  }

  test('a good build gives its output as one artifact, with modes and links', async () => {
    const { outcome, output, entries } = await build(
      'echo building; mkdir -p dist/sub; cp a.txt dist/sub; echo "#!/bin/sh" >dist/run; chmod 4755 dist/run; ln -s sub/a.txt dist/link',
      { files: { 'web/a.txt': 'hello', 'other.txt': 'not in the output' }, directory: 'web', output: 'dist' },
    );
    expect(outcome).toMatchObject({ kind: 'built', artifact: { files: 3, bytes: 15 } });
    expect(output).toEqual(['building']);
    expect(await entries()).toEqual({
      link: 'link to sub/a.txt',
      run: '755 #!/bin/sh\n',
      'sub/': 'directory',
      'sub/a.txt': '644 hello',
    });
  });

  test('the same output gives the same artifact, even without a command', async () => {
    const first = await build(null, { files: { 'b/two': '2', one: '1' } });
    const second = await build('mkdir x; cp -r . ../copy 2>/dev/null; rmdir x', {
      files: { one: '1', 'b/two': '2' },
    });
    expect(first.outcome.kind).toBe('built');
    expect(second.outcome).toEqual(first.outcome);
  });

  test('a command sees its variables, its secrets as files, and nothing of the environment of Postern', async () => {
    const { output } = await build(
      'printf "%s\\n" "$COLOR" "$EMPTY" "$CI"; cat "$BUILD_SECRETS_DIR/TOKEN"; echo; wc -c <"$BUILD_SECRETS_DIR/TOKEN"; env | grep -c "^NODE_\\|VITEST\\|DATABASE" || true',
      { variables: { COLOR: 'blue & "green"', EMPTY: '' }, secrets: { TOKEN: 'a-secret-token' } },
    );
    expect(output.map((line) => line.trim())).toEqual([
      'blue & "green"',
      '',
      'true',
      '[redacted]',
      '14',
      '0',
    ]);
  });

  test('the reason of a failed command has the exit status and the last lines', async () => {
    const { outcome, lines } = await build(
      'for i in 1 2 3; do echo "line $i"; done; echo broken >&2; exit 3',
    );
    expect(outcome).toMatchObject({
      kind: 'failed',
      reason: 'exited',
      message: expect.stringMatching(/^The command exited with 3 after [01] s\.$/) as string,
    });
    expect(outcome.kind === 'failed' && outcome.lastLines.toSorted()).toEqual([
      'broken',
      'line 1',
      'line 2',
      'line 3',
    ]);
    expect(lines.at(-1)?.text).toContain('The command exited with 3 after ');
  });

  test('a command that a signal ends, and one that does not exist, fail as in a shell', async () => {
    expect((await build('kill -9 $$')).outcome).toMatchObject({
      message: expect.stringContaining('137') as string,
    });
    expect((await build('no-such-program')).outcome).toMatchObject({
      message: expect.stringContaining('127') as string,
    });
  });

  test('a build is asked to end, and can do so itself', async () => {
    const controller = new AbortController();
    const command = `trap "echo asked; exit 0" TERM; echo ready; while :; do ${sleeps.short}; done`;
    const { outcome, output } = await build(command, {
      signal: controller.signal,
      onLine: ({ text: line }) => line === 'ready' && controller.abort(),
    });
    expect(outcome).toEqual({ kind: 'cancelled' });
    expect(output).toContain('asked');
  });

  test('a build over its time limit is killed, even if it ignores the request to end', async () => {
    const { outcome } = await build(`trap "" TERM; while :; do ${sleeps.short}; done`, {
      limits: { timeMs: 500 },
    });
    expect(outcome).toMatchObject({ kind: 'failed', reason: 'timed_out' });
  });

  test('limits of a build take precedence over those of the engine', async () => {
    const { outcome } = await build(sleeps.long, { ofBuild: { timeMs: 500 } });
    expect(outcome).toMatchObject({ kind: 'failed', reason: 'timed_out' });
    expect(outcome.kind === 'failed' && outcome.message).toContain('within 1 s');
  });

  test('a build whose inputs are unreadable rejects with that error, and leaves nothing', async () => {
    const away = new Error('away');
    await expect(build('echo ran', { fill: () => Promise.reject(away) })).rejects.toBe(away);
    expect(await left()).toEqual([]);
  });

  test('a build that is cancelled ends, before its command and during it', async () => {
    const controller = new AbortController();
    const { outcome } = await build(`echo started; ${sleeps.long}`, {
      signal: controller.signal,
      onLine: ({ text: line }) => line === 'started' && controller.abort(),
    });
    expect(outcome).toEqual({ kind: 'cancelled' });
    const { outcome: never, output } = await build('echo started', { signal: AbortSignal.abort() });
    expect([never, output]).toEqual([{ kind: 'cancelled' }, []]);
  });

  // The kubelet's log of it takes minutes of a processor, which the cluster shares with everything else.
  test('a build that prints a gigabyte is not delayed, and its log is cut', {
    timeout: 660_000,
  }, async () => {
    const { outcome, lines } = await build(
      'yes "a line of the gigabyte" | head -c 1000000000; echo; echo the end',
      { limits: { timeMs: 600_000 } },
    );
    expect(outcome).toMatchObject({ kind: 'built' });
    expect(lines.length).toBeLessThan(6_000);
    expect(lines.at(-1)?.text).toBe('the end');
  });

  // Kubernetes limits the processes of a pod by a setting of its nodes.
  test.skipIf(isInPods)('a build that forks too often is ended', async () => {
    const { outcome } = await build(`n=0; while [ $n -lt 500 ]; do ${sleeps.long} & n=$((n+1)); done; wait`, {
      limits: { processes: 60 },
    });
    expect(outcome).toMatchObject({ kind: 'failed', reason: 'too_many_processes' });
  });

  test('a build that takes too much memory is ended', async () => {
    const { outcome } = await build(
      `x=0123456789abcdef; n=0; while [ $n -lt 24 ]; do x=$x$x; n=$((n+1)); done; ${sleeps.long}`,
      {
        limits: { memoryBytes: 64 * 1024 ** 2 },
      },
    );
    expect(outcome).toMatchObject({ kind: 'failed', reason: 'out_of_memory' });
  });

  test('a build that fills its disk is ended, in its own folder and in the temporary one', async () => {
    for (const folder of ['.', '"${TMPDIR:-/tmp}"']) {
      const fillIt = `n=0; while :; do n=$((n+1)); head -c 4000000 /dev/zero >${folder}/$n; done`;
      const { outcome } = await build(fillIt, { limits: { diskBytes: 20_000_000 } });
      expect(outcome).toMatchObject({ kind: 'failed', reason: 'disk_full' });
    }
  });

  test('a build that writes too large a file fails', async () => {
    const { outcome } = await build('exec head -c 3000000 /dev/zero >large', {
      limits: { fileBytes: 1_000_000 },
    });
    expect(outcome).toMatchObject({ kind: 'failed', reason: 'exited' });
    expect(outcome.kind === 'failed' && outcome.fix).toContain('1000000 bytes');
  });

  test('processes that a build leaves behind end with it', async () => {
    const { outcome } = await build(
      `${sleeps.long} & (setsid ${sleeps.long} &) ; nohup ${sleeps.long} >/dev/null 2>&1 & echo done`,
    );
    expect(outcome).toMatchObject({ kind: 'built' });
  });

  test.each([
    ['a link to a file of the machine', 'ln -s /etc/passwd dist/x'],
    ['a link to its own inputs', 'ln -s ../a.txt dist/x'],
    ['a pipe', 'mkfifo dist/x'],
  ])('%s in the output is refused', async (_, command) => {
    const { outcome } = await build(`mkdir dist; ${command}`, { output: 'dist' });
    expect(outcome).toMatchObject({ kind: 'failed', reason: 'unsafe_output' });
    expect(outcome.kind === 'failed' && outcome.message).toMatch(/^x in the output /);
  });

  test('a missing output, or a link out of the folder, is refused', async () => {
    for (const command of ['true', 'ln -s /etc dist', 'ln -s .. dist', 'echo x >dist']) {
      const { outcome } = await build(command, { output: 'dist' });
      expect(outcome).toMatchObject({ kind: 'failed', reason: 'no_output' });
    }
  });

  test('a folder that the inputs do not have, or inputs that are missing, are reported before anything runs', async () => {
    const { outcome } = await build('echo ran', { directory: 'web' });
    expect(outcome).toMatchObject({ kind: 'failed', reason: 'no_directory' });
    const gone = { reason: 'no_source', message: 'The branch is gone.', fix: 'Choose another.' } as const;
    const other = await build('echo ran', { fill: async () => gone });
    expect(other.outcome).toMatchObject({ kind: 'failed', ...gone });
    expect(other.output).toEqual([]);
  });

  // The program in the pod has a separate limit.
  test.skipIf(isInPods)('an output of too many files is refused', async () => {
    const { outcome } = await build('touch 1 2 3 4 5 6', { limits: { outputFiles: 5 } });
    expect(outcome).toMatchObject({ kind: 'failed', reason: 'output_too_large' });
  });

  test('folders without permissions are removed, and readable as output', async () => {
    const { outcome } = await build(
      'mkdir -p dist/locked; touch dist/locked/x; chmod 0 dist/locked; mkdir gone; chmod 0 gone',
      {
        output: 'dist',
      },
    );
    expect(outcome).toMatchObject({ kind: 'built', artifact: { files: 1 } });
  });

  test('the sweep removes unknown builds, and skips those under way', async () => {
    const { engine } = await open({});
    const controller = new AbortController();
    const write = (line: LogLine) => line.text === 'started' && started();
    let started: () => void = () => undefined;
    const hasStarted = new Promise<void>((resolve) => {
      started = resolve;
    });
    const log = openBuildLog({
      secrets: [],
      maxBytes: 1_000,
      now: () => 0,
      write: (line) => void write(line),
    });
    const job = {
      id: 'under-way',
      image,
      command: `echo started; ${sleeps.long}`,
      directory: '.',
      output: '.',
      variables: {},
      secrets: {},
    };
    const outcome = engine.build({ ...job, fill: async () => undefined }, log, controller.signal);
    await hasStarted;
    expect(await engine.sweep(nothing)).toEqual([]);
    controller.abort();
    expect(await outcome).toEqual({ kind: 'cancelled' });
  });

  describe.skipIf(!isIsolated)('a build cannot reach what is not its own', () => {
    test('files of this machine: DATA_DIR, HOME and files that only root reads', async () => {
      // An image has its own.
      const ofMachine = isInPods ? '' : '/etc/shadow /var/lib';
      const { output } = await build(
        `for place in "$PLACE" "$OLD_HOME" /root/.ssh /run/docker.sock ${ofMachine}; do cat "$place" 2>/dev/null || ls "$place" 2>/dev/null || echo no; done`,
        { variables: { PLACE: import.meta.dirname, OLD_HOME: process.env['HOME'] ?? '/root' } },
      );
      expect(new Set(output)).toEqual(new Set(['no']));
    });

    test('it can write only in its own folders', async () => {
      const { output } = await build(
        'for place in / /usr /etc /dev /run /opt /proc; do (echo x >"$place/x") 2>/dev/null && echo "wrote $place"; done; for place in . "$HOME" /tmp /dev/shm; do echo x >"$place/x" && echo ok; done',
      );
      expect(output).toEqual(['ok', 'ok', 'ok', 'ok']);
    });

    test('other processes, and the folders and secrets of other builds', async () => {
      const other: ChildProcess = spawn('sleep', ['1001'], {
        env: { ...process.env, SECRET: 'of-another-process' },
      });
      onTestFinished(() => void other.kill());
      await once(other, 'spawn');
      const neighbour = new AbortController();
      let started: () => void = () => undefined;
      const hasStarted = new Promise<void>((resolve) => {
        started = resolve;
      });
      const first = build(`echo "a trace" >trace-of-the-neighbour; echo started; ${sleeps.long}`, {
        signal: neighbour.signal,
        secrets: { TOKEN: 'secret-of-the-neighbour' },
        onLine: () => started(),
      });
      await hasStarted;
      const { engine } = await open({});
      const lines: string[] = [];
      const log = openBuildLog({
        secrets: [],
        maxBytes: 100_000,
        now: () => 0,
        write: (line) => lines.push(line.text),
      });
      const command = `kill -0 ${other.pid} 2>/dev/null && echo "can signal"; ls /proc | grep -c '^[0-9]'; cat /proc/*/environ 2>/dev/null | grep -c 'of-another\\|of-the-neighbour'; find / -path /usr -prune -o -path /proc -prune -o -name 'trace-of-*' -print 2>/dev/null; ls "$BUILD_SECRETS_DIR"`;
      const job = {
        id: 'curious',
        image,
        command,
        directory: '.',
        output: '.',
        variables: {},
        secrets: {},
      };
      await engine.build({ ...job, fill: async () => undefined }, log, new AbortController().signal);
      neighbour.abort();
      await first;
      expect(Number(lines[0])).toBeLessThan(10);
      expect(lines.slice(1)).toEqual(['0']);
    });

    test('variables that change how programs start do so only in the sandbox', async () => {
      // With it, the loader of glibc lists the libraries of a program and does not run it (ld.so(8)).
      const { outcome } = await build('exit 1', { variables: { LD_TRACE_LOADED_OBJECTS: '1' } });
      expect(outcome.kind).toBe('built');
    });
  });
}

function fill(folder: string, files: Files): void {
  for (const [path, content] of Object.entries(files)) {
    const at = join(folder, path);
    mkdirSync(dirname(at), { recursive: true });
    if (typeof content === 'string') writeFileSync(at, content);
    else symlinkSync(content.to, at);
  }
}

async function entriesOf(tar: Readable): Promise<Record<string, string>> {
  const entries: Record<string, string> = {};
  for await (const entry of tar.pipe(createGunzip()).pipe(extract())) {
    const { name, type, mode, linkname } = entry.header;
    if (type === 'symlink') entries[name] = `link to ${linkname}`;
    else if (type === 'directory') entries[name] = 'directory';
    else entries[name] = `${mode.toString(8)} ${await text(entry)}`;
    entry.resume();
  }
  return entries;
}
