import { bareHttp } from './bare-server.ts';
import { pageOf } from './content.ts';
import { startRedis } from './engines.ts';
import { type BenchOptions, type Figure, perSecond, sideBySide } from './figures.ts';
import { goodLoad } from './load.ts';
import { checkedBy, startNginx } from './nginx.ts';
import { type ContentServer, startContentServer, startNeighbour } from './server-process.ts';

/**
 * P5: a private page with a live grant, against a tuned nginx that sends a check (auth_request) before each file: it
 * responds 204 on persistent connections, with the same look-up. P6: the same page against a public one on our own
 * gateway.
 */
export async function privateAsset(options: BenchOptions): Promise<Figure[]> {
  const embedded = await measure(options, undefined, [
    [2, 3],
    [0.9, undefined],
  ]);
  const redis = await startRedis();
  try {
    return [
      ...embedded,
      ...(await measure(options, redis.url, [
        [1.5, 2],
        [0.5, undefined],
      ])),
    ];
  } finally {
    await redis.stop();
  }
}

type Bar = readonly [floor: number, goal: number | undefined];

async function measure(
  options: BenchOptions,
  kvUrl: string | undefined,
  [againstNginx, againstPublic]: readonly [Bar, Bar],
): Promise<Figure[]> {
  const check = await startNeighbour('grant-check.ts', { env: kvUrl === undefined ? {} : { KV_URL: kvUrl } });
  const nginx = await startNginx({ '1.html': pageOf(1), '100.html': pageOf(100) }, checkedBy(check.port));
  const gateway = await startContentServer(kvUrl === undefined ? {} : { kvUrl });
  const store = kvUrl === undefined ? 'embedded' : 'Redis';
  try {
    const figures: Figure[] = [];
    for (const kib of [1, 100]) {
      const seconds = options.quick ? 1 : 2;
      const rounds = options.quick ? 1 : 11;
      const ours = () => privatePage(gateway, kib, seconds);
      const checked = () => goodLoad(`${nginx.address}/${kib}.html`, seconds, { Cookie: 'grant=grant:1' });
      const nginxes = await sideBySide(rounds, ours, checked);
      figures.push(figure('P5', `private page of ${kib} KiB against nginx, ${store}`, nginxes, againstNginx));
      const publics = await sideBySide(rounds, ours, () =>
        goodLoad(`${gateway.address}/`, seconds, { Host: gateway.hosts[kib] ?? '' }),
      );
      figures.push(
        figure('P6', `private page of ${kib} KiB against public, ${store}`, publics, againstPublic),
      );
      if (kvUrl === undefined) {
        const about = { id: 'P5', what: `private page of ${kib} KiB`, rounds: Math.min(rounds, 7), seconds };
        const { host, cookie } = await gateway.letIn(kib);
        const headers = { Host: host, Cookie: cookie };
        const sides = { ours, reference: checked };
        figures.push(...(await bareHttp(about, `${gateway.address}/`, headers, sides)));
      }
    }
    return figures;
  } finally {
    await gateway.stop();
    await nginx.stop();
    await check.stop();
  }
}

/** Gets a new grant for each round, because a grant lasts at most five minutes. */
async function privatePage(gateway: ContentServer, kib: number, seconds: number): Promise<number> {
  const { host, cookie } = await gateway.letIn(kib);
  return await goodLoad(`${gateway.address}/`, seconds, { Host: host, Cookie: cookie });
}

function figure(
  id: string,
  what: string,
  { ours, reference, ratio }: { ours: number; reference: number; ratio: number },
  [floor, goal]: Bar,
): Figure {
  return {
    id,
    what,
    ours: perSecond(ours),
    reference: perSecond(reference),
    ratio,
    floor: `≥ ${floor}`,
    goal: goal === undefined ? '–' : `≥ ${goal}`,
    passes: ratio >= floor,
  };
}
