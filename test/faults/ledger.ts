import { type Browser, NoAnswer } from './browser.ts';

/**
 * What a server reported about keys before it was killed: which creates, rotations and revocations were acknowledged, and
 * which got no response. compare() checks a restarted server against it.
 */
export type Entry = {
  readonly id: string;
  readonly value: string;
  /** The key that this one replaces. */
  readonly replaces: string | null;
  /** The rotation of this key to a successor. One without a response may have ended this key. */
  rotation: 'none' | 'asked' | 'acknowledged';
  revocation: 'none' | 'asked' | 'acknowledged';
};

export type Ledger = {
  readonly entries: Map<string, Entry>;
  /** Number of responses received. */
  acknowledged: number;
  readonly cut: Cut;
};

/** How many changes of each kind were in progress, without a response, when a server was killed. */
export type Cut = Map<string, number>;

/** @throws NoAnswer when the server ended first; then the change is counted */
export async function underWay<R>(cut: Cut, what: string, asking: Promise<R>): Promise<R> {
  try {
    return await asking;
  } catch (error) {
    if (error instanceof NoAnswer) cut.set(what, (cut.get(what) ?? 0) + 1);
    throw error;
  }
}

/** Repeatable random numbers (mulberry32): a failing run can be repeated with its seed. */
export type Dice = { below(limit: number): number };

export function createDice(seed: number): Dice {
  let state = seed;
  return {
    below(limit) {
      state = (state + 0x6d2b79f5) | 0;
      let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
      mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
      return ((mixed ^ (mixed >>> 14)) >>> 0) % limit;
    },
  };
}

/** Creates, rotates and revokes keys named `mark…` concurrently, until the server is gone. */
export async function work(browser: Browser, ledger: Ledger, mark: string, dice: Dice): Promise<void> {
  let count = 0;
  const hand = async () => {
    for (;;) await step(browser, ledger, `${mark}-${(count += 1)}`, dice);
  };
  const hands = Array.from({ length: 6 }, () =>
    hand().catch((error: unknown) => {
      if (!(error instanceof NoAnswer)) throw error;
    }),
  );
  await Promise.all(hands);
}

async function step(browser: Browser, ledger: Ledger, name: string, dice: Dice): Promise<void> {
  const path = dice.below(2) === 0 ? '/tokens' : '/me/tokens';
  const wanted = { name, scopes: ['repos:read'], repositoryAccess: { mode: 'all' } };
  const made = acknowledged(
    ledger,
    201,
    await underWay(ledger.cut, 'create', browser.api('POST', path, wanted)),
  );
  const entry = remember(ledger, made.data, null);
  const next = dice.below(10);
  if (next < 5) return await revoke(browser, ledger, path, entry);
  if (next > 7) return;
  entry.rotation = 'asked';
  const rotated = acknowledged(
    ledger,
    201,
    await underWay(ledger.cut, 'rotate', browser.api('POST', `${path}/${entry.id}/rotate`, { name })),
  );
  entry.rotation = 'acknowledged';
  const successor = remember(ledger, rotated.data, entry.id);
  if (next === 7) await revoke(browser, ledger, path, successor);
}

async function revoke(browser: Browser, ledger: Ledger, path: string, entry: Entry): Promise<void> {
  entry.revocation = 'asked';
  const revoking = browser.api('DELETE', `${path}/${entry.id}`);
  acknowledged(ledger, 200, await underWay(ledger.cut, 'revoke', revoking));
  entry.revocation = 'acknowledged';
}

function remember(ledger: Ledger, data: { id: string; token: string }, replaces: string | null): Entry {
  const entry: Entry = { id: data.id, value: data.token, replaces, rotation: 'none', revocation: 'none' };
  ledger.entries.set(entry.id, entry);
  return entry;
}

function acknowledged<R extends { status: number; text: string }>(
  ledger: Ledger,
  status: number,
  reply: R,
): R {
  if (reply.status !== status) throw new Error(`Answered ${reply.status}: ${reply.text}`);
  ledger.acknowledged += 1;
  return reply;
}

type KeyOnServer = {
  readonly id: string;
  readonly status: 'active' | 'revoked' | 'expired';
  readonly replaces: string | null;
  readonly replacedBy: string | null;
};

/** The problems with the keys named `mark…` on the server, one line each; empty when there are none. */
export async function compare(browser: Browser, ledger: Ledger, mark: string): Promise<string[]> {
  const keys = new Map((await keysNamed(browser, `${mark}-`)).map((key) => [key.id, key]));
  const problems = await Promise.all([
    ...[...ledger.entries.values()].map((entry) => entryProblems(browser, entry, keys)),
    ...[...keys.values()].map((key) => keyProblems(browser, key, keys)),
  ]);
  return problems.flat();
}

async function entryProblems(
  browser: Browser,
  entry: Entry,
  keys: ReadonlyMap<string, KeyOnServer>,
): Promise<string[]> {
  const key = keys.get(entry.id);
  if (key === undefined) return [`${entry.id}: its create was acknowledged, and it is lost`];
  const problems: string[] = [];
  if (entry.revocation === 'acknowledged' && key.status !== 'revoked')
    problems.push(`${entry.id}: its revocation was acknowledged, and it is ${key.status}`);
  // The first use of a successor, which happens here, starts the grace of its predecessor.
  const mayBeOver = entry.rotation !== 'none' && key.status === 'expired';
  if (entry.revocation === 'none' && key.status !== 'active' && !mayBeOver)
    problems.push(`${entry.id}: it was not revoked, and it is ${key.status}`);
  if (entry.rotation === 'acknowledged' && key.replacedBy === null)
    problems.push(`${entry.id}: its rotation was acknowledged, and it has no successor`);
  const { status } = await browser.asKey(entry.value, 'GET', '/auth/context');
  if ((status === 200) !== (key.status === 'active'))
    problems.push(`${entry.id}: is ${key.status}, and a request with it answers ${status}`);
  return problems;
}

/** Includes keys whose create got no response: each must be complete, and the audit log must record its creation. */
async function keyProblems(
  browser: Browser,
  key: KeyOnServer,
  keys: ReadonlyMap<string, KeyOnServer>,
): Promise<string[]> {
  const { data } = await browser.api('GET', `/tokens/${key.id}/timeline?limit=100`);
  const events: { event: string; target: { id: string } }[] = data;
  const count = (event: string, target: string) =>
    events.filter((one) => one.event === event && one.target.id === target).length;
  const problems: string[] = [];
  const births =
    key.replaces === null ? count('api_key.created', key.id) : count('api_key.rotated', key.replaces);
  if (births < 1) problems.push(`${key.id}: is ${key.status}, and no event says that it was made`);
  if (count('api_key.revoked', key.id) !== (key.status === 'revoked' ? 1 : 0))
    problems.push(
      `${key.id}: is ${key.status}, with ${count('api_key.revoked', key.id)} revocations in its trail`,
    );
  if (key.replaces !== null && keys.get(key.replaces)?.replacedBy !== key.id)
    problems.push(`${key.id}: replaces ${key.replaces}, which does not know`);
  if (key.replacedBy !== null && !keys.has(key.replacedBy))
    problems.push(`${key.id}: is replaced by ${key.replacedBy}, which is not there`);
  return problems;
}

async function keysNamed(browser: Browser, start: string): Promise<KeyOnServer[]> {
  const found: KeyOnServer[] = [];
  for (let page = 1; ; page += 1) {
    const reply = await browser.api(
      'GET',
      `/tokens?kind=all&limit=100&page=${page}&search=${encodeURIComponent(start)}`,
    );
    if (reply.status !== 200) throw new Error(`Answered ${reply.status}: ${reply.text}`);
    found.push(...(reply.data as KeyOnServer[]));
    if (page >= reply.metadata.pagination.total) return found;
  }
}
