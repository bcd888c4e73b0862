import { chmod, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { answerForms } from '../guides/guides.ts';
import { inTerminal, openWorld, type World } from './command-line.ts';

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
  const ran = await inTerminal(['login', world.server.origin, ...options], {
    env: { HOME: world.home },
    typed(shown) {
      const address = /(http\S+\/identity\/auth\?\S+)\s/.exec(shown)?.[1];
      if (address === undefined) return undefined;
      visit ??= answerForms(world.browser, address, [{ decision: 'allow' }]).then(async (last) => {
        const location = String(last.headers['location']);
        const other = new URL(location);
        other.searchParams.set('state', 'of another program');
        expect((await fetch(other)).status).toBe(400);
        return await fetch(location);
      });
      return undefined;
    },
  });
  await visit;
  return ran;
}

test('login by a redirect signs in, and only its user can read the credentials', async () => {
  const { code: ended, shown } = await signInByRedirect('--fields', 'server,credential');
  expect({ ended, shown }).toEqual({ ended: 0, shown: expect.stringMatching(/http\S+\s+tokens\s*$/) });
  expect((await stat(contexts)).mode & 0o777).toBe(0o600);
  const { code, out } = await world.postern(['whoami', '--json']);
  expect(code).toBe(0);
  expect(JSON.parse(out).data).toMatchObject({
    authMethod: 'access_token',
    scopes: expect.arrayContaining(['sites:write', 'env:write', 'repos:read']),
  });
});

test('commands at the same time renew an expired access token once, and none is signed out', async () => {
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

test('a sign-in that replaces another ends it at the server', async () => {
  expect((await signInByRedirect()).code).toBe(0);
  const first = await credential();
  expect((await signInByRedirect('--scope', 'repos:read')).code).toBe(0);
  expect((await credential())?.['refreshToken']).not.toBe(first?.['refreshToken']);
  expect((await world.postern(['repos', 'list'])).code).toBe(0);
  expect((await world.browser.api('GET', '/me/clients')).data).toHaveLength(1);
  const [server = ''] = Object.keys((await stored()).servers);
  const older = await stored();
  older.servers[server].credential = { ...first, expiresAt: 0 };
  const kept = await readFile(contexts, 'utf8');
  await writeFile(contexts, JSON.stringify(older), { mode: 0o600 });
  expect((await world.postern(['repos', 'list'])).code).toBe(4);
  await writeFile(contexts, kept, { mode: 0o600 });
  expect((await world.postern(['logout'])).code).toBe(0);
  expect((await world.browser.api('GET', '/me/clients')).data).toEqual([]);
});

test('login keeps offline access with --scope too, unless --no-offline', async () => {
  expect((await signInByRedirect('--scope', 'repos:read')).code).toBe(0);
  expect((await credential())?.['refreshToken']).toEqual(expect.any(String));
  expect((await signInByRedirect('--scope', 'repos:read', '--no-offline')).code).toBe(0);
  expect((await credential())?.['refreshToken']).toBeNull();
});

test('login without a terminal ends with 4 at once, and names the alternatives', async () => {
  for (const options of [[], ['--device']]) {
    const { code, out, err } = await world.postern(['login', world.server.origin, ...options]);
    expect({ code, out }).toEqual({ code: 4, out: '' });
    for (const way of ['POSTERN_KEY,', 'POSTERN_KEY_FILE', '--token-stdin']) expect(err).toContain(way);
  }
});

test('login --token-stdin neither stores nor replaces anything with a key that the server refuses', async () => {
  const before = await readFile(contexts, 'utf8');
  const login = async (input: string, ...options: string[]) =>
    await world.postern(['login', world.server.origin, '--token-stdin', ...options], { input });
  const key = await world.newKey(['sites:read']);
  const wrong = `${key.slice(0, -1)}${key.endsWith('0') ? '1' : '0'}`;
  const unknown = `app_pat_${'0'.repeat(40)}`;
  for (const input of ['hello', wrong, unknown])
    expect(await login(input)).toMatchObject({ code: 4, out: '' });
  expect((await login(wrong)).err).toContain('checksum');
  expect(await readFile(contexts, 'utf8')).toBe(before);
  expect((await login(unknown, '--no-check', '--context', 'unchecked')).code).toBe(0);
  await writeFile(contexts, before, { mode: 0o600 });
});

test('login with a code signs in, and never for the scope admin', async () => {
  const refused = await world.postern(['login', '--device', '--scope', 'admin offline_access']);
  expect(refused).toMatchObject({ code: 2, out: '' });
  let visit: Promise<unknown> | undefined;
  const ran = await inTerminal(['login', '--device', '--scope', 'repos:read'], {
    env: { HOME: world.home },
    typed(shown) {
      const [, page, code] = /Open (\S+) and type the code (\S+)\s/.exec(shown) ?? [];
      if (page === undefined || code === undefined) return undefined;
      visit ??= answerForms(world.browser, page, [
        { user_code: code },
        { confirm: 'yes' },
        { decision: 'allow' },
      ]);
      return undefined;
    },
  });
  await visit;
  expect(ran).toMatchObject({ code: 0 });
  expect(ran.shown).toContain('repos:read offline_access');
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
