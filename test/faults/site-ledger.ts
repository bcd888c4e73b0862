import { createHash } from 'node:crypto';
import { zipOf } from '../archives/zip.ts';
import { type Browser, type Envelope, NoAnswer, type Reply } from './browser.ts';
import { type Cut, type Dice, underWay } from './ledger.ts';

/**
 * What a server reported about sites before it was killed. The content of each version carries its own mark, so a mixture
 * of two versions is detected. compareSites() checks a restarted server against it.
 */
export type SiteEntry = {
  readonly id: string;
  /** The mark of the version last acknowledged as live. */
  live: string;
  /** The mark of a publish without a response. */
  asked: string | null;
  deletion: 'none' | 'asked' | 'acknowledged';
};

/** Uses a key: this makes changes faster than the limit for people allows. */
export type SiteHand = { readonly browser: Browser; readonly key: string };

export type SiteLedger = { readonly entries: SiteEntry[]; acknowledged: number; readonly cut: Cut };

const filesPerSite = 12;

function filesOf(mark: string): { name: string; content: string }[] {
  return Array.from({ length: filesPerSite }, (_, at) => ({
    name: at === 0 ? 'index.html' : `part-${at}.html`,
    // Long enough for a compressed form.
    content: `<p>${mark} ${at}</p>\n`.repeat(20),
  }));
}

function bodyOf(mark: string) {
  return { type: 'application/zip', body: zipOf(filesOf(mark)) };
}

async function ask(
  { browser, key }: SiteHand,
  method: string,
  path: string,
  sent?: { type: string; body: Buffer },
): Promise<Reply & Envelope> {
  const reply = await browser.asKey(key, method, path, sent);
  return { ...reply, ...(JSON.parse(reply.text) as Envelope) };
}

/** Creates, replaces and deletes sites concurrently, until the server is gone. */
export async function workOnSites(
  hand: SiteHand,
  ledger: SiteLedger,
  mark: string,
  dice: Dice,
): Promise<void> {
  let count = 0;
  const turns = async () => {
    for (;;) await step(hand, ledger, `${mark}-${(count += 1)}`, dice);
  };
  const hands = Array.from({ length: 4 }, () =>
    turns().catch((error: unknown) => {
      if (!(error instanceof NoAnswer)) throw error;
    }),
  );
  await Promise.all(hands);
}

async function step(hand: SiteHand, ledger: SiteLedger, mark: string, dice: Dice): Promise<void> {
  const { cut } = ledger;
  const making = ask(hand, 'POST', `/sites?name=${mark}`, bodyOf(`${mark} one`));
  const made = await underWay(cut, 'publish', making);
  if (made.status !== 201) throw new Error(`Answered ${made.status}: ${made.text}`);
  const entry: SiteEntry = { id: made.data.id, live: `${mark} one`, asked: null, deletion: 'none' };
  ledger.entries.push(entry);
  ledger.acknowledged += 1;
  for (let turn = dice.below(3); turn > 0; turn -= 1) {
    entry.asked = `${mark} turn ${turn}`;
    const replacing = ask(hand, 'PUT', `/sites/${entry.id}/content`, bodyOf(entry.asked));
    const replaced = await underWay(cut, 'replace', replacing);
    if (replaced.status !== 200) throw new Error(`Answered ${replaced.status}: ${replaced.text}`);
    entry.live = entry.asked;
    entry.asked = null;
    ledger.acknowledged += 1;
  }
  if (dice.below(3) > 0) return;
  entry.deletion = 'asked';
  const deleted = await underWay(cut, 'delete', ask(hand, 'DELETE', `/sites/${entry.id}`));
  if (deleted.status !== 200) throw new Error(`Answered ${deleted.status}: ${deleted.text}`);
  entry.deletion = 'acknowledged';
  ledger.acknowledged += 1;
}

/**
 * The problems with these sites on the server, one line each; empty when there are none. `isPurging`: deleted sites may
 * have been removed permanently.
 */
export async function compareSites(
  hand: SiteHand,
  entries: readonly SiteEntry[],
  { isPurging = false } = {},
): Promise<string[]> {
  const problems: string[] = [];
  for (const entry of entries) problems.push(...(await siteProblems(hand, entry, isPurging)));
  return problems;
}

async function siteProblems(hand: SiteHand, entry: SiteEntry, isPurging: boolean): Promise<string[]> {
  const { id, deletion } = entry;
  const site = await ask(hand, 'GET', `/sites/${id}`);
  if (isPurging && deletion !== 'none' && site.status === 404) return await purgeProblems(hand.browser, id);
  if (site.status !== 200) return [`${id}: was acknowledged, and reading it answers ${site.status}`];
  const { status } = site.data;
  const problems: string[] = [];
  if (deletion === 'acknowledged' && status !== 'deleted')
    problems.push(`${id}: its deletion was acknowledged, and it is ${status}`);
  if (deletion === 'none' && status !== 'active')
    problems.push(`${id}: it was not deleted, and it is ${status}`);
  const files = await ask(hand, 'GET', `/sites/${id}/files?limit=100`);
  const digests = new Map<string, string>(
    files.data.map((file: { path: string; sha256: string }) => [file.path, file.sha256]),
  );
  const isWhole = (mark: string) =>
    digests.size === filesPerSite &&
    filesOf(mark).every(({ name, content }) => digests.get(name) === sha256(content));
  const mark = [entry.live, entry.asked ?? entry.live].find(isWhole);
  if (mark === undefined) return [...problems, `${id}: serves neither the old version nor the new one whole`];
  for (const { name, content } of filesOf(mark)) {
    const file = await hand.browser.asKey(hand.key, 'GET', `/sites/${id}/files/${name}`);
    if (file.text !== content)
      problems.push(`${id}: ${name} of ${mark} answers ${file.status} or other bytes`);
  }
  return [...problems, ...(await auditProblems(hand.browser, id, site.data))];
}

/**
 * The audit log must have exactly these events: a creation, a publish for each later version, and a deletion if there was
 * one.
 */
async function auditProblems(
  browser: Browser,
  id: string,
  site: { status: string; version: { number: number } },
): Promise<string[]> {
  const { data } = await browser.api('GET', `/audit/events?target=${id}&limit=100`);
  const events: { event: string }[] = data;
  const count = (event: string) => events.filter((one) => one.event === event).length;
  const expected = [1, site.version.number - 1, site.status === 'deleted' ? 1 : 0];
  const found = ['site.created', 'site.published', 'site.deleted'].map(count);
  return found.join() === expected.join()
    ? []
    : [`${id}: its trail holds ${found.join()}, not ${expected.join()}`];
}

/** A permanently removed site must have one purge event in the audit log, after one deletion. */
async function purgeProblems(browser: Browser, id: string): Promise<string[]> {
  const { data } = await browser.api('GET', `/audit/events?target=${id}&limit=100`);
  const events: string[] = data.map(({ event }: { event: string }) => event);
  const count = (event: string) => events.filter((one) => one === event).length;
  const found = ['site.created', 'site.deleted', 'site.purged'].map(count);
  return found.join() === '1,1,1' ? [] : [`${id}: is gone, and its trail holds ${found.join()}`];
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
