import { spawnSync } from 'node:child_process';
import { copyFile, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { bundled } from '../../cli/build.ts';
import { keySamples } from '../key-samples.ts';

const [key = ''] = keySamples().flatMap(({ keys }) => keys);
let home: string;

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'postern-hook-'));
  await mkdir(join(home, 'bin'));
  await symlink(process.execPath, join(home, 'bin/node'));
  await writeFile(join(home, 'bin/postern'), `#!/bin/sh\nexec node ${bundled} "$@"\n`, { mode: 0o755 });
  git('init', '--quiet');
  await copyFile(
    join(import.meta.dirname, '../../deploy/leak-kit/pre-commit'),
    join(home, '.git/hooks/pre-commit'),
  );
});
afterEach(async () => await rm(home, { recursive: true, force: true }));

function git(...args: string[]) {
  const identity = ['-c', 'user.name=A', '-c', 'user.email=a@example.com'];
  const { status, stderr } = spawnSync('git', [...identity, ...args], {
    cwd: home,
    encoding: 'utf8',
    env: { PATH: `${home}/bin:${process.env['PATH']}`, HOME: home },
  });
  return { status, stderr };
}

test('a commit with a key is refused, even if the file no longer has it', async () => {
  await writeFile(join(home, 'config.txt'), `a\nkey=${key}\n`);
  git('add', 'config.txt');
  await writeFile(join(home, 'config.txt'), 'a\n');
  const { status, stderr } = git('commit', '--message', 'one');
  expect(status).not.toBe(0);
  expect(stderr).toContain(`config.txt:2:5\t${key.slice(0, 20)}…`);
  expect(stderr).not.toContain(key);
});

test('a file that was added despite .gitignore is read', async () => {
  await writeFile(join(home, '.gitignore'), '.env\n');
  await writeFile(join(home, '.env'), key);
  git('add', '--force', '.gitignore', '.env');
  expect(git('commit', '--message', 'one').status).not.toBe(0);
});

test('everything else is committed: odd names, links to nothing, removals', async () => {
  await writeFile(join(home, 'a b\n"c.txt'), 'text');
  await writeFile(join(home, '--json'), 'text');
  await symlink('absent', join(home, 'link'));
  git('add', '--', 'a b\n"c.txt', '--json', 'link');
  expect(git('commit', '--message', 'one')).toMatchObject({ status: 0 });
  git('rm', '--quiet', 'link');
  expect(git('commit', '--message', 'two')).toMatchObject({ status: 0 });
});
