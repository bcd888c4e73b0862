import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { findPostgres } from '../../scripts/local-servers.ts';
import { Browser } from './browser.ts';
import type { Member } from './fleet.ts';
import { type Growth, growthOf } from './growth.ts';
import { type LivedInFleet, startLivedInFleet } from './lived-in-fleet.ts';
import { administrator } from './program.ts';

/**
 * Runs the whole fleet under mixed traffic (matrix FT-11): every response must be one of those allowed, and no process
 * may grow. npm run test:soak -- MINUTES prints tables, and exits with 1 when a process grew or a response was wrong.
 */
const minutes = Number(process.argv[2] ?? 20);
if (!(minutes > 0)) throw new Error('usage: npm run test:soak -- MINUTES');
const endsAt = performance.now() + minutes * 60_000;
const samplesWanted = 40;

/** Maximum growth by the trend over the run. One leaked object of 100 bytes for each request exceeds it in 20 minutes. */
const most = {
  heap: 8 * 1024 ** 2,
  // Each password hash takes tens of MiB for a moment, and the allocator decides when to return them. In its first
  // minutes a process still takes memory that it then keeps.
  resident: minutes < 5 ? Number.POSITIVE_INFINITY : 96 * 1024 ** 2,
  descriptors: 8,
} as const;
type Measure = keyof typeof most;

/** Responses of one kind of traffic by status. Those in `fine` are expected, and 503 means "not now". */
type Tally = {
  readonly fine: readonly number[];
  readonly counts: Map<number, number>;
  /** The last error without a response. */
  trouble?: string;
};

const bin = findPostgres();
const begun = performance.now();
const fleet = await startLivedInFleet(bin ?? '', {
  nodeOptions: [
    '--expose-gc',
    '--import',
    pathToFileURL(join(import.meta.dirname, 'collect-on-signal.mjs')).href,
  ],
});
console.log(`The fleet started in ${Math.round((performance.now() - begun) / 1000)} s.`);
const tallies = new Map<string, Tally>();
const traffic = startTraffic(fleet);
const series = await sample();
await Promise.all(traffic);
const isFine = [report(series), reportAnswers()].every(Boolean);
await fleet.stop();
process.exitCode = isFine ? 0 : 1;

function isOver(): boolean {
  return performance.now() > endsAt;
}

/** Repeats `ask` until the time is over, `pauseMs` after each response. */
async function repeat(name: string, fine: readonly number[], pauseMs: number, ask: () => Promise<number>) {
  const tally: Tally = tallies.get(name) ?? { fine, counts: new Map() };
  tallies.set(name, tally);
  while (!isOver()) {
    const status = await ask().catch((error: unknown) => {
      tally.trouble = String(error);
      return 0;
    });
    tally.counts.set(status, (tally.counts.get(status) ?? 0) + 1);
    await wait(pauseMs);
  }
}

function startTraffic({ webs, gateways, ...rest }: LivedInFleet): Promise<void>[] {
  const unknown = `${rest.key.value.slice(0, -1)}${rest.key.value.endsWith('a') ? 'b' : 'a'}`;
  let grant = '';
  const letIn = async () => {
    grant = await rest.freshGrant();
    return 200;
  };
  return [
    ...webs.flatMap((web) => [
      repeat('key request', [200], 1, rest.withKey(web)),
      // A client with so many wrong keys is throttled.
      repeat('wrong key', [401, 429], 50, rest.withKey(web, unknown)),
      repeat('publish', [200], 1_000, rest.change(web)),
    ]),
    ...gateways.flatMap((gateway) => [
      // Below the gateway's limit for one address, 60,000 in any minute.
      repeat('public page', [200], 3, rest.publicPage(gateway)),
      // A grant ends after five minutes; until the next one the status is 401.
      repeat('private page', [200, 401], 3, async () =>
        grant === '' ? 200 : await rest.privatePage(gateway, grant)(),
      ),
      repeat('private page, stranger', [401], 100, rest.privatePage(gateway, '')),
    ]),
    repeat('someone is let in', [200], 5_000, letIn),
    repeat('key made, used, revoked, refused', [200], 2_000, async () => await lifeOfKey(rest, webs[1])),
    repeat('site made and deleted', [200], 5_000, async () => await lifeOfSite(rest)),
    repeat('sign-in', [200], 3_000, signIn),
  ];
}

async function lifeOfKey(
  { makeKey, withKey, ada }: Pick<LivedInFleet, 'makeKey' | 'withKey' | 'ada'>,
  web: LivedInFleet['webs'][0],
): Promise<number> {
  const { id, value } = await makeKey('brief');
  const used = await withKey(web, value)();
  const { status } = await ada.api('DELETE', `/me/tokens/${id}`);
  if (status !== 200) return status;
  // Another process than the one that responded: within a second (docs/explanation/revocation.md).
  await wait(1_000);
  const refused = await withKey(web, value)();
  if (refused === 200) throw new Error('A revoked key was let in.');
  // The wrong keys of the other traffic come from the same address, so this request may be throttled.
  return used === 200 && [401, 429].includes(refused) ? 200 : Math.max(used, refused);
}

async function lifeOfSite({ publish, ada }: Pick<LivedInFleet, 'publish' | 'ada'>): Promise<number> {
  const { id } = await publish('public', `brief ${performance.now()}`);
  return (await ada.api('DELETE', `/sites/${id}`)).status;
}

async function signIn(): Promise<number> {
  const browser = new Browser(fleet.uiUrl);
  try {
    await browser.signIn(administrator.email, administrator.password);
    return (await browser.api('GET', '/auth/context')).status;
  } catch (error) {
    // A step with 503 is retried. If its code was used meanwhile, the retry cannot succeed.
    if (String(error).includes('Signing in failed: 303')) return 503;
    throw error;
  } finally {
    browser.disconnect();
  }
}

/** Measures each process after a garbage collection, at equal intervals until the time is over. */
async function sample() {
  const members = {
    'web 1': fleet.webs[0],
    'web 2': fleet.webs[1],
    'gateway 1': fleet.gateways[0],
    'gateway 2': fleet.gateways[1],
    worker: fleet.worker,
  };
  const series = Object.entries(members).map(([name, member]) => ({
    name,
    member,
    values: { heap: [] as number[], resident: [] as number[], descriptors: [] as number[] },
  }));
  const everyMs = (endsAt - performance.now()) / samplesWanted;
  while (!isOver()) {
    await wait(everyMs);
    await Promise.all(
      series.map(async ({ member, values }) => {
        const gauge = await measure(member);
        values.heap.push(gauge('nodejs_heap_size_used_bytes') + gauge('nodejs_external_memory_bytes'));
        values.resident.push(gauge('process_resident_memory_bytes'));
        values.descriptors.push(gauge('process_open_fds'));
      }),
    );
  }
  return series;
}

/** A process's gauges by name, after a garbage collection. */
async function measure({ pid, ports }: Member): Promise<(name: string) => number> {
  process.kill(pid, 'SIGUSR2');
  const told = await (await fetch(`http://127.0.0.1:${ports.operations}/metrics`)).text();
  return (name) => {
    const [, found] = new RegExp(`^${name} (\\S+)$`, 'm').exec(told) ?? [];
    if (found === undefined) throw new Error(`/metrics does not tell ${name}.`);
    return Number(found);
  };
}

function report(series: Awaited<ReturnType<typeof sample>>): boolean {
  const rows: string[] = [];
  let isFlat = true;
  for (const { name, values } of series) {
    const cells = Object.entries(values).map(([measure, found]) => {
      // The keys of `values` are measures.
      const limit = most[measure as Measure];
      const growth = growthOf(found);
      if (growth.added <= limit) return written(measure, growth);
      isFlat = false;
      return `${written(measure, growth)} **grew**`;
    });
    rows.push(`| ${name} | ${cells.join(' | ')} |`);
  }
  console.log(
    [
      '',
      `${minutes} minutes, ${series[0]?.values.heap.length ?? 0} samples; the median, and what the trend added after the warm-up`,
      '',
      '| Process | Heap and external | Resident | Descriptors |',
      '|---|---|---|---|',
      ...rows,
    ].join('\n'),
  );
  return isFlat;
}

function written(measure: string, { median, added }: Growth): string {
  const sign = added < 0 ? '−' : '+';
  if (measure === 'descriptors') return `${Math.round(median)}, ${sign}${Math.abs(Math.round(added))}`;
  const mib = (bytes: number) => (Math.abs(bytes) / 1024 ** 2).toFixed(1);
  return `${mib(median)} MiB, ${sign}${mib(added)}`;
}

/** No response may be wrong, and most must be more than "not now", which an overloaded machine also causes. */
function reportAnswers(): boolean {
  let isRight = true;
  let all = 0;
  const rows: string[] = [];
  for (const [name, { fine, counts, trouble }] of tallies) {
    if (trouble !== undefined) console.log(`${name}: ${trouble}`);
    const total = [...counts.values()].reduce((sum, count) => sum + count, 0);
    all += total;
    const wrong = [...counts].filter(([status]) => status !== 503 && !fine.includes(status));
    if (wrong.length > 0 || (counts.get(503) ?? 0) > total / 2) isRight = false;
    rows.push(
      `| ${name} | ${total} | ${[...counts].map(([status, count]) => `${status}: ${count}`).join(', ')} |`,
    );
  }
  console.log(
    [
      '',
      `${all} answers by status (0: none came)`,
      '',
      '| Traffic | Asked | Answered |',
      '|---|---|---|',
      ...rows,
    ].join('\n'),
  );
  return isRight;
}
