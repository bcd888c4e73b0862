import { mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { writeFiles } from './write-files.ts';

async function newFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'postern-write-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  return folder;
}
const result = (...paths: string[]) => ({ data: { files: paths.map((path) => ({ path, content: path })) } });

test('every file is written and named; when one exists, none is written', async () => {
  const folder = await newFolder();
  expect((await writeFiles(result('.mcp.json', 'docs/AGENTS.md'), folder)).text).toBe(
    '.mcp.json\ndocs/AGENTS.md\n',
  );
  expect(await readFile(join(folder, 'docs/AGENTS.md'), 'utf8')).toBe('docs/AGENTS.md');
  await expect(writeFiles(result('new.txt', '.mcp.json'), folder)).rejects.toMatchObject({
    exitCode: 6,
    message: expect.stringContaining('.mcp.json'),
  });
  await expect(readFile(join(folder, 'new.txt'))).rejects.toThrow('ENOENT');
});

test('a path that leads out of the folder, or into .git, is refused before anything is written', async () => {
  const [folder, other] = [await newFolder(), await newFolder()];
  await symlink(other, join(folder, 'link'));
  await writeFile(join(folder, 'own.txt'), '');
  const hostile = [
    '../out.txt',
    '/etc/out.txt',
    'a/../../out.txt',
    'C:/out.txt',
    'link/new/out.txt',
    '.git/hooks/out',
  ];
  for (const path of hostile)
    await expect(writeFiles(result('before.txt', path), folder)).rejects.toMatchObject({ exitCode: 1 });
  expect(await readdir(other)).toEqual([]);
  expect(await readdir(folder)).toEqual(['link', 'own.txt']);
});
