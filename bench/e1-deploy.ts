import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { newRepository } from '../test/git-repository.ts';
import { Browser } from '../test/faults/browser.ts';
import { freePorts, startProgram } from '../test/faults/program.ts';
import { type BenchOptions, type Figure, median } from './figures.ts';
import { call, commit, prepare, removeAll, settled } from './shop.ts';

/**
 * E1: from the request that creates an Environment to the first line of the log of its deploy, as a client reads it; and
 * from the request that deploys the same commit again to the end of that deploy. The program of `npm start` with the local
 * engine in its sandbox, a repository on the same disk, one static service and one Node process.
 */
export async function deploy({ quick }: BenchOptions): Promise<Figure[]> {
  const folder = mkdtempSync(join(tmpdir(), 'postern-bench-deploy-'));
  const repository = newRepository();
  commit(repository, 0);
  const settings = { ENVIRONMENTS_ENGINE: 'local', ENVIRONMENTS_ALLOW_FILE_REPOSITORIES: 'true' };
  const program = await startProgram({ dataDir: folder, ports: await freePorts(), settings });
  const ada = new Browser(program.origin);
  const firstLines: number[] = [];
  const commandLines: number[] = [];
  const reusedDeploys: number[] = [];
  try {
    await prepare(ada, repository);
    for (let round = 1; round <= (quick ? 1 : 7); round++) {
      // Every service is built in every round: no artifact of an earlier one fits.
      commit(repository, round);
      const startedAt = performance.now();
      const { id } = await call(ada, 'POST', '/environments', { repository: 'acme/shop', branch: 'main' });
      const lines = await linesOf(ada, await newestBuild(ada, id), startedAt);
      firstLines.push(lines.first);
      commandLines.push(lines.command);
      await settled(ada, id, 'deployed');
      reusedDeploys.push(await deployAgain(ada, id));
      await removeAll(ada);
    }
  } finally {
    // Processes outlive the program, so a round that failed must not leave any.
    await removeAll(ada);
    await program.end('SIGTERM');
    repository.remove();
    rmSync(folder, { recursive: true, force: true });
  }
  return [
    secondsFigure('E1', 'create to the first line of the log of a deploy', firstLines, 1),
    secondsFigure('E1', 'create to the first line that the command of a build writes', commandLines),
    secondsFigure('E1', 'an unchanged commit deployed again, everything reused', reusedDeploys, 3),
  ];
}

async function newestBuild(ada: Browser, environmentId: string): Promise<string> {
  const [{ id }] = await call(ada, 'GET', `/builds?environment=${environmentId}`);
  return id;
}

/** Seconds from `startedAt` until this client reads the first line, and the first one of the command. */
async function linesOf(
  ada: Browser,
  buildId: string,
  startedAt: number,
): Promise<{ first: number; command: number }> {
  const { body } = await fetch(`${ada.origin}/api/v2/builds/${buildId}/logs`, {
    headers: { accept: 'text/event-stream', cookie: ada.cookies(ada.origin) },
  });
  let first: number | undefined;
  let text = '';
  // A response without a body has no lines either.
  for await (const chunk of body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += chunk;
    const seconds = (performance.now() - startedAt) / 1_000;
    if (text.includes('\ndata: {"id"')) first ??= seconds;
    if (first !== undefined && text.includes('"text":"started"')) return { first, command: seconds };
  }
  throw new Error(`The log of the deploy ended without its lines: ${text}`);
}

/** Seconds from the request until the deploy has ended. */
async function deployAgain(ada: Browser, id: string): Promise<number> {
  const startedAt = performance.now();
  await call(ada, 'POST', `/environments/${id}/deploy`, {});
  await settled(ada, id, 'deployed');
  const seconds = (performance.now() - startedAt) / 1_000;
  const { steps } = await call(ada, 'GET', `/builds/${await newestBuild(ada, id)}`);
  const built = steps.filter(({ step }: { step: string }) => step === 'build');
  if (!built.every(({ reused }: { reused: boolean }) => reused))
    throw new Error('A service was built again.');
  return seconds;
}

/** A figure in seconds. `most`: the limit. */
export function secondsFigure(id: string, what: string, values: readonly number[], most?: number): Figure {
  const value = median(values);
  console.error(`bench: seconds ${values.map((one) => one.toFixed(2)).join(' ')}`);
  const limit = most === undefined ? '–' : `≤ ${most} s`;
  return {
    id,
    what,
    ours: `${value.toFixed(2)} s`,
    reference: '–',
    ratio: most === undefined ? value : value / most,
    floor: limit,
    goal: limit,
    passes: most === undefined || value <= most,
  };
}
