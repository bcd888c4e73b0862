import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startObjectStore, type TestObjectStore } from '../../scripts/object-store.ts';
import { zipOf } from '../archives/zip.ts';
import { Browser } from '../faults/browser.ts';
import {
  administrator,
  freePorts,
  type Installation,
  type Program,
  runCommand,
  startProgram,
} from '../faults/program.ts';
import { type BadWay, isObjectStoreMissing, settingOf, startBadWay } from './object-store.ts';

const folder = mkdtempSync(join(tmpdir(), 'postern-objects-'));
let server: TestObjectStore;
let way: BadWay;
let installation: Installation;
let program: Program | undefined;
let browser: Browser;
let key: string;

beforeAll(async () => {
  if (isObjectStoreMissing) return;
  server = await startObjectStore();
  way = await startBadWay(server);
  const { accessKey, secretKey } = server;
  installation = {
    dataDir: join(folder, 'data'),
    ports: await freePorts(),
    settings: {
      OBJECT_STORE_URL: settingOf(way.url),
      OBJECT_STORE_ACCESS_KEY: accessKey,
      OBJECT_STORE_SECRET_KEY: secretKey,
    },
  };
  program = await startProgram(installation);
  browser = new Browser(program.origin);
  await browser.signIn(administrator.email, administrator.password);
  const made = await browser.api('POST', '/me/tokens', {
    name: 'deploy',
    scopes: ['sites:write'],
    repositoryAccess: { mode: 'all' },
  });
  key = made.data.token;
});

afterAll(async () => {
  browser?.disconnect();
  await program?.end('SIGTERM');
  await way?.close();
  await server?.close();
  rmSync(folder, { recursive: true, force: true });
});

type Got = { readonly status: number; readonly bytes: Buffer; readonly isWhole: boolean };

/** A request to a content host or a listener, on loopback whatever its name. */
function get(url: string, headers: Record<string, string> = {}): Promise<Got> {
  const { port, pathname, host } = new URL(url);
  return new Promise((resolve, reject) => {
    const asked = request(
      { host: '127.0.0.1', port, path: pathname, headers: { host, ...headers } },
      (answer) => {
        const pieces: Buffer[] = [];
        const done = () =>
          resolve({ status: answer.statusCode ?? 0, bytes: Buffer.concat(pieces), isWhole: answer.complete });
        answer.on('data', (piece: Buffer) => void pieces.push(piece)).on('end', done);
        answer.on('error', done);
      },
    );
    asked.on('error', reject).end();
  });
}

async function publish(
  name: string,
  files: Record<string, string | Buffer>,
): Promise<{ id: string; url: string }> {
  const parts = Object.entries(files).map(([path, content]) => ({ name: path, content }));
  const body = { type: 'application/zip', body: zipOf(parts) };
  const made = await browser.asKey(key, 'POST', `/sites?name=${name}&visibility=public`, body);
  expect([made.status, made.text]).toEqual([201, expect.any(String)]);
  return JSON.parse(made.text).data;
}

const ready = async () =>
  JSON.parse(String((await get(`http://127.0.0.1:${installation.ports.operations}/readyz`)).bytes));
const large = Buffer.alloc(10 * 1024 * 1024, 'ten million bytes of a picture; ');

test.skipIf(isObjectStoreMissing)(
  'a site is published to the object store and served from it, whole, in parts, and without asking twice',
  async () => {
    const { url } = await publish('served', { 'index.html': '<p>Hello</p>', 'picture.png': large });
    expect(readdirSync(join(server.folder, 'blobs')).length).toBeGreaterThanOrEqual(2);
    expect(readdirSync(installation.dataDir)).not.toContain('blobs');
    expect(String((await get(url)).bytes)).toBe('<p>Hello</p>');
    way.set('none');
    expect((await get(`${url}picture.png`)).bytes.equals(large)).toBe(true);
    const part = await get(`${url}picture.png`, { range: 'bytes=9000000-9000009' });
    expect([part.status, String(part.bytes)]).toEqual([206, String(large.subarray(9_000_000, 9_000_010))]);
    expect(way.seen().filter((line) => line.startsWith('GET ') && line.includes('/blobs/'))).toHaveLength(1);
  },
);

test.skipIf(isObjectStoreMissing)(
  'FT-06: while the object store is unavailable, slow, cuts bodies or sends wrong bytes, content is 503 and never half a file, and is served again afterwards',
  async () => {
    for (const trouble of ['away', 'cut', 'wrong', 'slow', 'hangs', 'error'] as const) {
      const text = `<p>${trouble}</p>`.repeat(2_000);
      const { url } = await publish(`trouble-${trouble}`, {
        'index.html': text,
        'picture.png': Buffer.concat([large, Buffer.from(trouble)]),
      });
      way.set(trouble);
      for (const path of ['', 'picture.png']) {
        const answer = await get(`${url}${path}`);
        expect([trouble, path, answer.status, answer.isWhole]).toEqual([trouble, path, 503, true]);
        expect(answer.bytes.length).toBeLessThan(10_000);
      }
      way.set('none');
      await expect.poll(async () => String((await get(url)).bytes) === text).toBe(true);
    }
  },
);

test.skipIf(isObjectStoreMissing)(
  'FT-06: a publish that the object store does not take is 503 and changes nothing, and readiness tells why',
  async () => {
    const { id, url } = await publish('steady', { 'index.html': 'the first' });
    expect(String((await get(url)).bytes)).toBe('the first');
    way.set('error');
    expect((await ready()).parts).toEqual({ database: 'ok', kv: 'ok', blobs: 'unavailable' });
    const refused = await fetch(`${browser.origin}/api/v2/sites/${id}/content`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/zip' },
      body: new Uint8Array(zipOf([{ name: 'index.html', content: 'the second' }])),
    });
    expect([refused.status, JSON.parse(await refused.text()).error.code]).toEqual([503, 'store_unavailable']);
    expect(String((await get(url)).bytes)).toBe('the first');
    way.set('none');
    expect((await ready()).status).toBe('ok');
  },
);

test.skipIf(isObjectStoreMissing)(
  'fetched files are served after a restart, even while the store is unavailable',
  async () => {
    const { url } = await publish('kept', { 'index.html': 'kept', 'picture.png': large });
    await get(url);
    await get(`${url}picture.png`);
    expect((await program?.end('SIGTERM'))?.code).toBe(0);
    program = await startProgram(installation);
    way.set('away');
    expect((await get(`${url}picture.png`)).bytes.equals(large)).toBe(true);
    way.set('none');
  },
);

test.skipIf(isObjectStoreMissing)(
  'a start with a key that the store does not know tells what to fix, without the key',
  async () => {
    const settings = { ...installation.settings, OBJECT_STORE_SECRET_KEY: 'a-wrong-one-0123456789' };
    const other = { dataDir: join(folder, 'other'), ports: await freePorts(), settings };
    const refused = await runCommand(other, []);
    expect(refused.code).toBe(1);
    expect(refused.output).toContain('OBJECT_STORE_URL: the secret key does not belong to the access key');
    expect(refused.output).not.toContain('a-wrong-one');
    expect(refused.output).not.toMatch(/^\s+at /m);
  },
);
