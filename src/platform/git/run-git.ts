import { spawn } from 'node:child_process';

/** What one run of git gave. `output` is complete: a run that would exceed `maxBytes` is ended and has `too_large`. */
export type GitRun =
  | { readonly kind: 'done'; readonly output: Buffer }
  | { readonly kind: 'failed'; readonly complaint: string }
  | { readonly kind: 'timed_out' }
  | { readonly kind: 'too_large' }
  | { readonly kind: 'not_installed' };

/** Configuration for one run, by name. It reaches git through the environment, so no process list and no file shows it. */
export type GitConfig = Readonly<Record<string, string>>;

/** Bytes of git's messages that are read to find out why it failed. */
const maxComplaintBytes = 16 * 1024;

/**
 * Runs the system's git with an environment of its own: no configuration of this machine or its users, no prompts, no hooks
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
    stdio: ['ignore', 'pipe', 'pipe'],
    // A process group of its own: git starts helpers such as git-remote-https, which must end with it.
    detached: true,
  });
  const end = () => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    } catch {
      // The group has already ended.
    }
  };
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
    if (complaint.length < maxComplaintBytes) complaint += text;
  });
  const code = await new Promise<number | null | 'not_installed'>((resolve) => {
    child.once('error', () => resolve('not_installed'));
    child.once('close', resolve);
  });
  clearTimeout(timer);
  if (code === 'not_installed') return { kind: 'not_installed' };
  if (ended !== undefined) return ended;
  return code === 0 ? { kind: 'done', output: Buffer.concat(output) } : { kind: 'failed', complaint };
}

/** https://git-scm.com/docs/git#_environment_variables */
const baseEnvironment: Readonly<Record<string, string>> = {
  LC_ALL: 'C',
  HOME: '/nonexistent',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_TERMINAL_PROMPT: '0',
  // A program that answers nothing: git otherwise asks the user for a password.
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
