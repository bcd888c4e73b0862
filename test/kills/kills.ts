import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { expect } from 'vitest';
import { Browser } from '../faults/browser.ts';
import { tell } from '../faults/figures.ts';
import { compare, createDice, type Cut, type Dice, type Ledger, work } from '../faults/ledger.ts';
import { administrator, type Installation, runCommand, startProgram } from '../faults/program.ts';
import { compareSites, type SiteHand, type SiteLedger, workOnSites } from '../faults/site-ledger.ts';
import {
  contentsOf,
  hasCleanedUp,
  leftoverProblems,
  letTimePass,
  restEncoder,
} from '../faults/site-leftovers.ts';

/**
 * The program is ended at moments it did not choose, and started again (matrix FT-01, FT-02). FAULT_CYCLES says how often,
 * 200 for the figures in docs/explanation/faults.md; FAULT_SEED repeats a run.
 */
export const isCi = process.env['CI'] === 'true';
export const cycles = Number(process.env['FAULT_CYCLES'] ?? (isCi ? 6 : 4));
/** A cycle takes 2 to 4 seconds; a crowded machine may need several times that. */
export const patienceMs = 5 * 60_000 + cycles * 20_000;
export const seed = Number(process.env['FAULT_SEED'] ?? Date.now() % 1_000_000);

/** A signed-in administrator on a running server whose limits are out of the way. */
export async function setUp(installation: Installation): Promise<Browser> {
  const program = await startProgram(installation);
  const browser = new Browser(program.origin);
  await browser.signIn(administrator.email, administrator.password);
  const read = await browser.api('GET', '/config/api-keys');
  const wide = {
    ...read.data.policy,
    maxActivePersonalKeysPerUser: 1_000,
    rateLimitPerMinute: 1_000_000,
    failedAuthenticationsPerMinute: 1_000_000,
  };
  const changed = await browser.api('PUT', '/config/api-keys', wide, {
    'if-match': String(read.headers['etag']),
  });
  expect(changed.status).toBe(200);
  await program.end('SIGTERM');
  browser.disconnect();
  return browser;
}

/** Limits of sites out of the way, and a key that may change them. `config`: what else is to be set. */
async function setUpSites(installation: Installation, config: object = {}): Promise<SiteHand> {
  const browser = await setUp(installation);
  const program = await startProgram(installation);
  const { headers, data } = await browser.api('GET', '/config/sites');
  const quotas = { ...data.config.quotas, sitesPerOwner: 1_000_000 };
  const wide = { ...data.config, quotas, ...config };
  const changed = await browser.api('PUT', '/config/sites', wide, { 'if-match': String(headers['etag']) });
  expect(changed.status).toBe(200);
  const key = await browser.api('POST', '/me/tokens', {
    name: 'publishes',
    scopes: ['sites:write'],
    repositoryAccess: { mode: 'all' },
  });
  await program.end('SIGTERM');
  browser.disconnect();
  return { browser, key: key.data.token };
}

/** Lives in which sites are published, replaced and deleted, each ended by SIGKILL; then the stored state is checked. */
export async function publishThroughKills(installation: Installation) {
  const dice = createDice(seed);
  const hand = await setUpSites(installation);
  const ledger: SiteLedger = { entries: [], acknowledged: 0, cut: new Map() };
  const problems: string[] = [];
  let looked = 0;
  for (let cycle = 1; cycle <= cycles && problems.length === 0; cycle += 1) {
    const program = await startProgram(installation);
    const before = ledger.acknowledged;
    const working = workOnSites(hand, ledger, `c${cycle}`, dice);
    const enough = before + dice.below(20);
    while (ledger.acknowledged < enough) await Promise.race([wait(2), working]);
    await wait(dice.below(60));
    await program.end('SIGKILL');
    await working;
    hand.browser.disconnect();
    if (cycle % 5 !== 0 && cycle !== cycles) continue;
    const incoming = join(installation.dataDir, 'blobs', 'incoming');
    const half = readdirSync(incoming);
    const check = await startProgram(installation);
    // Its own, which it makes beside the questions below, are no leftovers.
    const left = readdirSync(incoming).filter((name) => half.includes(name));
    if (left.length > 0) problems.push(`${left.length} half blobs were left after a start`);
    // The sites of an earlier life do not change, so they are checked soon after it, and again at the end.
    problems.push(...(await compareSites(hand, ledger.entries.slice(cycle === cycles ? 0 : looked))));
    looked = ledger.entries.length;
    await check.end('SIGTERM');
    hand.browser.disconnect();
  }
  const auditLog = await runCommand(installation, ['audit', 'verify']);
  if (auditLog.code !== 0) problems.push(auditLog.output);
  if (problems.length > 0) problems.unshift(`FAULT_SEED=${seed}`);
  tellOfKills(ledger.acknowledged, ledger.cut, problems);
  return { acknowledged: ledger.acknowledged, problems };
}

export function tellOfKills(acknowledged: number, cut: Cut, problems: readonly string[]): void {
  const under = [...cut].map(([what, count]) => `${what} ${count}`).join(', ');
  tell(
    `${cycles} kills`,
    `${acknowledged} changes acknowledged; never answered: ${under}; problems: ${problems.length}`,
  );
}

/**
 * Lives that leave much to clean up, each followed by one that is ended by SIGKILL inside the clean-up: while it removes
 * sites and makes compressed forms, or while it removes bytes. Then one that comes to its end, and nothing may be left.
 */
export async function cleanUpThroughKills(installation: Installation, count: number) {
  const { dataDir } = installation;
  const dice = createDice(seed);
  const hand = await setUpSites(installation, {
    versions: { retain: 1, skewGraceMinutes: 0 },
    deletion: { restoreDays: 0 },
  });
  const ledger: SiteLedger = { entries: [], acknowledged: 0, cut: new Map() };
  let cut = 0;
  for (let cycle = 1; cycle <= count; cycle += 1) {
    const program = await startProgram(installation);
    const working = workOnSites(hand, ledger, `c${cycle}`, dice);
    const enough = ledger.acknowledged + 15;
    while (ledger.acknowledged < enough) await Promise.race([wait(2), working]);
    await program.end('SIGKILL');
    await working;
    hand.browser.disconnect();
    await letTimePass(dataDir);
    const before = contentsOf(dataDir);
    const isCut = () => {
      const now = new Set(contentsOf(dataDir));
      return before.some((digest) => !now.has(digest));
    };
    const cleaning = await startProgram(installation);
    const giveUpAt = Date.now() + 2 * 60_000;
    const isForBytes = cycle % 2 === 0;
    while (isForBytes && !isCut() && Date.now() < giveUpAt) await wait(1);
    await wait(isForBytes ? dice.below(10) : 100 + dice.below(400));
    await cleaning.end('SIGKILL');
    if (isCut()) cut += 1;
  }
  await letTimePass(dataDir);
  const program = await startProgram(installation);
  const problems = await compareSites(hand, ledger.entries, { isPurging: true });
  // It lets the clean-up that is under way come to its end.
  await program.end('SIGTERM');
  hand.browser.disconnect();
  // A compressed form of what was removed while it was made is for the clean-up after that.
  await letTimePass(dataDir);
  await restEncoder(dataDir);
  const last = await startProgram(installation);
  if (!(await hasCleanedUp(installation.ports.operations))) problems.push('the clean-up had no turn');
  await last.end('SIGTERM');
  problems.push(...(await leftoverProblems(dataDir)));
  const auditLog = await runCommand(installation, ['audit', 'verify']);
  if (auditLog.code !== 0) problems.push(auditLog.output);
  if (problems.length > 0) problems.unshift(`FAULT_SEED=${seed}`);
  return { cut, problems };
}

/** One life of the server under load, from its start to the signal. */
async function live(
  installation: Installation,
  browser: Browser,
  { cycle, signal, dice }: { cycle: number; signal: 'SIGKILL' | 'SIGTERM'; dice: Dice },
): Promise<Ledger> {
  const program = await startProgram(installation);
  const ledger: Ledger = { entries: new Map(), acknowledged: 0, cut: new Map() };
  let isOver = false;
  const working = work(browser, ledger, `c${cycle}`, dice).finally(() => {
    isOver = true;
  });
  // Counted in answers, so that a slow machine also has something to lose; then anywhere within the next ones.
  const enough = dice.below(40);
  while (ledger.acknowledged < enough && !isOver) await Promise.race([wait(2), working]);
  await wait(dice.below(30));
  const exit = await program.end(signal);
  await working;
  browser.disconnect();
  expect(exit).toEqual(signal === 'SIGKILL' ? { code: null, signal: 'SIGKILL' } : { code: 0, signal: null });
  return ledger;
}

async function check(installation: Installation, browser: Browser, ledgers: ReadonlyMap<number, Ledger>) {
  const program = await startProgram(installation);
  const problems: string[] = [];
  for (const [cycle, ledger] of ledgers) problems.push(...(await compare(browser, ledger, `c${cycle}`)));
  await program.end('SIGTERM');
  browser.disconnect();
  const auditLog = await runCommand(installation, ['audit', 'verify']);
  if (auditLog.code !== 0) problems.push(auditLog.output);
  return problems;
}

/** Lives one after another; each life's keys are checked soon after it, and all of them again at the end. */
export async function liveManyTimes(
  installation: Installation,
  count: number,
  signalOf: (cycle: number) => 'SIGKILL' | 'SIGTERM',
): Promise<{ acknowledged: number; problems: string[] }> {
  const dice = createDice(seed);
  const browser = await setUp(installation);
  const ledgers = new Map<number, Ledger>();
  const problems: string[] = [];
  for (let cycle = 1; cycle <= count && problems.length === 0; cycle += 1) {
    ledgers.set(cycle, await live(installation, browser, { cycle, signal: signalOf(cycle), dice }));
    if (cycle % 5 === 0)
      problems.push(...(await check(installation, browser, new Map([...ledgers].slice(-5)))));
  }
  problems.push(...(await check(installation, browser, ledgers)));
  if (problems.length > 0) problems.unshift(`FAULT_SEED=${seed}`);
  let acknowledged = 0;
  const cut: Cut = new Map();
  for (const ledger of ledgers.values()) {
    acknowledged += ledger.acknowledged;
    for (const [what, count] of ledger.cut) cut.set(what, (cut.get(what) ?? 0) + count);
  }
  tellOfKills(acknowledged, cut, problems);
  return { acknowledged, problems };
}
