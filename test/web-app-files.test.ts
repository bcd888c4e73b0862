import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { adminPages } from './admin-pages.ts';
import { type Harness, openHarness, type Person, uiOrigin } from './harness.ts';

// How the built web app leaves the server. Needs `npm run build:ui`, which `npm test` does by itself.
const dist = join(import.meta.dirname, '../ui/dist');
let h: Harness;
let ada: Person;
beforeAll(async () => {
  h = await openHarness();
  ada = await h.person('Ada');
});
afterAll(() => h.close());

const get = (url: string, headers: Record<string, string> = {}) =>
  h.app.web.inject({ method: 'GET', url, headers: { host: new URL(uiOrigin).host, ...headers } });
const signedIn = () => ({ cookie: `__Host-postern_session=${ada.cookie}`, accept: 'text/html' });

async function named(ending: string): Promise<string[]> {
  const document = await readFile(join(dist, 'index.html'), 'utf8');
  return [...document.matchAll(/(?:src|href)="\/assets\/([^"]+)"/g)]
    .map(([, name = '']) => name)
    .filter((name) => name.endsWith(ending));
}

const compressed = async (names: readonly string[]) => {
  const sizes = names.map(async (name) => (await readFile(join(dist, 'assets', `${name}.gz`))).length);
  return (await Promise.all(sizes)).reduce((sum, one) => sum + one, 0);
};

test('the document loads at most 250 KiB of compressed script, and the chunk of a list at most 30 KiB more', async () => {
  const scripts = await named('.js');
  expect(scripts.map((name) => name.split('-')[0])).toEqual(['index', 'common']);
  expect(await compressed(scripts)).toBeLessThanOrEqual(250 * 1024);
  const built = await readdir(join(dist, 'assets'));
  for (const area of ['keys', 'environments', 'sites']) {
    const [chunk = '', ...others] = built.filter(
      (name) => name.startsWith(`${area}-`) && name.endsWith('.js'),
    );
    expect(others).toEqual([]);
    const text = await readFile(join(dist, 'assets', chunk), 'utf8');
    const imported = [...text.matchAll(/from\s*"\.\/(\w+)-/g)].map(([, name]) => name);
    expect(new Set(imported)).toEqual(new Set(['common', 'index']));
    expect(await compressed([chunk])).toBeLessThanOrEqual(30 * 1024);
  }
});

const environments = [
  '/environments',
  '/environments/new',
  '/environments/env_7bXk2mQ9sTzLr4VnYc3D?tab=log',
  '/environments/env_7bXk2mQ9sTzLr4VnYc3D/deploys/bld_3kTq9ZpW1xYb7LcD5mNa',
];
const sites = ['/sites', '/sites/new', '/sites/k3v9x0q2m7?tab=versions'];

test('the document has no inline code, a policy that would refuse it, and is not cached', async () => {
  const ofKey = ['', '/narrow', '/replace'].map((below) => `/settings/keys/4fKd02LmQx9Z${below}`);
  const others = [
    '/settings/clients',
    '/settings/agents',
    '/settings/agents/sessions/ags_3kTq9ZpW1xYb7LcD5mNa',
    '/settings/agents/approvals/agp_3kTq9ZpW1xYb7LcD5mNa',
    '/settings/connections',
    '/settings/command-line',
    '/settings/notices',
    '/settings/refusals',
    '/settings/password',
    '/settings/sessions',
    '/settings/passkeys',
  ];
  for (const path of [
    '/',
    '/settings/keys',
    '/settings/keys/new',
    ...ofKey,
    ...others,
    ...sites,
    ...environments,
    ...adminPages,
  ]) {
    const { statusCode, body, headers } = await get(path, signedIn());
    expect(statusCode).toBe(200);
    expect(body).not.toMatch(/<style|<script(?![^>]* src=)|\son\w+=|style=/);
    expect(headers['content-security-policy']).toBe(
      `default-src 'none'; script-src ${uiOrigin}/assets/; style-src ${uiOrigin}/assets/; img-src ${uiOrigin}/assets/; ` +
        `connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; ` +
        `require-trusted-types-for 'script'; trusted-types 'none'`,
    );
    expect(headers['cache-control']).toBe('no-store');
  }
});

test('a person without a session is sent to sign in and back', async () => {
  const { statusCode, headers } = await get('/settings/keys?state=all', { accept: 'text/html' });
  expect([statusCode, headers.location]).toEqual([
    303,
    '/auth/login?returnTo=%2Fsettings%2Fkeys%3Fstate%3Dall',
  ]);
});

test('a slash at the end redirects to the page itself, with its query', async () => {
  for (const [asked, page] of [
    ['/admin/', '/admin'],
    ['/settings/keys/?state=all&search=a/?b', '/settings/keys?state=all&search=a/?b'],
    ['/sites/k3v9x0q2m7/?tab=versions', '/sites/k3v9x0q2m7?tab=versions'],
    ['/admin/audit/evt_3kTq9ZpW1xYb7LcD5mNa/', '/admin/audit/evt_3kTq9ZpW1xYb7LcD5mNa'],
  ] as const) {
    const { statusCode, headers } = await get(asked, signedIn());
    expect([statusCode, headers.location]).toEqual([308, page]);
  }
  for (const absent of ['/nothing/', '//evil.example/', '/sites//evil.example/']) {
    const { statusCode, headers } = await get(absent, signedIn());
    expect([absent, statusCode, headers.location]).toEqual([absent, 404, undefined]);
  }
});

test('files are kept for ever and sent as small as the browser takes them', async () => {
  const [script = ''] = await named('.js');
  for (const [accepted, encoding] of [
    ['gzip, deflate, br', 'br'],
    ['gzip', 'gzip'],
    ['', undefined],
  ] as const) {
    const { statusCode, headers } = await get(`/assets/${script}`, { 'accept-encoding': accepted });
    expect([statusCode, headers['content-encoding'], headers['content-type']]).toEqual([
      200,
      encoding,
      'text/javascript; charset=utf-8',
    ]);
    expect(headers['cache-control']).toBe('public, max-age=31536000, immutable');
    expect(headers.vary).toBe('accept-encoding');
  }
});

test('only built files are below /assets', async () => {
  const [script = ''] = await named('.js');
  for (const name of [`${script}.gz`, 'index.html', '..%2findex.html', '%2e%2e%2findex.html', 'a.js', '']) {
    const { statusCode, headers } = await get(`/assets/${name}`);
    expect([name, statusCode]).toEqual([name, 404]);
    expect(headers['cache-control']).toBe('no-store');
  }
});
