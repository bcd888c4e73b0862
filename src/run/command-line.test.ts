import { spawnSync } from 'node:child_process';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { version } from '../platform/version.ts';
import { createCommandLine, pathOf, runCommandLine } from './command-line.ts';

let stdout: string;
let stderr: string;
beforeEach(() => {
  stdout = '';
  stderr = '';
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => (stdout += String(text)) !== '');
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => (stderr += String(text)) !== '');
});
afterEach(() => vi.restoreAllMocks());

/** Runs a command line that must not come as far as to read the settings. */
async function typed(...args: readonly string[]) {
  const code = await runCommandLine(args, () => {
    throw new Error('The settings were read.');
  });
  return { code, stdout, stderr };
}

test('every command has help that says what it does, with its arguments and options', async () => {
  const nothing = () => undefined;
  const program = createCommandLine({ onSettings: nothing, onExit: nothing });
  const all = program.commands.flatMap((command) => [command, ...command.commands]);
  expect(all.map((command) => pathOf(command).replace('npm start -- ', ''))).toContain('keys import');
  for (const command of all) {
    stdout = '';
    const words = pathOf(command).replace('npm start -- ', '').split(' ');
    expect(await typed(...words, '--help')).toMatchObject({ code: 0, stderr: '' });
    expect(stdout).toContain(`Usage: ${pathOf(command)} `);
    expect(command.description()).toMatch(/^[A-Z].*\.$/);
    for (const argument of command.registeredArguments) expect(argument.description).not.toBe('');
  }
});

test('the help of the program lists its commands and the exit codes', async () => {
  for (const asked of ['--help', '-h', 'help']) {
    stdout = '';
    expect((await typed(asked)).code).toBe(0);
    expect(stdout).toMatch(/Server:[^]*web [^]*doctor[^]*Exit codes:\n {2}0 [^]*\n {2}1 [^]*\n {2}2 /);
  }
});

test('--version prints the version', async () => {
  expect(await typed('--version')).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' });
});

test('a group without its command prints the help of the group, as wrong usage', async () => {
  expect(await typed('admin')).toMatchObject({ code: 2, stdout: '' });
  expect(stderr).toContain('reset-password <EMAIL>');
});

test.each([
  [['frobnicate'], 'there is no such command.', 'npm start --'],
  [['doktor'], 'there is no such command. Did you mean doctor?', 'npm start --'],
  [['audit', 'verfy'], 'there is no such command. Did you mean verify?', 'npm start -- audit'],
  [['doctor', '--jsn'], 'there is no such option. Did you mean --json?', 'npm start -- doctor'],
  [['keys', 'import'], 'FILE is missing.', 'npm start -- keys import'],
  [['keys', 'import', ''], 'FILE cannot be used. It is empty.', 'npm start -- keys import'],
  [['drill', 'now'], 'too many arguments: the command takes none.', 'npm start -- drill'],
  [
    ['secrets', 'rotate', 'KV_URL'],
    'NAME cannot be used. Allowed choices are SESSION_SECRET, ENCRYPTION_KEY, GRANT_SECRET.',
    'npm start -- secrets rotate',
  ],
  [
    ['audit', 'verify', '12'],
    'HEAD cannot be used. Write it as an earlier run printed it: 123:<64 hexadecimal digits>.',
    'npm start -- audit verify',
  ],
])('%j is wrong usage, with what is wrong and where the help is', async (args, mistake, help) => {
  expect(await typed(...args)).toEqual({
    code: 2,
    stdout: '',
    stderr: `postern: ${mistake}\nHelp: ${help} --help\n`,
  });
});

test.each([
  [['geheim']],
  [['--geheim']],
  [['-geheim']],
  [['all', 'geheim']],
  [['admin', 'geheim']],
  [['admin', 'login-link', 'geheim']],
  [['admin', 'reset-password', 'ada@example.com', 'geheim']],
  [['admin', 'reset-password', 'ada@example.com', '--password', 'geheim']],
  [['admin', 'reset-password', 'ada@example.com', '--password=geheim']],
  [['admin', 'reset-password', '-geheim']],
  [['admin', 'reset-passkeys', 'ada@example.com', 'geheim']],
  [['secrets', 'rotate', 'geheim']],
  [['secrets', 'rotate', `geheim' is invalid for argument 'NAME'. geheim`]],
  [['audit', 'verify', 'geheim\n(Did you mean geheim?)']],
  [['backup', 'FILE', '--with-secrets=geheim']],
  [['doctor', '--json', '--jsn\n(Did you mean geheim?)']],
])('%j: an argument that is not understood is not repeated, because it may be a secret', async (args) => {
  expect(await typed(...args)).toMatchObject({ code: 2, stdout: '' });
  expect(stderr).not.toContain('geheim');
});

test('help and wrong usage load neither the settings nor the code of a command', () => {
  const hook = `import { registerHooks } from 'node:module';
    registerHooks({ load(url, context, next) { console.log(url); return next(url, context); } });`;
  for (const args of [['keys', 'import', '--help'], ['frobnicate']]) {
    const { stdout: loaded } = spawnSync(
      process.execPath,
      ['--import', `data:text/javascript,${encodeURIComponent(hook)}`, 'src/main.ts', ...args],
      { encoding: 'utf8' },
    );
    expect(loaded).toContain('/src/run/command-line.ts');
    expect(loaded).not.toMatch(/src\/config\/(?:read|settings)\.ts|src\/operations\/|src\/composition\//);
  }
});
