import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { zipOf } from '../test/archives/zip.ts';
import { Browser } from '../test/faults/browser.ts';
import { freePorts, startProgram } from '../test/faults/program.ts';
import { programOptions } from '../scripts/program-options.mjs';
import { newRepository } from '../test/git-repository.ts';
import type { BenchOptions, Figure } from './figures.ts';
import { call, prepare, removeAll, settled } from './shop.ts';

/**
 * P14: resident memory of the program of `npm start`, one load after the other on the same process: ready, after 10,000
 * requests with a key, after five archives of 10,000 files, and after a build that prints 10 MB of lines of one letter.
 */
export async function memory({ quick }: BenchOptions): Promise<Figure[]> {
  const folder = mkdtempSync(join(tmpdir(), 'postern-bench-memory-'));
  const repository = newRepository();
  const bytes = quick ? 10_000 : 10_000_000;
  repository.commit({ 'postern.yaml': verbose(bytes), 'web/index.html': '<p>web</p>' });
  const settings = { ENVIRONMENTS_ENGINE: 'local', ENVIRONMENTS_ALLOW_FILE_REPOSITORIES: 'true' };
  const program = await startProgram({
    dataDir: folder,
    ports: await freePorts(),
    settings,
    nodeOptions: programOptions,
  });
  const ada = new Browser(program.origin);
  const figures: Figure[] = [];
  async function note(what: string, most: number): Promise<void> {
    await wait(quick ? 0 : 10_000);
    figures.push(figure(what, program.pid, most));
  }
  try {
    await note('ready', 450);
    await prepare(ada, repository, { maxConcurrentBuilds: 1 });
    await requestWithKey(ada, program.origin, quick ? 100 : 10_000);
    await note('after 10,000 requests with a key', 500);
    const body = archive(quick ? 100 : 9_999);
    for (let count = 0; count < 5; count += 1) {
      const { status, text } = await ada.upload('/sites?visibility=public', 'application/zip', body);
      if (status !== 201) throw new Error(`Publishing answered ${status}: ${text.slice(0, 500)}`);
    }
    await note('after five archives of 10,000 files', 600);
    const { id } = await call(ada, 'POST', '/environments', { repository: 'acme/shop', branch: 'main' });
    await settled(ada, id, 'deployed');
    await note('after a build log of 10 MB', 600);
  } finally {
    await removeAll(ada);
    await program.end('SIGTERM');
    repository.remove();
    rmSync(folder, { recursive: true, force: true });
  }
  return figures;
}

function verbose(bytes: number): string {
  return `version: 1
services:
  web:
    build: { image: 'node:24', command: "yes | head -c ${bytes}; true", directory: web, output: . }
    static: {}
`;
}

async function requestWithKey(ada: Browser, origin: string, count: number): Promise<void> {
  const { policy } = await call(ada, 'GET', '/config/api-keys');
  const changed = { ...policy, rateLimitPerMinute: 10_000 };
  await call(ada, 'PUT', '/config/api-keys', changed, { 'if-match': '*' });
  const { token } = await call(ada, 'POST', '/me/tokens', {
    name: 'memory',
    scopes: ['sites:read'],
    repositoryAccess: { mode: 'all' },
  });
  const request = async () => {
    const answer = await fetch(`${origin}/api/v2/auth/context`, {
      headers: { authorization: `Bearer ${token}` },
    });
    await answer.text();
    if (!answer.ok) throw new Error(`A request with a key was answered with ${answer.status}.`);
  };
  for (let sent = 0; sent < count; sent += 20) await Promise.all(Array.from({ length: 20 }, request));
}

/** Small files with contents of their own. */
function archive(files: number): Buffer {
  return zipOf(
    Array.from({ length: files }, (_, index) => ({
      name: index === 0 ? 'index.html' : `pages/${index}.html`,
      content: `<p>page ${index}</p>`,
    })),
  );
}

/** The memory of the process that serves, without the processes that it started. */
function figure(what: string, pid: number, most: number): Figure {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const megabytes = Math.round((Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024) / 1e6);
  return {
    id: 'P14',
    what: `resident memory, ${what}`,
    ours: `${megabytes} MB`,
    reference: '–',
    ratio: megabytes / most,
    floor: `≤ ${most} MB`,
    goal: `≤ ${most} MB`,
    passes: megabytes <= most,
  };
}
