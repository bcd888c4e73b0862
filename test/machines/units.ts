import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * A unit of deploy/systemd as systemd would start it: its command, working directory, settings and state folder, with
 * /etc, /var/lib and /opt of a machine of the test's own.
 */
export type Machine = {
  /** In place of /etc/postern. */
  readonly etc: string;
  /** In place of /var/lib. */
  readonly state: string;
};

export type RunningUnit = {
  output(): string;
  /** Resolves with the exit code; null when a signal ended it. */
  readonly ended: Promise<number | null>;
  end(signal: 'SIGTERM' | 'SIGKILL'): Promise<number | null>;
};

const root = join(import.meta.dirname, '../..');
const folder = join(root, 'deploy/systemd');

export function startUnit(name: string, machine: Machine): RunningUnit {
  const unit = readFileSync(join(folder, `${name}.service`), 'utf8');
  const here = (text: string) => onMachine(text, machine);
  const all = (key: string) =>
    [...unit.matchAll(new RegExp(`^${key}=(.*)$`, 'gm'))].map(([, value = '']) => here(value));
  const one = (key: string) => {
    const [value, ...more] = all(key);
    if (value === undefined || more.length > 0) throw new Error(`${name} has not one ${key}.`);
    return value;
  };
  mkdirSync(join(machine.state, one('StateDirectory')), { recursive: true, mode: 0o700 });
  const files = all('EnvironmentFile').flatMap((path) => settingsIn(readFileSync(path, 'utf8')));
  const [program = '', ...args] = one('ExecStart').split(' ');
  const child = spawn(program, args, {
    cwd: one('WorkingDirectory'),
    env: Object.fromEntries([...files, ...all('Environment').map(pairOf)]),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  return watched(child);
}

/** Lines as systemd.exec(5) reads them: NAME="value", with # in front of a remark. */
function settingsIn(text: string): (readonly [string, string])[] {
  return text
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map(pairOf)
    .map(([name, value]) => [name, value.replace(/^"(.*)"$/, '$1')]);
}

function pairOf(line: string): readonly [string, string] {
  const at = line.indexOf('=');
  return [line.slice(0, at), line.slice(at + 1)];
}

export function onMachine(text: string, { etc, state }: Machine): string {
  return text
    .replaceAll('/etc/postern', etc)
    .replaceAll('%S', state)
    .replaceAll('/var/lib', state)
    .replaceAll('/opt/postern', root);
}

function watched(child: ChildProcess): RunningUnit {
  let printed = '';
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (chunk: Buffer) => (printed += chunk.toString()));
  const ended = once(child, 'exit').then(() => child.exitCode);
  return {
    output: () => printed,
    ended,
    async end(signal) {
      child.kill(signal);
      return await ended;
    },
  };
}
