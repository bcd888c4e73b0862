import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { Browser } from '../test/faults/browser.ts';
import { freePorts, startProgram } from '../test/faults/program.ts';
import { newRepository } from '../test/git-repository.ts';
import { secondsFigure } from './e1-deploy.ts';
import type { BenchOptions, Figure } from './figures.ts';
import { call, commit, prepare, removeAll, settled } from './shop.ts';

/**
 * E6: from a request to an Environment that is asleep to the first byte of its Node process, as a client of the gateway reads
 * it. The program, the engine and the repository of E1. All fall asleep together, after two to three minutes, and wake one
 * after another.
 */
export async function wake({ quick }: BenchOptions): Promise<Figure[]> {
  const folder = mkdtempSync(join(tmpdir(), 'postern-bench-wake-'));
  const repository = newRepository();
  commit(repository, 0);
  const ports = await freePorts();
  const settings = { ENVIRONMENTS_ENGINE: 'local', ENVIRONMENTS_ALLOW_FILE_REPOSITORIES: 'true' };
  const program = await startProgram({ dataDir: folder, ports, settings });
  const ada = new Browser(program.origin);
  const seconds: number[] = [];
  try {
    await prepare(ada, repository, { sleepAfterMinutes: 1, allowedAccess: ['members', 'public'] });
    const ids: string[] = [];
    for (let count = 0; count < (quick ? 1 : 7); count += 1) {
      const body = { repository: 'acme/shop', branch: 'main', access: 'public' };
      const { id } = await call(ada, 'POST', '/environments', body);
      await settled(ada, id, 'deployed');
      ids.push(id);
    }
    for (const id of ids) await settled(ada, id, 'asleep');
    for (const id of ids) {
      const { services } = await call(ada, 'GET', `/environments/${id}`);
      const { url } = services.find(({ name }: { name: string }) => name === 'api');
      seconds.push(await firstByte(url, ports.gateway));
    }
  } finally {
    // Processes outlive the program, so a round that failed must not leave any.
    await removeAll(ada);
    await program.end('SIGTERM');
    repository.remove();
    rmSync(folder, { recursive: true, force: true });
  }
  return [secondsFigure('E6', 'a request that wakes a small Node process, to its first byte', seconds, 1.5)];
}

/** Seconds. The names of the content host lead to this machine on a browser only. */
async function firstByte(url: string, port: number): Promise<number> {
  const startedAt = performance.now();
  const asked = request({
    host: '127.0.0.1',
    port,
    agent: false,
    headers: { host: new URL(url).host },
  }).end();
  const [response] = (await once(asked, 'response')) as [IncomingMessage];
  const seconds = (performance.now() - startedAt) / 1_000;
  const body = await text(response);
  if (body !== 'hello') throw new Error(`The process answered ${response.statusCode}: ${body.slice(0, 300)}`);
  return seconds;
}
