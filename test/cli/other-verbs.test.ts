import { chmod, readFile, writeFile } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freePort } from '../../scripts/local-servers.ts';
import { version } from '../../src/platform/version.ts';
import { answerForms } from '../guides/guides.ts';
import { inTerminal, openWorld, type World } from './command-line.ts';

// What is asked of a key, of this machine and of configuration documents, and the pages of session-only routes.
let world: World;
let env: Record<string, string>;

beforeAll(async () => {
  world = await openWorld();
  env = { POSTERN_URL: world.server.origin, POSTERN_KEY: await world.newKey(['sites:write']) };
});
afterAll(async () => await world?.close());

const postern = async (args: string[], change: Record<string, string> = {}, input?: string) =>
  await world.postern(args, { env: { ...env, ...change }, ...(input === undefined ? {} : { input }) });

test('keys verify says what a key is, and a key that is not valid ends with 4', async () => {
  const { POSTERN_KEY: key = '', ...server } = env;
  const ran = await world.postern(['keys', 'verify', '--key-stdin', '--fields', 'keyType,scopes'], {
    env: server,
    input: key,
  });
  expect(ran).toMatchObject({ code: 0, out: 'personal\t["sites:write"]\n' });
  const wrong = await postern(['keys', 'verify'], { POSTERN_KEY: `${key.slice(0, -1)}-` });
  expect(wrong).toMatchObject({ code: 4, out: '' });
});

test('keys can answers yes with 0 and no with 1, and names the rule that forbids it', async () => {
  expect(await postern(['keys', 'can', 'sites:write'])).toEqual({ code: 0, out: 'yes\n', err: '' });
  const no = await postern(['keys', 'can', 'repos:read', '--repository', 'acme/website']);
  expect(no).toMatchObject({ code: 1, out: 'no\n' });
  expect(no.err).toContain('repos:read');
  const json = await postern(['keys', 'can', 'env:write', '--json']);
  expect(json).toMatchObject({ code: 1, err: '' });
  expect(JSON.parse(json.out)).toMatchObject({ ok: true, data: { allowed: false }, error: null });
  expect((await postern(['keys', 'can', 'everything'])).code).toBe(2);
  expect((await postern(['keys', 'can', 'sites:read'], { POSTERN_KEY: 'wrong' })).code).toBe(4);
});

test.each([
  ['keys', '/settings/keys'],
  ['notices', '/settings/notices'],
  ['users', '/admin/users'],
  ['groups', '/admin/groups'],
  ['audit', '/admin/audit'],
])('postern %s prints the page %s, without a request', async (word, path) => {
  const origin = `http://localhost:${await freePort()}`;
  const ran = await postern([word], { POSTERN_URL: origin, POSTERN_KEY: '' });
  expect(ran).toEqual({ code: 0, out: `${origin}${path}\n`, err: '' });
  const page = await world.browser.navigate(world.server.origin + path);
  expect(page.status).toBe(200);
  expect((await postern([word, 'unknown'])).code).toBe(2);
});

test('doctor finds no problem with a matching key and server', async () => {
  const { code, out } = await postern(['doctor']);
  expect(code).toBe(0);
  const lines = out
    .trimEnd()
    .split('\n')
    .map((line) => line.split('\t'));
  expect(lines.map(([check, state]) => [check, state])).toEqual([
    ['credentials', 'ok'],
    ['server', 'ok'],
    ['version', 'ok'],
    ['clock', 'ok'],
    ['sign-in', 'ok'],
  ]);
  expect(out).toContain(`${world.server.origin}, of POSTERN_URL, answers.`);
  expect(out).toContain('sites:read sites:write');
});

test('doctor reports problems with their fix', async () => {
  const failed = async (change: Record<string, string>) => {
    const { code, out } = await postern(['doctor', '--json'], change);
    const data: { check: string; state: string; fix: string | null }[] = JSON.parse(out).data;
    return { code, found: data.filter(({ state }) => state === 'failed') };
  };
  const contexts = join(world.home, '.config/postern/contexts.json');
  expect((await postern(['context', 'add', 'https://other.example.com'], { POSTERN_URL: '' })).code).toBe(0);
  await chmod(contexts, 0o640);
  expect(await failed({ POSTERN_URL: '' })).toMatchObject({
    code: 1,
    found: [{ check: 'credentials', fix: `Run: chmod 600 ${contexts}` }],
  });
  await chmod(contexts, 0o600);
  expect(await failed({})).toMatchObject({
    code: 1,
    found: [{ check: 'server', fix: expect.stringContaining('--context') }],
  });
  await writeFile(contexts, '{"current": null, "servers": {}}');
  expect(await failed({ POSTERN_URL: `http://localhost:${await freePort()}` })).toMatchObject({
    code: 1,
    found: [{ check: 'server', fix: expect.stringContaining('the network') }],
  });
  expect(await failed({ POSTERN_KEY: '' })).toMatchObject({
    code: 1,
    found: [{ check: 'sign-in', fix: expect.stringContaining('postern login') }],
  });
  expect(await failed({ POSTERN_KEY: 'wrong' })).toMatchObject({ code: 1, found: [{ check: 'sign-in' }] });
  const late = await listening((_, response) => {
    response.writeHead(401, {
      date: new Date(Date.now() - 3_600_000).toUTCString(),
      'postern-version': version,
    });
    response.end();
  });
  expect((await failed({ POSTERN_URL: late.origin })).found).toMatchObject([
    { check: 'clock' },
    { check: 'sign-in' },
  ]);
  await late.close();
});

test('another version of the server is reported once on stderr, and nothing is downloaded', async () => {
  const asked: (string | undefined)[] = [];
  const server = await listening((request, response) => {
    asked.push(request.url);
    response.writeHead(200, { 'content-type': 'application/json', 'postern-version': '9.9.9' });
    const page = new URLSearchParams(request.url?.split('?')[1]).get('page') ?? '1';
    response.end(
      JSON.stringify({
        data: [],
        metadata: { pagination: { current: Number(page), total: 2 } },
        error: null,
      }),
    );
  });
  const change = { POSTERN_URL: server.origin };
  const { code, out, err } = await postern(['sites', 'list', '--paginate'], change);
  expect({ code, out }).toEqual({ code: 0, out: '' });
  expect(err).toBe(
    `The server has the version 9.9.9, and this command line ${version}. ${server.origin}/cli/postern.mjs has the version of the server.\n`,
  );
  expect(asked).toEqual(['/api/v2/sites', '/api/v2/sites?page=2']);
  expect((await postern(['sites', 'list', '--quiet'], change)).err).toBe('');
  await server.close();
});

test('config get, set, diff, history and revert with an access token of an administrator', async () => {
  expect((await postern(['config', 'diff', 'access', '--version', '0'])).code).toBe(4);
  let visit: Promise<unknown> | undefined;
  const login = await inTerminal(['login', world.server.origin, '--scope', 'admin'], {
    env: { HOME: world.home },
    typed(shown) {
      const address = /(http\S+\/identity\/auth\?\S+)\s/.exec(shown)?.[1];
      if (address === undefined) return undefined;
      visit ??= answerForms(world.browser, address, [{ decision: 'allow' }]).then(
        async (last) => await fetch(String(last.headers['location'])),
      );
      return undefined;
    },
  });
  await visit;
  expect(login.code).toBe(0);
  const config = async (args: string[], input?: string) =>
    await world.postern(['config', ...args], input === undefined ? {} : { input });
  const read = await config(['get', 'access', '--json']);
  const { data, etag } = JSON.parse(read.out);
  const before = data.config.signInsPerAddressPerMinute;

  const next = JSON.stringify({ ...data.config, signInsPerAddressPerMinute: before - 1 });
  const diff = await config(['diff', 'access', '--input', '-'], next);
  expect(diff).toMatchObject({ code: 0, out: `signInsPerAddressPerMinute\t${before}\t${before - 1}\n` });
  const set = ['set', 'access', '--input', '-', '--if-match'];
  expect((await config([...set, etag, '--dry-run'], next)).code).toBe(0);
  expect((await config([...set, etag], next)).code).toBe(0);
  expect((await config([...set, etag], next)).code).toBe(6);
  expect((await config(['diff', 'access', '--version', '0'])).out).toBe(
    `signInsPerAddressPerMinute\t${before - 1}\t${before}\n`,
  );
  expect((await config(['diff', 'access', '--version', '99'])).code).toBe(3);
  expect((await config(['diff', 'access'])).code).toBe(2);
  expect((await config(['history', 'access', '--fields', 'version'])).out).toBe('1\n0\n');
  const changed = JSON.parse((await config(['get', 'access', '--json'])).out).etag;
  const revertTo = async (version: string) =>
    await config(['revert', 'access', '--version', version, '--if-match', changed]);
  // A higher limit needs a fresh sign-in, which an access token cannot show.
  const refused = await revertTo('0');
  expect(refused).toMatchObject({ code: 4, err: expect.stringContaining('needs a fresh sign-in') });
  expect((await revertTo('1')).code).toBe(0);
  expect((await config(['history', 'access', '--fields', 'version'])).out).toBe('2\n1\n0\n');
  expect(await readFile(join(world.home, '.config/postern/contexts.json'), 'utf8')).toContain('tokens');
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
