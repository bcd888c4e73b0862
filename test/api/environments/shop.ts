import { once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import { type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLocalEngine, type LocalEngine } from '../../../src/features/engine/local/local-engine.ts';
import {
  defaultEnvironmentPolicy,
  type EnvironmentPolicy,
} from '../../../src/features/environments/policy/environment-policy.ts';
import type { ObservedProcess } from '../../../src/features/engine/contract.ts';
import type { Blobs } from '../../../src/platform/blobs/blobs.ts';
import { newRepository, type TestRepository } from '../../git-repository.ts';
import { type Answer, type CallOptions, type Harness, openHarness, type Person } from '../../harness.ts';

/** A repository with one static service, which copies its pages, registered in an installation that builds for real. */
export type Shop = {
  readonly h: Harness;
  readonly ada: Person;
  readonly repository: TestRepository;
  /** Holds the builds, the processes and the secrets. */
  readonly folder: string;
  call(method: string, path: string, options?: CallOptions): Promise<Answer>;
  create(body?: Record<string, unknown>, as?: CallOptions['as']): Promise<Answer>;
  /** Runs the worker until the deploy has ended, or until `isDone`, and returns the Environment. */
  settle(id: string, isDone?: (environment: Answer['data']) => boolean): Promise<Answer['data']>;
  /** Opens an address through a gateway that listens: what processes answer does not come through `h.open`. */
  fetch(url: string): Promise<{ status: number; body: string }>;
  /** What runs of the Environment, as the engine sees it. */
  observe(id: string): Promise<readonly ObservedProcess[]>;
  /** Stores a secret of the repository, as an operator does. */
  storeSecret(name: string, value: string): void;
  change(policy: Partial<EnvironmentPolicy>): Promise<void>;
  /** A new session of a person, for when time has passed. */
  signIn(): Promise<Person>;
  close(): Promise<void>;
};

export const page = (text: string) => `<!doctype html><title>Shop</title><p>${text}</p>\n`;

export const configurationFile = `version: 1
services:
  web:
    build: { image: 'node:24', command: "mkdir -p dist && cp *.html dist && echo built by the shop", output: dist }
    static: {}
`;

const terminal = ['deployed', 'error', 'config_error', 'torn_down', 'paused'];

/** `process`: plain processes of this machine, which is the quickest. */
export async function openShop(
  isolation: 'process' | 'bwrap' = 'process',
  options: Pick<
    NonNullable<Parameters<typeof openHarness>[0]>,
    'environmentsContentUrl' | 'databaseServer'
  > = {},
): Promise<Shop> {
  const folder = mkdtempSync(join(tmpdir(), 'postern-shop-'));
  let engine: LocalEngine | undefined;
  const h = await openHarness({
    engine: async (blobs) => (engine = await openEngine(join(folder, 'builds'), isolation, blobs)),
    allowsFileRepositories: true,
    secretsDir: join(folder, 'secrets'),
    ...options,
  });
  const ada = await h.person('Ada', { admin: true });
  const repository = newRepository();
  repository.commit({ 'postern.yaml': configurationFile, 'index.html': page('first') });
  const call: Shop['call'] = (method, path, options) => h.call(method, path, { as: ada, ...options });
  const registered = await call('POST', '/repositories', {
    body: { fullName: 'acme/shop', cloneUrl: repository.url },
  });

  async function change(policy: Partial<EnvironmentPolicy>): Promise<void> {
    const { headers } = await call('GET', '/config/api-environments');
    const body = { ...defaultEnvironmentPolicy, enabled: true, maxPerOwner: 100, ...policy };
    const answer = await call('PUT', '/config/api-environments', {
      body,
      headers: { 'if-match': headers['etag'] ?? '' },
    });
    if (answer.status !== 200) throw new Error(answer.text);
  }
  await change({});

  return {
    h,
    ada,
    repository,
    folder,
    call,
    change,
    async fetch(url) {
      const { host, pathname } = new URL(url);
      if (!h.app.gateway.listening) {
        h.app.gateway.listen(0, '127.0.0.1');
        await once(h.app.gateway, 'listening');
      }
      const { port } = h.app.gateway.address() as AddressInfo;
      const asked = request({
        host: '127.0.0.1',
        port,
        path: pathname,
        agent: false,
        headers: { host },
      }).end();
      const [answer] = (await once(asked, 'response')) as [IncomingMessage];
      return { status: answer.statusCode ?? 0, body: await text(answer) };
    },
    observe: async (id) => (await engine?.observe(id)) ?? [],
    storeSecret(name, value) {
      const own = join(folder, 'secrets', registered.data.id);
      mkdirSync(own, { recursive: true });
      writeFileSync(join(own, name), value);
    },
    signIn: () => h.person('Cleo'),
    create: (body = {}, as = ada) =>
      call('POST', '/environments', { as, body: { repository: 'acme/shop', branch: 'main', ...body } }),
    async settle(id, isDone = ({ status }) => terminal.includes(status)) {
      for (;;) {
        await h.app.jobs.runNow('environments');
        await h.app.services.environmentServices.reconciler.idle();
        await h.app.jobs.runNow('builds');
        await h.app.services.buildServices.buildRunner?.settled();
        const { data } = await call('GET', `/environments/${id}`);
        if (isDone(data)) return data;
        // Leaves the processor to what is started.
        await wait(10);
      }
    },
    async close() {
      // What runs outlives the server, and so would outlive the test.
      for (const id of await h.app.services.read.environments.living()) await engine?.remove(id);
      await engine?.stop();
      await h.close();
      repository.remove();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

export async function openEngine(
  folder: string,
  isolation: 'process' | 'bwrap',
  blobs: Pick<Blobs, 'read' | 'write'>,
): Promise<LocalEngine> {
  const engine = createLocalEngine({
    folder,
    isolation,
    hidden: [],
    searchPath: process.env['PATH'] ?? '',
    blobs,
    limits: {
      timeMs: 60_000,
      processes: 1_000,
      memoryBytes: 2 ** 30,
      fileBytes: 2 ** 30,
      diskBytes: 2 ** 30,
      outputFiles: 1_000,
    },
    // Ten times as fast: a service that ended starts again after a tenth of its pause.
    now: () => 10 * Date.now(),
    onDefect: (error) => {
      throw error;
    },
  });
  await engine.prepare();
  return engine;
}
