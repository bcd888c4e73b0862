import { mkdtempSync, rmSync } from 'node:fs';
import { request, type IncomingMessage } from 'node:http';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { newRepository, type TestRepository } from '../git-repository.ts';
import { Browser } from './browser.ts';
import { administrator, freePorts, type Installation, type Program, startProgram } from './program.ts';

/**
 * The server is killed at every moment of a deploy, and started again: the deploy goes on, and what is served is whole.
 * FAULT_CYCLES says how often.
 */
const isCi = process.env['CI'] === 'true';
const cycles = Number(process.env['FAULT_CYCLES'] ?? (isCi ? 10 : 4));
/** A deploy of the two services takes about this long on a quiet machine, in ms. */
const deployMs = 4_000;

const file = `version: 1
services:
  web:
    build: { image: 'node:24', command: "mkdir -p dist && cp index.html dist", directory: web, output: dist }
    static: {}
    routes: { /api: api }
  api:
    build: { image: 'node:24', directory: api }
    run: { command: node server.js, port: 8080 }
`;
const server = (edition: number) =>
  `require('node:http').createServer((q, r) => r.end('api ${edition}')).listen(process.env.PORT);`;

let folder: string;
let repository: TestRepository;
let installation: Installation;
let program: Program;
let ada: Browser;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'postern-environments-'));
  repository = newRepository();
  commit(0);
  const ports = await freePorts();
  installation = {
    dataDir: folder,
    ports,
    settings: {
      ENVIRONMENTS_ENGINE: 'local',
      ENVIRONMENTS_ALLOW_FILE_REPOSITORIES: 'true',
      SITES_CONTENT_URL: `http://sites.localhost:${ports.gateway}`,
    },
  };
  program = await startProgram(installation);
  ada = new Browser(program.origin);
  await ada.signIn(administrator.email, administrator.password);
  const { data } = await ada.api('GET', '/config/api-environments');
  const policy = { ...data.policy, enabled: true, allowedAccess: ['owner', 'members', 'public'] };
  await granted(ada.api('PUT', '/config/api-environments', policy, { 'if-match': '*' }));
  const made = { fullName: 'acme/shop', cloneUrl: repository.url };
  await granted(ada.api('POST', '/repositories', made));
});
afterAll(async () => {
  await program.end('SIGTERM');
  repository.remove();
  rmSync(folder, { recursive: true, force: true });
});

async function granted(asked: ReturnType<Browser['api']>): Promise<void> {
  const { status, text: said } = await asked;
  if (status >= 300) throw new Error(`Answered ${status}: ${said}`);
}

function commit(edition: number): void {
  repository.commit({
    'postern.yaml': file,
    'web/index.html': `<p>web ${edition}</p>`,
    'api/server.js': server(edition),
  });
}

async function opened(url: string): Promise<string> {
  const { host, pathname } = new URL(url);
  const { gateway: port } = installation.ports;
  const asked = request({ host: '127.0.0.1', port, path: pathname, agent: false, headers: { host } }).end();
  const [answer] = (await once(asked, 'response')) as [IncomingMessage];
  return await text(answer);
}

/** Until the newest deploy has ended. */
async function settled(id: string) {
  for (;;) {
    const { data } = await ada.api('GET', `/environments/${id}`);
    if (['deployed', 'error', 'config_error', 'torn_down'].includes(data.status)) return data;
    await wait(100);
  }
}

test(`FT-01 a server that is killed during a deploy goes on with it, ${cycles} times at different moments`, {
  timeout: 5 * 60_000 + cycles * 40_000,
}, async () => {
  const body = { repository: 'acme/shop', branch: 'main', access: 'public' };
  const { id } = (await ada.api('POST', '/environments', body)).data;
  const first = await settled(id);
  expect([first.status, first.statusMessage]).toEqual(['deployed', null]);
  const [{ url }] = first.services;
  for (let cycle = 1; cycle <= cycles; cycle += 1) {
    commit(cycle);
    expect((await ada.api('POST', `/environments/${id}/deploy`, {})).status).toBe(202);
    await wait((deployMs * (cycle % 10)) / 10);
    await program.end('SIGKILL');
    program = await startProgram(installation);
    const { status, statusMessage } = await settled(id);
    expect([cycle, status, statusMessage]).toEqual([cycle, 'deployed', null]);
    expect(await opened(`${url}/`)).toBe(`<p>web ${cycle}</p>`);
    await expect.poll(() => opened(`${url}/api`), { timeout: 30_000 }).toBe(`api ${cycle}`);
  }
  const { data: builds } = await ada.api('GET', `/builds?environment=${id}&limit=100`);
  expect(builds.map(({ status }: { status: string }) => status)).toEqual(
    Array.from({ length: cycles + 1 }, () => 'deployed'),
  );
  expect((await ada.api('DELETE', `/environments/${id}`)).status).toBe(202);
  expect((await settled(id)).status).toBe('torn_down');
});
