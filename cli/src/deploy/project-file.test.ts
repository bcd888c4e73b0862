import { mkdir, mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { outputFolder } from './output-folder.ts';
import { projectFrom } from './project-file.ts';

const origin = 'https://postern.example.com';

let cwd: string;
beforeAll(async () => {
  cwd = await mkdtemp(join(tmpdir(), 'postern-project-'));
  for (const name of ['web/dist', 'docs/out', 'public']) await mkdir(join(cwd, name), { recursive: true });
  await symlink('/etc', join(cwd, 'private'));
});
afterAll(async () => await rm(cwd, { recursive: true, force: true }));

test('postern.yaml names the site and the folder', async () => {
  const text = `version: 1\nsite: { id: k3v9x0q2m7, server: '${origin}', folder: web/dist }\n`;
  expect(await projectFrom(text, origin)).toEqual({ site: 'k3v9x0q2m7', folders: ['web/dist'] });
});

test('without a folder, it is the output of a static service; without an output there is none', async () => {
  const text = `version: 1
services:
  web: { build: { directory: web, output: dist }, static: {} }
  api: { build: { directory: api, output: out }, run: { port: 80 } }
  whole: { build: {}, static: {} }
`;
  expect(await projectFrom(text, origin)).toEqual({ site: undefined, folders: ['web/dist'] });
  expect(await projectFrom('', origin)).toEqual({ site: undefined, folders: [] });
});

test('a file that names another server, or that is no YAML, is an error', async () => {
  await expect(projectFrom('site: { server: "https://other.example.com" }', origin)).rejects.toMatchObject({
    exitCode: 2,
  });
  await expect(projectFrom('site: { server: 1 }', origin)).rejects.toMatchObject({ exitCode: 2 });
  await expect(projectFrom('a: 1\nsite: {', origin)).rejects.toMatchObject({ exitCode: 2 });
});

test('one folder is chosen; of several a person is asked, and without a terminal it is an error', async () => {
  const asked: string[] = [];
  const io = (canAsk: boolean, answer = '') => ({
    canAsk,
    async ask(question: string) {
      asked.push(question);
      return answer;
    },
  });
  const choose = async (named: string[], canAsk = false, answer = '') =>
    await outputFolder(undefined, { cwd, named }, io(canAsk, answer));
  expect(await choose([])).toBe(join(cwd, 'public'));
  expect(await choose(['web/dist'])).toBe(join(cwd, 'web/dist'));
  expect(await choose(['web/dist', 'docs/out'], true, 'docs/out\n')).toBe(join(cwd, 'docs/out'));
  expect(asked).toEqual(['Which folder? web/dist, docs/out: ']);
  await expect(choose(['web/dist', 'docs/out'])).rejects.toMatchObject({ exitCode: 2 });
  await expect(choose(['absent'])).rejects.toThrow('postern.yaml names the folder absent');
});

test('a folder that nobody typed cannot lead out of the working folder', async () => {
  for (const name of ['..', '../..', 'private', '/etc'])
    await expect(
      outputFolder(undefined, { cwd, named: [name] }, { canAsk: false, ask: async () => '' }),
    ).rejects.toMatchObject({
      exitCode: 2,
    });
  expect(await outputFolder('private', { cwd, named: [] }, { canAsk: false, ask: async () => '' })).toBe(
    join(cwd, 'private'),
  );
});
