import { bareHttp } from './bare-server.ts';
import { pageOf } from './content.ts';
import { type BenchOptions, type Figure, perSecond, sideBySide } from './figures.ts';
import { load } from './load.ts';
import { startNginx } from './nginx.ts';
import { startContentServer } from './server-process.ts';

/**
 * P4: a public page of 1 and of 100 KiB, warm, against nginx serving the same file from disk on the same core, with its
 * defaults and tuned.
 */
export async function publicAsset({ quick }: BenchOptions): Promise<Figure[]> {
  const files = { '1.html': pageOf(1), '100.html': pageOf(100) };
  const nginx = await startNginx(files, { keepsOpen: false });
  const tuned = await startNginx(files);
  const gateway = await startContentServer();
  try {
    const figures: Figure[] = [];
    for (const [kib, floor, goal, floorToBare] of [
      [1, 0.75, 1, undefined],
      [100, 1.1, 1.3, 0.95],
    ] as const) {
      const seconds = quick ? 1 : 2;
      // With this capitalization; otherwise wrk adds its own Host header.
      const headers = { Host: gateway.hosts[kib] ?? '' };
      const ours = async () => good(await load(`${gateway.address}/`, { seconds, headers }));
      const theirs = async (server: string) => good(await load(`${server}/${kib}.html`, { seconds }));
      const rounds = quick ? 1 : 11;
      const byDefault = await sideBySide(rounds, ours, () => theirs(nginx.address));
      figures.push(figure(`public page of ${kib} KiB against nginx`, byDefault, floor, goal));
      const further = await sideBySide(rounds, ours, () => theirs(tuned.address));
      figures.push(figure(`public page of ${kib} KiB against nginx that keeps files open`, further));
      const about = {
        id: 'P4',
        what: `public page of ${kib} KiB`,
        rounds: quick ? 1 : 5,
        seconds,
        floor: floorToBare,
      };
      const sides = { ours, reference: () => theirs(nginx.address) };
      figures.push(...(await bareHttp(about, `${gateway.address}/`, headers, sides)));
    }
    return figures;
  } finally {
    await gateway.stop();
    await nginx.stop();
    await tuned.stop();
  }
}

function good({ perSecond: value, refused, broken }: Awaited<ReturnType<typeof load>>): number {
  if (refused > 0 || broken > 0) throw new Error(`${refused} requests were refused, ${broken} broke.`);
  return value;
}

function figure(
  what: string,
  { ours, reference, ratio }: { ours: number; reference: number; ratio: number },
  floor?: number,
  goal?: number,
): Figure {
  return {
    id: 'P4',
    what,
    ours: perSecond(ours),
    reference: perSecond(reference),
    ratio,
    floor: floor === undefined ? '–' : `≥ ${floor}`,
    goal: goal === undefined ? '–' : `≥ ${goal}`,
    passes: floor === undefined || ratio >= floor,
  };
}
