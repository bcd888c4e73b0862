// @module-tag sql
/**
 * An installation with 20,000 owners.
 * @module-tag flood
 */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { hour, minute, second } from '../../../src/core/clock.ts';
import {
  createOwnerSweep,
  type OwnerState,
  type SweepResult,
} from '../../../src/features/keys/owner-sweep.ts';
import { sql } from '../../../src/platform/database/sql.ts';
import { type Harness, openHarness, type Person } from '../../harness.ts';

/** The owner sweep of an installation with 20,000 owners, before a directory that answers in its own time. */
const count = 20_000;
const idOf = (nth: number) => `usr_${String(nth).padStart(6, '0')}`;
const nthOf = (id: string) => Number(id.slice(4));

let h: Harness;
let root: Person;
beforeAll(async () => {
  h = await openHarness();
  root = await h.person('Root', { admin: true });
  // In parts: each key adds one to the same row of the counter, which costs more the more of them one statement adds.
  for (let from = 1; from <= count; from += 250)
    await sql`
      insert into api_keys (id, digest, type, name, scopes, repository_mode, owner_user_id, created_at)
      select lpad(n::text, 12, '0'), sha256(n::text::bytea), 'personal', 'key', '["repos:read"]', 'all',
             'usr_' || lpad(n::text, 6, '0'), ${new Date(h.clock.now())}
        from generate_series(${from}::int, ${from + 249}::int) n`.run(h.database.sql);
  await sql`analyze api_keys`.run(h.database.sql);
});
beforeEach(async () => {
  await sql`update api_keys set suspended_at = null, revoked_at = null, revoke_reason = null
             where suspended_at is not null or revoked_at is not null`.run(h.database.sql);
});
afterAll(() => h.close());

/** What became of the keys, by the number of their owner. */
async function changed(): Promise<{ suspended: number[]; revoked: number[] }> {
  const rows = await sql<{ ownerUserId: string; suspended: boolean }>`
    select owner_user_id, suspended_at is not null as suspended from api_keys
     where suspended_at is not null or revoked_at is not null order by 1`.all(h.database.sql);
  const of = (isSuspended: boolean) =>
    rows.filter(({ suspended }) => suspended === isSuspended).map((row) => nthOf(row.ownerUserId));
  return { suspended: of(true), revoked: of(false) };
}

/** A directory that takes `askMs` of the fake clock for each question, and a sweep of a process that just started. */
function setUp(stateOf: (nth: number, ask: number) => OwnerState, askMs = 10) {
  const { read, tx, clock, log } = h.app.services;
  const asked = new Map<string, number>();
  let atOnce = 0;
  const most = { atOnce: 0, turnMs: 0 };
  const start = () =>
    createOwnerSweep({
      read,
      tx,
      clock,
      log,
      findUser: async (id) => ({ id, issuer: 'elsewhere', subject: id, name: id }),
      async stateOf({ id }) {
        most.atOnce = Math.max(most.atOnce, (atOnce += 1));
        h.clock.advance(askMs);
        await Promise.resolve();
        atOnce -= 1;
        const ask = (asked.get(id) ?? 0) + 1;
        asked.set(id, ask);
        return stateOf(nthOf(id), ask);
      },
      setStamp: async () => undefined,
    });
  let sweep = start();
  async function turn(signal?: AbortSignal): Promise<SweepResult | 'unfinished'> {
    const startedAt = h.clock.now();
    const result = await sweep.run(signal);
    most.turnMs = Math.max(most.turnMs, h.clock.now() - startedAt);
    return result;
  }
  return {
    asked,
    most,
    turn,
    restart: () => void (sweep = start()),
    /** Turns until the pass is over; `between` runs after each that left something. */
    async pass(
      between: () => Promise<void> = async () => undefined,
    ): Promise<SweepResult & { turns: number }> {
      for (let turns = 1; ; turns += 1) {
        const result = await turn();
        if (result !== 'unfinished') return { ...result, turns };
        await between();
      }
    },
  };
}

const disabled = (is: boolean): OwnerState => (is ? 'disabled' : 'active');

test('20,000 owners are checked once each, eight at a time, in turns of twenty seconds; disabled owners lose their keys when all are known', async () => {
  const directory = setUp((nth) => disabled(nth % 1_000 === 1));
  const result = await directory.pass(async () => {
    const isWhole = directory.asked.size === count;
    expect((await changed()).suspended.length === 0 || isWhole).toBe(true);
  });
  expect(result).toMatchObject({ owners: count, suspended: 20, lifted: 0, revoked: 0, held: false });
  expect(result.turns).toBeGreaterThan(5);
  expect(directory.most.atOnce).toBe(8);
  expect(directory.most.turnMs).toBeLessThanOrEqual(21 * second);
  expect(directory.asked.size).toBe(count);
  // Once more only who was to lose something.
  expect([...directory.asked.values()].reduce((sum, times) => sum + times)).toBe(count + 20);
  expect((await changed()).suspended).toEqual(Array.from({ length: 20 }, (_, at) => at * 1_000 + 1));
  const back = setUp(() => 'active', 0);
  expect(await back.pass()).toMatchObject({ lifted: 20, suspended: 0 });
});

test.each<[string, (nth: number) => OwnerState, { suspending: number; revoking: number }]>([
  ['disabled, the first of them', (nth) => disabled(nth <= 2_001), { suspending: 2_001, revoking: 0 }],
  ['disabled, the last of them', (nth) => disabled(nth > count - 2_001), { suspending: 2_001, revoking: 0 }],
  ['deleted', (nth) => (nth % 3 === 0 ? 'deleted' : 'active'), { suspending: 0, revoking: 6_666 }],
  [
    'one or the other',
    (nth) => (nth <= 1_500 ? 'deleted' : disabled(nth > count - 600)),
    { suspending: 600, revoking: 1_500 },
  ],
])(
  'when more than a tenth of 20,000 owners are suddenly %s, no key of anyone is touched, and the audit log says so',
  async (_what, stateOf, counts) => {
    const directory = setUp(stateOf);
    expect(await directory.pass()).toMatchObject({ owners: count, suspended: 0, revoked: 0, held: true });
    expect(await changed()).toEqual({ suspended: [], revoked: [] });
    const { data } = await h.call('GET', '/audit/events', { as: root, query: { event: 'sweep.held' } });
    expect(data[0]).toMatchObject({ outcome: 'failure', details: { owners: count, ...counts } });
  },
);

test('a directory that fails in the middle of a pass costs no owner a key, even if that owner was already checked', async () => {
  let isBroken = false;
  const directory = setUp((nth) => disabled(isBroken || nth % 2_000 === 1));
  const result = await directory.pass(async () => void (isBroken = directory.asked.size > count / 2));
  expect(result).toMatchObject({ held: true, suspended: 0 });
  expect(await changed()).toEqual({ suspended: [], revoked: [] });
});

test('an owner who is enabled again at the second check keeps the keys, and one who is disabled only then is not yet affected', async () => {
  const states: Record<number, [OwnerState, OwnerState]> = {
    1: ['disabled', 'active'],
    2: ['deleted', 'unknown'],
    3: ['disabled', 'deleted'],
    4: ['disabled', 'disabled'],
    5: ['deleted', 'deleted'],
  };
  const directory = setUp((nth, ask) => states[nth]?.[ask - 1] ?? 'active', 0);
  expect(await directory.pass()).toMatchObject({ suspended: 1, revoked: 1, held: false });
  expect(await changed()).toEqual({ suspended: [4], revoked: [5] });
});

test('an aborted run stops at once, and the next one continues where it stopped', async () => {
  const controller = new AbortController();
  const directory = setUp((nth) => {
    if (nth === 1_000) controller.abort();
    return 'active';
  }, 0);
  expect(await directory.turn(controller.signal)).toBe('unfinished');
  expect(directory.asked.size).toBe(1_000);
  expect(await directory.turn()).toMatchObject({ owners: count });
  expect(new Set(directory.asked.values())).toEqual(new Set([1]));
});

test('a run that is aborted while it suspends keys suspends no further key, and the next one handles the rest', async () => {
  const controller = new AbortController();
  const directory = setUp((nth, ask) => {
    if (nth === 20 && ask === 2) controller.abort();
    return disabled(nth <= 50);
  }, 0);
  expect(await directory.turn(controller.signal)).toBe('unfinished');
  expect((await changed()).suspended).toHaveLength(16);
  expect(await directory.turn()).toMatchObject({ suspended: 50, owners: count });
  expect((await changed()).suspended).toHaveLength(50);
});

test('a restart in the middle starts again and repeats no change; so does a pass that stalled for long', async () => {
  const directory = setUp((nth) => disabled(nth % 1_000 === 1));
  expect(await directory.turn()).toBe('unfinished');
  const before = directory.asked.size;
  directory.restart();
  expect(await directory.turn()).toBe('unfinished');
  expect(directory.asked.size).toBe(before);
  h.clock.advance(hour);
  expect(await directory.turn()).toBe('unfinished');
  expect(directory.asked.size).toBe(before);
  h.clock.advance(9 * minute);
  expect(await directory.turn()).toBe('unfinished');
  expect(directory.asked.size).toBeGreaterThan(before);
  expect(await directory.pass()).toMatchObject({ owners: count, suspended: 20 });
});

test('a database failure in the middle of a pass ends only that turn', async () => {
  let isAway = false;
  const directory = setUp((nth) => {
    if (isAway && nth === 300) throw new Error('away');
    return disabled(nth === 299);
  }, 0);
  isAway = true;
  await expect(directory.turn()).rejects.toThrow('away');
  isAway = false;
  expect(await directory.turn()).toMatchObject({ owners: count, suspended: 1 });
  expect(directory.asked.get(idOf(1))).toBe(1);
});

test('a pass that outlasts its turn continues at the next tick of the process, not five minutes later', async () => {
  let askMs = 0;
  const slow = await openHarness({
    directory: (builtin) => ({
      ...builtin,
      principal(subject) {
        slow.clock.advance(askMs);
        return builtin.principal(subject);
      },
    }),
  });
  const people: Person[] = [];
  for (let nth = 0; nth < 9; nth += 1) people.push(await slow.person(`Person${nth}`));
  for (const person of people) await slow.key(person);
  const suspended = async () => {
    const row = await sql<{ count: number }>`
      select count(*)::int as count from api_keys where suspended_at is not null`.first(slow.database.sql);
    return row?.count;
  };
  await slow.app.jobs.tick();
  await sql`update accounts set enabled = false where subject = ${people[0]?.subject}`.run(slow.database.sql);
  slow.clock.advance(5 * minute);
  askMs = 4 * second;
  const startedAt = slow.clock.now();
  await slow.app.jobs.tick();
  expect(await suspended()).toBe(0);
  await slow.app.jobs.tick();
  expect(await suspended()).toBe(1);
  expect(slow.clock.now() - startedAt).toBeLessThan(minute);
  await slow.close();
});
