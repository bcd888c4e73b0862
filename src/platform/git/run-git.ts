import { spawn } from 'node:child_process';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { processesOf } from '../processes.ts';

/** Result of one run of git. `output` is complete: a run that would exceed `maxBytes` is ended with `too_large`. */
export type GitRun =
  | { readonly kind: 'done'; readonly output: Buffer }
  | { readonly kind: 'failed'; readonly complaint: string }
  | { readonly kind: 'timed_out' }
  | { readonly kind: 'too_large' }
  | { readonly kind: 'not_installed' };

/** Configuration for one run, by name. It reaches git through the environment, so no process list and no file shows it. */
export type GitConfig = Readonly<Record<string, string>>;

/** Characters of git's messages that are read to find out why it failed. */
const maxComplaintLength = 8 * 1024;
/** Interval between checks of the size of git's folder, in ms. */
const lookMs = 250;
/**
 * Runs the system's git in a clean environment: no configuration of this machine or its users, no prompts, no hooks
 * and no credential helpers.
 */
export async function runGit(
  args: readonly string[],
  options: {
    readonly config?: GitConfig;
    readonly env?: Readonly<Record<string, string>>;
    /** Milliseconds of real time after which git and its child processes are ended. */
    readonly timeoutMs: number;
    readonly maxBytes: number;
    /** A folder that git writes to, and the bytes at which it is ended. */
    readonly writesTo?: { readonly folder: string; readonly maxBytes: number };
    /** Memory of git and its child processes: a compressed answer can be a thousand times as large there. */
    readonly maxResidentBytes?: number;
    /** What git reads from its standard input. */
    readonly input?: string;
    /** Where git and ssh are: PATH of this process. */
    readonly searchPath: string;
  },
): Promise<GitRun> {
  const child = spawn('git', args, {
    env: {
      PATH: options.searchPath,
      ...baseEnvironment,
      ...asEnvironment({ ...baseConfig, ...options.config }),
      ...options.env,
    },
    stdio: ['pipe', 'pipe', 'pipe'],
    // A separate process group: git starts helpers such as git-remote-https, which must end with it.
    detached: true,
  });
  const end = () => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    } catch {
      // The group has already ended.
    }
  };
  // A run that fails early does not read its input.
  child.stdin.on('error', () => undefined).end(options.input ?? '');
  const output: Buffer[] = [];
  let bytes = 0;
  let complaint = '';
  let ended: GitRun | undefined;
  const timer = setTimeout(() => {
    ended = { kind: 'timed_out' };
    end();
  }, options.timeoutMs);
  child.stdout.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes <= options.maxBytes) return void output.push(chunk);
    ended ??= { kind: 'too_large' };
    end();
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    // Lines of the server are no messages of git.
    complaint = (complaint + text.replaceAll(/^remote: .*$/gm, '')).slice(0, maxComplaintLength);
  });
  const { writesTo, maxResidentBytes = 512 * 1024 * 1024 } = options;
  const watch = setInterval(() => {
    void Promise.all([
      writesTo === undefined ? 0 : bytesIn(writesTo.folder),
      child.pid === undefined ? [] : processesOf(child.pid),
    ]).then(([written, processes]) => {
      const resident = processes.reduce((sum, { residentBytes }) => sum + residentBytes, 0);
      // Its process id may belong to another process by now.
      if (child.exitCode !== null || child.signalCode !== null) return;
      if (written <= (writesTo?.maxBytes ?? 0) && resident <= maxResidentBytes) return;
      ended ??= { kind: 'too_large' };
      end();
    });
  }, lookMs);
  const code = await new Promise<number | null | 'not_installed'>((resolve) => {
    child.once('error', (error: NodeJS.ErrnoException) =>
      resolve(error.code === 'ENOENT' ? 'not_installed' : null),
    );
    child.once('close', resolve);
  });
  clearTimeout(timer);
  clearInterval(watch);
  if (code === 'not_installed') return { kind: 'not_installed' };
  if (ended !== undefined) return ended;
  return code === 0 ? { kind: 'done', output: Buffer.concat(output) } : { kind: 'failed', complaint };
}

/** Bytes of the files directly in a folder. A file that was removed meanwhile does not count. */
async function bytesIn(folder: string): Promise<number> {
  const names = await readdir(folder).catch(() => []);
  const sizes = await Promise.all(
    names.map((name) =>
      stat(join(folder, name)).then(
        ({ size }) => size,
        () => 0,
      ),
    ),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}

/** https://git-scm.com/docs/git#_environment_variables */
const baseEnvironment: Readonly<Record<string, string>> = {
  LC_ALL: 'C',
  HOME: '/nonexistent',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_TERMINAL_PROMPT: '0',
  // A program that prints nothing; otherwise git prompts the user for a password.
  GIT_ASKPASS: 'true',
  SSH_ASKPASS: 'true',
  // References that replace one object by another would change what a commit contains.
  GIT_NO_REPLACE_OBJECTS: '1',
  GIT_OPTIONAL_LOCKS: '0',
};

/** https://git-scm.com/docs/git-config */
const baseConfig: GitConfig = {
  'core.hooksPath': '/dev/null',
  'core.fsmonitor': 'false',
  'credential.helper': '',
  'fetch.recurseSubmodules': 'false',
  'fetch.writeCommitGraph': 'false',
  'gc.auto': '0',
  'http.followRedirects': 'false',
  'maintenance.auto': 'false',
  'protocol.version': '2',
  // Folders in DATA_DIR can belong to another user of the machine, for instance in a container.
  'safe.directory': '*',
};

/** https://git-scm.com/docs/git-config#ENVIRONMENT */
function asEnvironment(config: GitConfig): Record<string, string> {
  const entries = Object.entries(config);
  return {
    GIT_CONFIG_COUNT: String(entries.length),
    ...Object.fromEntries(
      entries.flatMap(([name, value], at) => [
        [`GIT_CONFIG_KEY_${at}`, name],
        [`GIT_CONFIG_VALUE_${at}`, value],
      ]),
    ),
  };
}
