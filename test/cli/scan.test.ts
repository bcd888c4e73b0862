import { mkdir, mkdtemp, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { keySamples } from '../key-samples.ts';
import { type Run, runPostern, type Typing } from './command-line.ts';

const samples = keySamples();
const [key = '', service = ''] = samples.flatMap(({ keys }) => keys);
const shown = (value: string) => value.slice(0, 20);
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'postern-scan-'));
  await mkdir(join(folder, 'sub/.git'), { recursive: true });
  const files: [string, string][] = [
    ['config.yaml', `server: x\n  key: ${key}\n`],
    [
      'clean.txt',
      samples
        .filter(({ keys }) => keys.length === 0)
        .map(({ text }) => text)
        .join('\n'),
    ],
    ['.gitignore', '.env\n'],
    ['.env', `KEY=${service}\n`],
    ['sub/.git/packed', key],
    ['sub/logo.png', `\0${key}`],
    ['sub/large.log', key],
  ];
  for (const [path, content] of files) await writeFile(join(folder, path), content);
  await truncate(join(folder, 'sub/large.log'), 10 * 1024 ** 2 + 1);
  await symlink('/etc/hostname', join(folder, 'sub/link'));
});
afterAll(async () => await rm(folder, { recursive: true, force: true }));

async function scan(args: string[], typing: Typing = {}): Promise<Run> {
  const ran = await runPostern(args, { cwd: folder, ...typing });
  // Whatever is printed in any test, no secret is.
  if ([key, service].some((one) => (ran.out + ran.err).includes(one.slice(20))))
    throw new Error('A secret was printed.');
  return ran;
}

test('the name of a file cannot steer the terminal, nor begin a line', async () => {
  const other = join(folder, 'sub/.git/hostile');
  await mkdir(other);
  // In many terminals it sets the clipboard of the person.
  await symlink('/etc/hostname', join(other, 'x\u001b]52;c;ZXZpbA==\u0007\ny'));
  const { err } = await scan(['scan', other]);
  expect(err).toBe(`Skipped: ${other}/x\\u001b]52;c;ZXZpbA==\\u0007\\ny (no regular file)\n`);
});

test('a folder: the position and the public part of each key, what is skipped, and the exit code 1', async () => {
  const { code, out, err } = await scan(['scan']);
  expect({ code, out }).toEqual({ code: 1, out: `config.yaml:2:8\t${shown(key)}…\tpersonal key\n` });
  expect(err).toContain(
    'Skipped: sub/link (no regular file), sub/large.log (more than 10 MiB), sub/logo.png (binary)\n',
  );
  expect(err).toContain('A key was found. (keys_found)');
});

test('a named file is read although .gitignore names it; keys scan is the same command', async () => {
  const { code, out } = await scan(['keys', 'scan', '.env', 'clean.txt']);
  expect({ code, out }).toEqual({ code: 1, out: `.env:1:5\t${shown(service)}…\tservice key\n` });
});

test('without keys, scan prints nothing and ends with 0', async () => {
  expect(await scan(['scan', 'clean.txt'])).toEqual({ code: 0, out: '', err: '' });
});

test('stdin is read for -, such as the history of a repository', async () => {
  expect((await scan(['scan', '-'], { input: `a\n+ ${key}\n` })).out).toMatch(/^stdin:2:3\t/);
});

test('with --json, the keys are the data of a failure', async () => {
  const { code, out, err } = await scan(['scan', '--json', 'config.yaml']);
  expect({ code, err }).toEqual({ code: 1, err: '' });
  expect(JSON.parse(out)).toMatchObject({
    ok: false,
    data: [{ path: 'config.yaml', line: 2, column: 8, key: shown(key), type: 'personal', form: 'current' }],
    error: { code: 'keys_found' },
  });
  expect(JSON.parse((await scan(['scan', '--json', 'clean.txt'])).out)).toEqual({
    ok: true,
    data: [],
    error: null,
  });
});

test.each([[['absent']], [['/dev/null']], [['--prefix', 'No Word', 'clean.txt']]])(
  'scan %j is wrong usage',
  async (args) => {
    expect(await scan(['scan', ...args])).toMatchObject({ code: 2, out: '' });
  },
);
