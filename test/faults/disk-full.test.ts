import { execFileSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync, statfsSync, writeSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Browser } from './browser.ts';
import { tellRecovery } from './figures.ts';
import { timeUntil, untilHeard, watch } from './fleet.ts';
import { administrator, freePorts, type Installation, type Program, startProgram } from './program.ts';

// A server whose DATA_DIR is a small separate disk: a tmpfs that only its process sees, so it needs no root where people may
// have namespaces, and goes with the process.
const folder = mkdtempSync(join(tmpdir(), 'postern-full-'));
const unshare = ['unshare', ...(process.getuid?.() === 0 ? ['-m'] : ['-Urm'])];
const disk = [...unshare, 'sh', '-c', `mount -t tmpfs -o size=640m tmpfs ${folder} && exec "$@"`, 'sh'];
const isMissing = process.env['CI'] !== 'true' && !canMount();

function canMount(): boolean {
  try {
    execFileSync(disk[0] ?? '', [...disk.slice(1), 'true'], { stdio: 'ignore' });
    return true;
  } catch {
    console.warn('This machine cannot create a separate disk (unshare, mount).');
    return false;
  }
}

let installation: Installation;
let program: Program;
let browser: Browser;
let key: string;
let site: { id: string; url: string };

/** The disk as only the server sees it. */
const filler = () => `/proc/${program.pid}/root${folder}/fill`;

/** Until only so much is left. */
function fillBut(bytes: number): void {
  const { bavail, bsize } = statfsSync(join(filler(), '..'));
  const file = openSync(filler(), 'a');
  for (let left = bavail * bsize - bytes; left > 0; left -= 1024 ** 2)
    writeSync(file, Buffer.alloc(1024 ** 2));
  closeSync(file);
}

function fill(): void {
  const file = openSync(filler(), 'a');
  for (const size of [1024 ** 2, 4096]) {
    try {
      for (;;) writeSync(file, Buffer.alloc(size));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
    }
  }
  closeSync(file);
}

async function ask(
  url: string,
  headers: Record<string, string> = {},
  sent?: { method: string; body: string },
) {
  const { host, port, pathname } = new URL(url);
  return await new Promise<{ status: number; text: string }>((resolve, reject) => {
    const asking = request(
      {
        host: '127.0.0.1',
        port,
        path: pathname,
        method: sent?.method ?? 'GET',
        headers: { host, ...headers },
      },
      (answer) => {
        const pieces: Buffer[] = [];
        answer.on('data', (piece: Buffer) => void pieces.push(piece)).on('error', reject);
        answer.on('end', () =>
          resolve({ status: answer.statusCode ?? 0, text: Buffer.concat(pieces).toString() }),
        );
      },
    );
    asking.on('error', reject).end(sent?.body);
  });
}

const api = (path: string, headers: Record<string, string>, sent?: { method: string; body: string }) =>
  ask(`${browser.origin}/api/v2${path}`, headers, sent);
const withKey = async () => (await api('/auth/context', { authorization: `Bearer ${key}` })).status;
const session = async () =>
  (await api('/me/tokens', { cookie: `__Host-postern_session=${browser.session}` })).status;
const page = async () => (await ask(site.url)).status;
let edition = 0;
const publish = async () =>
  (
    await api(
      `/sites/${site.id}/content`,
      { authorization: `Bearer ${key}`, 'content-type': 'text/html' },
      { method: 'PUT', body: `<p>${(edition += 1)}</p>` },
    )
  ).status;
const rename = async () =>
  (
    await api(
      `/sites/${site.id}`,
      { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      { method: 'PATCH', body: JSON.stringify({ name: `edition ${(edition += 1)}` }) },
    )
  ).status;
const operations = async (path: string) =>
  await ask(`http://127.0.0.1:${installation.ports.operations}${path}`);

beforeAll(async () => {
  if (isMissing) return;
  installation = { dataDir: folder, ports: await freePorts(), launcher: disk };
  program = await startProgram(installation);
  browser = new Browser(program.origin);
  await browser.signIn(administrator.email, administrator.password);
  const { headers, data } = await browser.api('GET', '/config/api-keys');
  await browser.api(
    'PUT',
    '/config/api-keys',
    { ...data.policy, rateLimitPerMinute: 1_000_000 },
    { 'if-match': String(headers['etag']) },
  );
  const wanted = { name: 'robot', scopes: ['sites:write'], repositoryAccess: { mode: 'all' } };
  key = (await browser.api('POST', '/me/tokens', wanted)).data.token;
  const body = { type: 'text/html', body: Buffer.from('<p>here</p>') };
  site = JSON.parse((await browser.asKey(key, 'POST', '/sites?visibility=public', body)).text).data;
});
afterAll(async () => {
  browser?.disconnect();
  await program?.end('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

test.skipIf(isMissing)(
  'FT-07 while the disk is full, keys and sites are served, changes are refused, the alarm is told, and it heals by itself',
  async () => {
    fill();
    // It looks once a second.
    await timeUntil(rename, 503);
    const answers = await watch({ withKey, session, page, publish, rename }, async (heard) => {
      // Whatever was given back meanwhile is taken again.
      for (let times = 0; times < 8; times += 1) {
        fill();
        await timeUntil(rename, 503);
        for (const answers of Object.values(heard)) await untilHeard(answers, 15);
      }
    });
    const heard = Object.fromEntries(
      Object.entries(answers).map(([name, all]) => [name, [...new Set(all)].toSorted((a, b) => a - b)]),
    );
    expect(heard).toEqual({
      withKey: [200],
      session: [200],
      page: [200],
      publish: expect.toSatisfy((all: number[]) => all.every((status) => [503, 507].includes(status))),
      rename: [503],
    });
    expect((await operations('/livez')).status).toBe(200);
    expect((await operations('/readyz')).status).toBe(200);
    const [, free] = /^postern_data_free_bytes (\S+)$/m.exec((await operations('/metrics')).text) ?? [];
    expect(Number(free)).toBeLessThan(64 * 1024 ** 2);
    expect(program.output()).toContain('the disk is nearly full');

    rmSync(filler());
    await Promise.all(
      Object.entries({ publish, rename }).map(async ([who, question]) =>
        tellRecovery(who, await timeUntil(question, 200)),
      ),
    );
    expect(program.output()).toContain('the disk has free space again');
  },
);

test.skipIf(isMissing)(
  'FT-07 uploads stop while there is still room to revoke a key, and go on when there is more',
  async () => {
    fillBut(160 * 1024 ** 2);
    await timeUntil(publish, 507);
    expect(await rename()).toBe(200);
    const wanted = { name: 'leaked', scopes: ['sites:read'], repositoryAccess: { mode: 'all' } };
    const leaked = (await browser.api('POST', '/me/tokens', wanted)).data;
    expect((await browser.api('DELETE', `/me/tokens/${leaked.id}`)).status).toBe(200);
    expect((await api('/auth/context', { authorization: `Bearer ${leaked.token}` })).status).toBe(401);
    expect(await page()).toBe(200);
    rmSync(filler());
    await timeUntil(publish, 200);
  },
);

test('FT-07 an unwritable log ends no server', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'postern-log-'));
  const mute = { dataDir, ports: await freePorts(), isMute: true, settings: { LOG_LEVEL: 'debug' } };
  const quiet = await startProgram(mute);
  const asking = new Browser(quiet.origin);
  await asking.signIn(administrator.email, administrator.password);
  expect((await asking.api('GET', '/me/tokens')).status).toBe(200);
  asking.disconnect();
  // It also logs that it stops.
  expect(await quiet.end('SIGTERM')).toEqual({ code: 0, signal: null });
  rmSync(dataDir, { recursive: true, force: true });
});
