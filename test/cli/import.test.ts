import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runPostern } from './command-line.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'postern-import-'));
  await writeFile(
    join(folder, 'vercel.json'),
    JSON.stringify({
      buildCommand: 'npm run build',
      outputDirectory: 'out',
      redirects: [{ source: '/a', destination: '/b' }],
      crons: [],
    }),
  );
  await writeFile(
    join(folder, 'lifecycle.yaml'),
    'version: "1.0.0"\nservices:\n- {name: docs, externalHttp: {defaultInternalHostname: x, defaultPublicUrl: docs.example.com}}\n',
  );
  await writeFile(join(folder, 'netlify.toml'), 'a = = b');
  await writeFile(join(folder, 'other.yaml'), 'a: 1');
});
afterAll(async () => await rm(folder, { recursive: true, force: true }));

const postern = async (...args: string[]) => await runPostern(['import', ...args], { cwd: folder });

test('stdout has only postern.yaml, stderr lists what was not translated', async () => {
  const { code, out, err } = await postern('vercel.json');
  expect({ code, out }).toEqual({
    code: 0,
    out: `version: 1
services:
  web:
    build:
      image: node:24
      command: npm run build
      output: out
    static: {}
`,
  });
  expect(err).toContain('  crons: Postern has no counterpart.\n');
  expect(err).toContain('There is also _redirects: --part _redirects\n');
  expect((await postern('vercel.json', '--part', '_redirects')).out).toBe('/a /b 308\n');
});

test('a file without any counterpart ends with 1, says so and prints no postern.yaml', async () => {
  await mkdir(join(folder, 'helm'));
  await writeFile(
    join(folder, 'helm/lifecycle.yaml'),
    'version: "1.0.0"\nservices:\n- {name: api, helm: {chart: {name: api}}}\n',
  );
  const { code, out, err } = await postern('helm/lifecycle.yaml');
  expect({ code, out }).toEqual({ code: 1, out: '' });
  expect(err).toContain('Nothing of helm/lifecycle.yaml could be translated.');
});

test('with --json, every part and the list are data', async () => {
  const { out } = await postern('lifecycle.yaml', '--json');
  expect(JSON.parse(out)).toEqual({
    ok: true,
    data: {
      files: {
        'postern.yaml':
          'version: 1\nservices:\n  docs:\n    external:\n      url: https://docs.example.com\n',
      },
      untranslated: [],
    },
    error: null,
  });
});

test.each([['absent.toml'], ['netlify.toml'], ['other.yaml']])('import %s is wrong usage', async (file) => {
  expect(await postern(file)).toMatchObject({ code: 2, out: '' });
});
