import { chmod, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { answerForms } from '../guides/guides.ts';
import { openWorld, type World } from './command-line.ts';

let world: World;
let contexts: string;

beforeAll(async () => {
  world = await openWorld();
  contexts = join(world.home, '.config/postern/contexts.json');
});
afterAll(async () => await world?.close());

const stored = async () => JSON.parse(await readFile(contexts, 'utf8'));
const credential = async () =>
  Object.values<{ credential: Record<string, unknown> }>((await stored()).servers)[0]?.credential;

/** Signs in by the redirect to this machine, as a person in a browser. */
async function signInByRedirect(...options: string[]) {
  let visit: Promise<unknown> | undefined;
  const ran = await world.postern(['login', world.server.origin, ...options], {
    said(err) {
      const address = /^http\S+\/identity\/auth\?\S+$/m.exec(err)?.[0];
      if (address === undefined) return;
      visit ??= answerForms(world.browser, address, [{ decision: 'allow' }]).then(async (last) => {
        const location = String(last.headers['location']);
        const other = new URL(location);
        other.searchParams.set('state', 'of another program');
        expect((await fetch(other)).status).toBe(400);
        return await fetch(location);
      });
    },
  });
  await visit;
  return ran;
}

test('login by a redirect signs in, and only its user can read the credentials', async () => {
  expect(await signInByRedirect('--fields', 'server,credential')).toMatchObject({
    code: 0,
    out: `${world.server.origin}\ttokens\n`,
  });
  expect((await stat(contexts)).mode & 0o777).toBe(0o600);
  const { code, out } = await world.postern(['whoami', '--json']);
  expect(code).toBe(0);
  expect(JSON.parse(out).data).toMatchObject({
    authMethod: 'access_token',
    scopes: expect.arrayContaining(['sites:write', 'env:write', 'repos:read']),
  });
});

test('commands at the same time renew an ended access token once, and none is signed out', async () => {
  const before = await credential();
  const ended = await stored();
  for (const server of Object.values<{ credential: { expiresAt: number } }>(ended.servers))
    server.credential.expiresAt = 0;
  await writeFile(contexts, JSON.stringify(ended), { mode: 0o600 });
  const runs = await Promise.all(
    Array.from({ length: 4 }, async () => await world.postern(['sites', 'list', '--json'])),
  );
  expect(runs.map(({ code }) => code)).toEqual([0, 0, 0, 0]);
  const after = await credential();
  expect(after?.['refreshToken']).not.toBe(before?.['refreshToken']);
  const connected = await world.browser.api('GET', '/me/clients');
  expect(connected.data).toHaveLength(1);
});

test('credentials that other users can read are refused', async () => {
  await chmod(contexts, 0o644);
  expect(await world.postern(['whoami'])).toMatchObject({ code: 2, out: '' });
  await chmod(contexts, 0o600);
});

test('a credential stays with its server: another POSTERN_URL is refused', async () => {
  const ran = await world.postern(['whoami'], { env: { POSTERN_URL: 'https://other.example.com' } });
  expect(ran).toMatchObject({ code: 2, out: '' });
});

test('logout ends the connection at the server', async () => {
  expect(await world.postern(['logout'])).toMatchObject({ code: 0 });
  expect((await credential()) ?? null).toBeNull();
  expect((await world.browser.api('GET', '/me/clients')).data).toEqual([]);
  expect(await world.postern(['whoami'])).toMatchObject({ code: 4 });
});

test('login with a code signs in, and never for the scope admin', async () => {
  const refused = await world.postern(['login', '--device', '--scope', 'admin offline_access']);
  expect(refused).toMatchObject({ code: 2, out: '' });
  let visit: Promise<unknown> | undefined;
  const ran = await world.postern(['login', '--device', '--scope', 'repos:read offline_access'], {
    said(err) {
      const [, page, code] = /^Open (\S+) and type the code (\S+)$/m.exec(err) ?? [];
      if (page === undefined || code === undefined) return;
      visit ??= answerForms(world.browser, page, [
        { user_code: code },
        { confirm: 'yes' },
        { decision: 'allow' },
      ]);
    },
  });
  await visit;
  expect(ran).toMatchObject({ code: 0 });
  expect(ran.err).toContain('repos:read offline_access');
  expect((await world.postern(['repos', 'list'])).code).toBe(0);
  expect((await world.postern(['sites', 'list'])).code).toBe(4);
});

test('contexts are added, listed and chosen; a key is stored from stdin', async () => {
  const { host } = new URL(world.server.origin);
  expect((await world.postern(['context', 'add', 'https://other.example.com'])).code).toBe(0);
  expect((await world.postern(['context', 'add', 'http://other.example.com'])).code).toBe(2);
  const key = await world.newKey(['sites:read']);
  const login = await world.postern(['login', world.server.origin, '--context', 'ci', '--token-stdin'], {
    input: key,
  });
  expect(login).toMatchObject({ code: 0 });
  expect((await world.postern(['context', 'list'])).out).toBe(
    [
      `${host}\t${world.server.origin}\ttokens\tfalse`,
      'other.example.com\thttps://other.example.com\t\tfalse',
      `ci\t${world.server.origin}\tkey\ttrue\n`,
    ].join('\n'),
  );
  expect((await world.postern(['sites', 'list'])).code).toBe(0);
  expect((await world.postern(['context', 'use', host])).code).toBe(0);
  expect((await world.postern(['sites', 'list'])).code).toBe(4);
  expect((await world.postern(['context', 'use', 'none'])).code).toBe(2);
});
