import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bundled } from '../../cli/build.ts';
import { Browser } from '../faults/browser.ts';
import { administrator, freePorts, type Program, startProgram } from '../faults/program.ts';

/** What a process of the command line printed, and how it ended. */
export type Run = { readonly code: number | null; readonly out: string; readonly err: string };

export type Typing = {
  readonly input?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Called with everything that stderr has so far, whenever there is more. */
  readonly said?: (err: string) => void;
  /** Presses Ctrl-C when it is aborted. */
  readonly interrupt?: AbortSignal;
};

/** A real server with its administrator signed in, and a home folder for the command line. */
export type World = {
  readonly server: Program;
  readonly browser: Browser;
  readonly home: string;
  /** Runs the bundled file, piped; `env` is all that it has besides its home folder. */
  postern(args: readonly string[], typing?: Typing): Promise<Run>;
  /** A key of the administrator, with these scopes. */
  newKey(scopes: readonly string[]): Promise<string>;
  close(): Promise<void>;
};

/** `settings`: of the server, besides the usual ones. */
export async function openWorld(settings: Readonly<Record<string, string>> = {}): Promise<World> {
  const home = await mkdtemp(join(tmpdir(), 'postern-cli-'));
  const server = await startProgram({ dataDir: join(home, 'data'), ports: await freePorts(), settings });
  const browser = new Browser(server.origin);
  await browser.signIn(administrator.email, administrator.password);
  let keys = 0;
  return {
    server,
    browser,
    home,
    postern: async (args, { env = {}, ...typing } = {}) =>
      await runPostern(args, { ...typing, env: { HOME: home, ...env } }),
    async newKey(scopes) {
      keys += 1;
      const made = await browser.api('POST', '/me/tokens', {
        name: `command line ${keys}`,
        scopes,
        repositoryAccess: { mode: 'all' },
      });
      return made.data.token;
    },
    async close() {
      await server.end('SIGTERM');
      await rm(home, { recursive: true, force: true });
    },
  };
}

/** The same in a pseudo terminal of 80 columns, which shows both outputs as one; `typed` answers what it shows. */
export async function inTerminal(
  args: readonly string[],
  {
    env = {},
    cwd,
    typed,
  }: Pick<Typing, 'env' | 'cwd'> & { readonly typed?: (shown: string) => string | undefined } = {},
): Promise<{ readonly code: number | null; readonly shown: string }> {
  const command = ['stty cols 80;', ...[process.execPath, bundled, ...args].map(quoted)].join(' ');
  const child = spawn('script', ['--quiet', '--return', '--command', command, '/dev/null'], {
    env: { PATH: process.env['PATH'], TERM: 'xterm', SHELL: '/bin/sh', ...env },
    ...(cwd === undefined ? {} : { cwd }),
  });
  let shown = '';
  child.stdout.on('data', (part: Buffer) => {
    shown += part.toString();
    const answer = typed?.(shown);
    if (answer !== undefined) child.stdin.write(answer);
  });
  child.stdin.on('error', () => undefined);
  await once(child, 'close');
  return { code: child.exitCode, shown };
}

function quoted(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}

export async function runPostern(
  args: readonly string[],
  { input = '', env = {}, cwd, said, interrupt }: Typing = {},
): Promise<Run> {
  const child = spawn(process.execPath, [bundled, ...args], { env, ...(cwd === undefined ? {} : { cwd }) });
  interrupt?.addEventListener('abort', () => child.kill('SIGINT'));
  let out = '';
  let err = '';
  child.stdout.on('data', (chunk: Buffer) => {
    out += chunk.toString();
  });
  child.stderr.on('data', (chunk: Buffer) => {
    err += chunk.toString();
    said?.(err);
  });
  // A process that reads no stdin may end before it is written.
  child.stdin.on('error', () => undefined);
  child.stdin.end(input);
  await once(child, 'close');
  return { code: child.exitCode, out, err };
}
