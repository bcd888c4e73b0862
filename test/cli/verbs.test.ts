import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { bundled } from '../../cli/build.ts';
import { freePort } from '../../scripts/local-servers.ts';
import { version } from '../../src/platform/version.ts';
import { zipOf } from '../archives/zip.ts';
import { openWorld, runPostern, type World } from './command-line.ts';

let world: World;
let env: Record<string, string>;
let site: { id: string; url: string };

beforeAll(async () => {
  world = await openWorld();
  env = {
    POSTERN_URL: world.server.origin,
    POSTERN_KEY: await world.newKey(['sites:write', 'env:write', 'repos:write']),
  };
  const archive = join(world.home, 'site.zip');
  await writeFile(archive, zipOf([{ name: 'index.html', content: '<p>first</p>' }]));
  const made = await world.postern(
    ['sites', 'create', '--file', archive, '--name', 'Handbook', '--visibility', 'public', '--json'],
    { env },
  );
  site = JSON.parse(made.out).data;
});

afterAll(async () => await world?.close());

const postern = async (args: string[], input?: string) =>
  await world.postern(args, { env, ...(input === undefined ? {} : { input }) });

test('piped, a list has a line for each item, tabs between its fields, and no header', async () => {
  const { code, out, err } = await postern([
    'sites',
    'list',
    '--fields',
    'id,name,owner.kind,version.number',
  ]);
  expect({ code, out, err }).toEqual({ code: 0, out: `${site.id}\tHandbook\tuser\t1\n`, err: '' });
});

test('with --json, a success is an envelope of the data', async () => {
  const { code, out } = await postern(['sites', 'list', '--json', '--fields', 'id']);
  expect(code).toBe(0);
  expect(JSON.parse(out)).toEqual({
    ok: true,
    data: [{ id: site.id }],
    error: null,
    pagination: { current: 1, total: 1, items: 1, limit: 25 },
  });
});

test('one field of an object is printed without anything else', async () => {
  const { out } = await postern(['sites', 'get', site.id, '--fields', 'url']);
  expect(out).toBe(`${site.url}\n`);
});

test('a file of a site is printed as it is', async () => {
  expect(await postern(['sites', 'download', site.id, 'index.html'])).toEqual({
    code: 0,
    out: '<p>first</p>',
    err: '',
  });
});

test('--paginate prints every page', async () => {
  for (const name of ['Second', 'Third']) await postern(['sites', 'create', '--name', name]);
  const { out } = await postern(['sites', 'list', '--limit', '1', '--paginate', '--fields', 'name']);
  expect(out.split('\n').toSorted()).toEqual(['', 'Handbook', 'Second', 'Third']);
});

test('a dry run prints the request and changes nothing', async () => {
  const { code, out, err } = await postern([
    'sites',
    'change',
    site.id,
    '--name',
    'Other',
    '--dry-run',
    '--json',
  ]);
  expect({ code, err }).toEqual({ code: 0, err: '' });
  expect(JSON.parse(out).data).toEqual({
    method: 'PATCH',
    url: `${world.server.origin}/api/v2/sites/${site.id}`,
    ifMatch: null,
    body: { name: 'Other' },
  });
  expect((await postern(['sites', 'get', site.id, '--fields', 'name'])).out).toBe('Handbook\n');
});

test('an empty text is an empty list', async () => {
  const options = ['--name', 'Docs', '--purpose', 'Docs', '--tools', '{}', '--clients', ''];
  const { code, out } = await postern(['agents', 'add', ...options, '--dry-run', '--json']);
  expect(code).toBe(0);
  expect(JSON.parse(out).data.body).toMatchObject({ clients: [] });
});

test('a deletion without a terminal needs --yes', async () => {
  const made = await postern(['sites', 'create', '--name', 'Short', '--fields', 'id']);
  const id = made.out.trim();
  expect(await postern(['sites', 'delete', id])).toMatchObject({ code: 2, out: '' });
  expect(await postern(['sites', 'delete', id, '--yes', '--fields', 'status'])).toMatchObject({
    code: 0,
    out: 'deleted\n',
  });
});

test('api sends any request, with a body from stdin', async () => {
  const made = await postern(
    ['api', 'POST', '/repositories', '--input', '-', '--json'],
    JSON.stringify({ fullName: 'acme/website', cloneUrl: 'https://git.example.com/acme/website.git' }),
  );
  expect(JSON.parse(made.out)).toMatchObject({ ok: true, data: { fullName: 'acme/website' } });
  const read = await postern(['repos', 'get', 'acme/website', '--fields', 'fullName']);
  expect(read.out).toBe('acme/website\n');
});

test.each(['/me/tokens', '/me/../me/tokens', '/me//tokens/', '/ME/%74okens?page=1', '/api/v2/me/tokens'])(
  'api refuses the session-only route %s before it sends anything',
  async (path) => {
    let requests = 0;
    const server = await listening((_, response) => {
      requests += 1;
      response.end('{}');
    });
    const ran = await runPostern(['api', 'get', path], {
      env: { ...env, POSTERN_URL: server.origin, HOME: world.home },
    });
    await server.close();
    expect(ran).toMatchObject({ code: 2, out: '' });
    expect(requests).toBe(0);
  },
);

test('a key comes from a file or from stdin, and never from two places', async () => {
  const { POSTERN_KEY: key = '', ...server } = env;
  const file = join(world.home, 'key');
  await writeFile(file, `${key}\n`);
  const whoami = ['whoami', '--fields', 'keyType'];
  expect((await world.postern(whoami, { env: { ...server, POSTERN_KEY_FILE: file } })).out).toBe(
    'personal\n',
  );
  expect((await world.postern([...whoami, '--key-stdin'], { env: server, input: key })).out).toBe(
    'personal\n',
  );
  expect(await world.postern(whoami, { env: { ...env, POSTERN_KEY_FILE: file } })).toMatchObject({ code: 2 });
});

// Exit code 0 is everywhere above; 1 needs a server that is broken.
const failures: [name: string, code: number, error: string, args: string[], env?: Record<string, string>][] =
  [
    ['an unknown command', 2, 'usage', ['sites', 'lst']],
    ['an unknown option', 2, 'usage', ['sites', 'list', '--mien']],
    ['an option with a wrong value', 2, 'usage', ['sites', 'list', '--status', 'gone']],
    ['a missing argument', 2, 'usage', ['sites', 'get']],
    ['a field that the result does not have', 2, 'usage', ['sites', 'list', '--fields', 'nmae']],
    ['a plain http address', 2, 'usage', ['sites', 'list'], { POSTERN_URL: 'http://postern.example.com' }],
    ['a value that the server refuses', 2, 'invalid_query', ['sites', 'list', '--limit', '0']],
    ['a site that does not exist', 3, 'site_not_found', ['sites', 'get', 'none']],
    ['no credential', 4, 'authentication_required', ['sites', 'list'], { POSTERN_KEY: '' }],
    ['a key that is not valid', 4, 'invalid_credential', ['sites', 'list'], { POSTERN_KEY: 'wrong' }],
    ['a conflict', 6, 'precondition_failed', ['versions', 'publish', 'SITE', '1', '--if-match', '"v9"']],
  ];

test.each(failures)('%s ends with %i and the code %s', async (_, code, error, args, change) => {
  const words = args.map((word) => (word === 'SITE' ? site.id : word));
  const plain = await world.postern(words, { env: { ...env, ...change } });
  expect(plain).toMatchObject({ code, out: '' });
  expect(plain.err).toContain(`(${error})`);
  const json = await world.postern([...words, '--json'], { env: { ...env, ...change } });
  expect(json).toMatchObject({ code, err: '' });
  expect(JSON.parse(json.out)).toMatchObject({ ok: false, data: null, error: { code: error } });
});

test('an unreachable server ends with 7', async () => {
  const origin = `http://localhost:${await freePort()}`;
  const ran = await world.postern(['sites', 'list'], { env: { ...env, POSTERN_URL: origin } });
  expect(ran).toMatchObject({ code: 7, out: '' });
  expect(ran.err).toContain(origin);
});

test.each([
  [429, '3600', 5],
  [503, '3600', 7],
  [500, '', 1],
  [302, '', 1],
])('the status %i with Retry-After "%s" ends with %i at once', async (status, retryAfter, code) => {
  const seen: (string | undefined)[] = [];
  const other = await listening((request, response) => {
    seen.push(request.headers.authorization);
    response.end('{}');
  });
  const server = await listening((_, response) => {
    response.writeHead(status, {
      ...(retryAfter === '' ? {} : { 'retry-after': retryAfter }),
      ...(status === 302 ? { location: `${other.origin}/api/v2/sites` } : {}),
    });
    response.end();
  });
  const ran = await world.postern(['sites', 'list'], { env: { ...env, POSTERN_URL: server.origin } });
  await Promise.all([server.close(), other.close()]);
  expect(ran).toMatchObject({ code, out: '' });
  expect(seen).toEqual([]);
});

test('an error message does not repeat the input, which may be a key', async () => {
  const key = env['POSTERN_KEY'] ?? '';
  for (const args of [[key], ['sites', key], ['sites', 'list', key], ['sites', 'list', '--limit', key]]) {
    const { code, out, err } = await postern(args);
    expect({ args, code, shows: (out + err).includes(key) }).toEqual({ args, code: 2, shows: false });
  }
});

test('the server serves this file, and its digest as sha256sum reads it', async () => {
  const address = `${world.server.origin}/cli/postern.mjs`;
  const file = await fetch(address);
  const bytes = Buffer.from(await file.arrayBuffer());
  expect(bytes.equals(await readFile(bundled))).toBe(true);
  const digest = createHash('sha256').update(bytes).digest('hex');
  const etag = `"${digest}"`;
  expect(file.headers.get('etag')).toBe(etag);
  expect(await (await fetch(`${address}.sha256`)).text()).toBe(`${digest}  postern.mjs\n`);
  expect((await fetch(address, { headers: { 'if-none-match': etag } })).status).toBe(304);
});

test('--version and --help read nothing of the working folder and need no home', async () => {
  const { code, out } = await runPostern(['--version'], { cwd: world.home });
  expect({ code, out }).toEqual({ code: 0, out: `${version}\n` });
  expect(await runPostern(['sites', 'list', '--help'])).toMatchObject({ code: 0, err: '' });
});

test('llms prints every verb', async () => {
  const { out } = await runPostern(['llms']);
  expect(out).toBe(await readFile(join(import.meta.dirname, '../../docs/reference/llms.txt'), 'utf8'));
});

test('the completion of bash knows groups, verbs and options', async () => {
  const script = join(world.home, 'completion.bash');
  await writeFile(script, (await runPostern(['completion', 'bash'])).out);
  const completed = (...words: string[]) =>
    execFileSync(
      'bash',
      [
        '-c',
        `source "$0"; COMP_WORDS=(postern "$@"); COMP_CWORD=$#; _postern; echo "\${COMPREPLY[*]}"`,
        script,
        ...words,
      ],
      { encoding: 'utf8' },
    ).trim();
  expect(completed('vers')).toBe('versions');
  expect(completed('sites', 'cre')).toBe('create');
  expect(completed('config', 'get', 'ac')).toBe('access');
  expect(completed('sites', 'get', 'k3v9', '--fi')).toBe('--fields');
});

async function listening(listener: RequestListener) {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('The server has no port.');
  return {
    origin: `http://127.0.0.1:${address.port}`,
    close: async () => await new Promise<void>((resolve) => server.close(() => resolve())),
  };
}
