import { ceiling } from './bare-server.ts';
import { pageOf } from './content.ts';
import { type BenchOptions, type Figure, perSecond, sideBySide } from './figures.ts';
import { load } from './load.ts';
import { startNginx } from './nginx.ts';
import { startContentServer } from './server-process.ts';

/** P4: a public page of 1 and of 100 KiB, warm, against nginx serving the same file from disk on the same core. */
export async function publicAsset({ quick }: BenchOptions): Promise<Figure[]> {
  const nginx = await startNginx({ '1.html': pageOf(1), '100.html': pageOf(100) });
  const gateway = await startContentServer();
  try {
    const figures: Figure[] = [];
    for (const [kib, floor, goal] of [
      [1, 0.75, 1],
      [100, 1.1, 1.3],
    ] as const) {
      const seconds = quick ? 1 : 2;
      // Spelled so: wrk would add a Host of its own to any other.
      const headers = { Host: gateway.hosts[kib] ?? '' };
      const measured = await sideBySide(
        quick ? 1 : 15,
        async () => good(await load(`${gateway.address}/`, { seconds, headers })),
        async () => good(await load(`${nginx.address}/${kib}.html`, { seconds })),
      );
      figures.push({
        id: 'P4',
        what: `public page of ${kib} KiB against nginx`,
        ours: perSecond(measured.ours),
        reference: perSecond(measured.reference),
        ratio: measured.ratio,
        floor: `≥ ${floor}`,
        goal: `≥ ${goal}`,
        passes: measured.ratio >= floor,
      });
      const about = { id: 'P4', what: `${kib} KiB against nginx`, rounds: quick ? 1 : 7, seconds };
      figures.push(
        await ceiling(about, `${gateway.address}/`, headers, async () =>
          good(await load(`${nginx.address}/${kib}.html`, { seconds })),
        ),
      );
    }
    return figures;
  } finally {
    await gateway.stop();
    await nginx.stop();
  }
}

function good({ perSecond: value, refused, broken }: Awaited<ReturnType<typeof load>>): number {
  if (refused > 0 || broken > 0) throw new Error(`${refused} requests were refused, ${broken} broke.`);
  return value;
}
