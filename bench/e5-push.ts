import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { Browser } from '../test/faults/browser.ts';
import { freePorts, startProgram } from '../test/faults/program.ts';
import { newRepository } from '../test/git-repository.ts';
import { fromGithub } from '../test/git-webhooks.ts';
import { secondsFigure } from './e1-deploy.ts';
import type { BenchOptions, Figure } from './figures.ts';
import { call, commit, prepare, removeAll, settled } from './shop.ts';

/**
 * E5: from a push until the deploy of its commit begins, as a client reads it. With a webhook, from the moment at which GitHub
 * would send it; and without one, when the push comes right after the worker asked the git server. The program, the engine and
 * the repository of E1.
 */
export async function push({ quick }: BenchOptions): Promise<Figure[]> {
  const folder = mkdtempSync(join(tmpdir(), 'postern-bench-push-'));
  const repository = newRepository();
  commit(repository, 0);
  const settings = { ENVIRONMENTS_ENGINE: 'local', ENVIRONMENTS_ALLOW_FILE_REPOSITORIES: 'true' };
  const program = await startProgram({ dataDir: folder, ports: await freePorts(), settings });
  const ada = new Browser(program.origin);
  const told: number[] = [];
  const asked: number[] = [];
  try {
    await prepare(ada, repository);
    const body = { repository: 'acme/shop', branch: 'main', autoTrack: true };
    const { id } = await call(ada, 'POST', '/environments', body);
    await settled(ada, id, 'deployed');
    let edition = 0;
    const pushed = async (tell: () => Promise<void>) => {
      const sha = commit(repository, (edition += 1));
      const startedAt = performance.now();
      await tell();
      await begun(ada, id, sha);
      const seconds = (performance.now() - startedAt) / 1_000;
      await settled(ada, id, 'deployed');
      return seconds;
    };
    const { url, secret } = await call(ada, 'POST', '/repositories/acme/shop/webhook');
    const address = `${ada.origin}${new URL(url).pathname}`;
    for (let round = 0; round < (quick ? 1 : 7); round += 1)
      told.push(await pushed(() => send(address, secret)));
    // The first push finds out when the worker asks; each of the others comes right after that.
    await pushed(async () => undefined);
    for (let round = 0; round < (quick ? 1 : 3); round += 1) asked.push(await pushed(async () => undefined));
  } finally {
    // Processes outlive the program, so a round that failed must not leave any.
    await removeAll(ada);
    await program.end('SIGTERM');
    repository.remove();
    rmSync(folder, { recursive: true, force: true });
  }
  return [
    secondsFigure('E5', 'a push to the beginning of its deploy, by webhook', told, 2),
    secondsFigure('E5', 'a push to the beginning of its deploy, by asking the git server', asked, 65),
  ];
}

async function send(address: string, secret: string): Promise<void> {
  // A delivery with a body that was received before does nothing.
  const body = JSON.stringify({ delivery: randomUUID() });
  const { headers } = fromGithub(secret, { body });
  const { status } = await fetch(address, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body,
  });
  if (status !== 202) throw new Error(`The webhook was answered with ${status}.`);
}

/** Until a deploy of this commit has begun. */
async function begun(ada: Browser, id: string, wanted: string): Promise<void> {
  for (;;) {
    const [{ sha, startedAt }] = await call(ada, 'GET', `/builds?environment=${id}`);
    if (sha === wanted && startedAt !== null) return;
    await wait(20);
  }
}
