import { mkdtempSync, rmSync } from 'node:fs';
import { request, type IncomingMessage } from 'node:http';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { processesWithText } from '../engines/local-machine.ts';
import { newRepository, type TestRepository } from '../git-repository.ts';
import { Browser } from '../faults/browser.ts';
import { tell } from '../faults/figures.ts';
import {
  administrator,
  freePorts,
  type Installation,
  type Program,
  startProgram,
} from '../faults/program.ts';

/**
 * The server is killed at every step of a deploy, and right after it acknowledged a creation and a teardown. Started again,
 * it continues them, and what is served is whole. FAULT_CYCLES: how many kills, rounded up to whole rounds of seven.
 */
const isCi = process.env['CI'] === 'true';

type Step = { readonly step: string; readonly status: string };
type Deploy = { readonly status: string; readonly steps: readonly Step[]; readonly hasLog: boolean };

const isRunning = ({ steps }: Deploy, name: string) =>
  steps.some(({ step, status }) => step === name && status === 'running');
/** When the server is killed, in the order in which a deploy comes to it. Each deploy is killed at all of them. */
const moments = {
  'it is acknowledged': () => true,
  'it reads the file': (deploy: Deploy) => isRunning(deploy, 'fetch'),
  'its builds run': (deploy: Deploy) => isRunning(deploy, 'build') && deploy.hasLog,
  'its process starts': (deploy: Deploy) => isRunning(deploy, 'start'),
  'it is served': ({ status }: Deploy) => status === 'deployed',
};
const names = Object.keys(moments) as (keyof typeof moments)[];
const killsInRound = names.length + 2;
const rounds = Math.ceil(Number(process.env['FAULT_CYCLES'] ?? (isCi ? 28 : 1)) / killsInRound);
const cycles = rounds * killsInRound;

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

async function deployOf(id: string): Promise<Deploy> {
  const { data } = await ada.api('GET', `/builds/${id}`);
  const { data: lines } = await ada.api('GET', `/builds/${id}/logs`);
  return { ...data, hasLog: lines.length > 0 };
}

/** Kills the server at this moment, or later when the deploy is beyond it already. Resolves with the moment that it was. */
async function killAt(wanted: keyof typeof moments, buildId: string): Promise<keyof typeof moments> {
  const later = names.slice(names.indexOf(wanted));
  for (;;) {
    const deploy = await deployOf(buildId);
    const seen = later.find((name) => moments[name](deploy));
    if (seen !== undefined) {
      await program.end('SIGKILL');
      return seen;
    }
    expect(['error', 'config_error']).not.toContain(deploy.status);
    // A tighter loop would take processor time from the deploy.
    await wait(20);
  }
}

/** A request that is acknowledged just before the server is killed and started again. */
async function acknowledged(method: string, path: string, body?: object) {
  const { status, data } = await ada.api(method, path, body);
  await program.end('SIGKILL');
  expect(status).toBe(202);
  program = await startProgram(installation);
  return data;
}

const runningRecorders = () => processesWithText(`POSTERN_RECORDER=${folder}`).length;

test(`FT-01 a server that is killed ${cycles} times, at every step of a deploy, a creation and a teardown, continues it`, {
  timeout: 5 * 60_000 + cycles * 40_000,
}, async () => {
  const body = { repository: 'acme/shop', branch: 'main', access: 'public', autoTrack: false };
  const { id } = (await ada.api('POST', '/environments', body)).data;
  const first = await settled(id);
  expect([first.status, first.statusMessage]).toEqual(['deployed', null]);
  const [{ url }] = first.services;
  const kills = new Map<string, number>();
  for (let edition = 1; edition <= rounds; edition += 1) {
    commit(edition);
    const asked = await ada.api('POST', `/environments/${id}/deploy`, {});
    expect(asked.status).toBe(202);
    for (const name of names) {
      const at = await killAt(name, asked.data.deployId);
      kills.set(at, (kills.get(at) ?? 0) + 1);
      program = await startProgram(installation);
    }
    const { status, statusMessage } = await settled(id);
    expect([edition, status, statusMessage]).toEqual([edition, 'deployed', null]);
    expect(await opened(`${url}/`)).toBe(`<p>web ${edition}</p>`);
    await expect.poll(() => opened(`${url}/api`)).toBe(`api ${edition}`);
    expect(runningRecorders()).toBe(1);

    const other = await acknowledged('POST', '/environments', body);
    const created = await settled(other.id);
    expect([created.status, created.statusMessage]).toEqual(['deployed', null]);
    await acknowledged('DELETE', `/environments/${other.id}`);
    expect((await settled(other.id)).status).toBe('torn_down');
    expect(runningRecorders()).toBe(1);
  }
  for (const name of names) tell(`kills of a deploy when ${name}`, String(kills.get(name) ?? 0));
  // A step can be over before it is seen.
  const minKills = Math.min(...names.map((name) => kills.get(name) ?? 0));
  expect(minKills).toBeGreaterThanOrEqual(Math.floor(rounds * 0.6));
  const { data: builds } = await ada.api('GET', `/builds?environment=${id}&limit=100`);
  expect(builds.map(({ status }: { status: string }) => status)).toEqual(
    Array.from({ length: rounds + 1 }, () => 'deployed'),
  );
  expect((await ada.api('DELETE', `/environments/${id}`)).status).toBe(202);
  expect((await settled(id)).status).toBe('torn_down');
  expect(runningRecorders()).toBe(0);
});
