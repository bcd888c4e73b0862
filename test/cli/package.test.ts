import { execFile, execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { version } from '../../src/platform/version.ts';
import { keySamples } from '../key-samples.ts';

// The package as npm would publish it, in an empty folder, on the oldest Node that it supports and on the newest.
const root = join(import.meta.dirname, '../..');
const oldest = '22.12.0';
let folder: string;
let oldNode: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'postern-package-'));
  const npm = (...args: string[]) =>
    execFileSync('npm', [...args, '--no-audit', '--no-fund', '--loglevel=error']);
  npm('pack', join(root, 'cli'), '--pack-destination', folder);
  const [archive = ''] = await readdir(folder);
  await mkdir(join(folder, 'empty'));
  // Offline, because it needs nothing else.
  npm('install', '--offline', '--prefix', join(folder, 'empty'), join(folder, archive));
  const kept = join(root, 'node_modules/.cache', `node-${oldest}`);
  const name = `node-${process.platform === 'win32' ? 'win' : process.platform}-${process.arch}`;
  oldNode = join(kept, 'node_modules', name, 'bin/node');
  if ((await readFile(oldNode).catch(() => undefined)) === undefined)
    npm('install', '--prefix', kept, '--no-package-lock', `${name}@${oldest}`);
});
afterAll(async () => await rm(folder, { recursive: true, force: true }));

const installed = (path = '') => join(folder, 'empty/node_modules/@postern/cli', path);

async function run(node: string, args: readonly string[], server = '') {
  const file = installed('dist/postern.mjs');
  const options = { env: { HOME: folder, POSTERN_URL: server, POSTERN_KEY: 'key' } };
  return await promisify(execFile)(node, [file, ...args], options).then(
    ({ stdout }) => ({ code: 0, stdout }),
    ({ code, stdout }: { code: number; stdout: string }) => ({ code, stdout }),
  );
}

test('the package has the program, its page and the licenses, and needs nothing', async () => {
  const files = (await readdir(installed(), { recursive: true })).toSorted();
  expect(files).toEqual(
    [
      'README.md',
      'dist',
      'dist/LICENSE',
      'dist/THIRD-PARTY.txt',
      'dist/postern.mjs',
      'package.json',
    ].toSorted(),
  );
  const manifest = JSON.parse(await readFile(installed('package.json'), 'utf8'));
  expect(manifest).toMatchObject({ version, license: 'Apache-2.0', engines: { node: `>=${oldest}` } });
  expect([manifest.private, manifest.dependencies]).toEqual([undefined, undefined]);
  const licenses = await readFile(installed('dist/THIRD-PARTY.txt'), 'utf8');
  for (const name of ['commander', 'ignore', 'smol-toml', 'yaml']) expect(licenses).toContain(`${name}\n\n`);
});

test('npm links it as postern', async () => {
  const linked = join(folder, 'empty/node_modules/.bin/postern');
  expect(execFileSync(process.execPath, [linked, '--version'], { encoding: 'utf8' })).toBe(`${version}\n`);
});

test.each([
  ['the oldest Node', () => oldNode, oldest],
  ['this Node', () => process.execPath, process.versions.node],
])('on %s it answers, finds keys and asks a server', async (_, node, expected) => {
  expect(execFileSync(node(), ['--version'], { encoding: 'utf8' })).toBe(`v${expected}\n`);
  expect(await run(node(), ['--version'])).toEqual({ code: 0, stdout: `${version}\n` });
  const file = join(folder, 'leak.txt');
  await writeFile(file, keySamples()[0]?.text ?? '');
  expect(await run(node(), ['scan', file])).toMatchObject({ code: 1 });
  const server = createServer((_request, response) => {
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ data: [{ id: 'k3v9x0q2m7' }], metadata: {} }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  const listed = await run(node(), ['sites', 'list', '--fields', 'id'], `http://127.0.0.1:${port}`);
  expect(listed).toEqual({ code: 0, stdout: 'k3v9x0q2m7\n' });
  await new Promise((resolve) => server.close(resolve));
});
