import { expect, test } from 'vitest';
import type { UserRef } from '../../core/caller.ts';
import { AppError } from '../../core/errors.ts';
import { memoryKv } from '../../platform/kv/memory-kv.ts';
import { FakeClock } from '../../../test/clock.ts';
import { createGrantHolders } from './grant-holders.ts';
import type { HeldGrant } from './holder-store.ts';
import { endedGrant } from './records.ts';

const minute = 60_000;

/** Two people with a grant each, and what the directory says about them. */
function setUp() {
  const clock = new FakeClock();
  const kv = memoryKv({ clock });
  const grant = (name: string): HeldGrant => ({
    id: `grt_${name}`,
    storeKey: `grant:${name}`,
    environmentId: 'env_1',
    userId: name,
    sessionId: `ses_${name}`,
    endsAt: clock.now() + 5 * minute,
  });
  const rows = new Map(['ada', 'ben'].map((name) => [`grt_${name}`, grant(name)]));
  const states: Record<string, 'active' | 'lost' | 'unknown'> = { ada: 'active', ben: 'active' };
  const endedSessions = new Set<string>();
  let isAway = false;
  const found = (fits: (grant: HeldGrant) => boolean, now: number) =>
    [...rows.values()].filter((one) => fits(one) && one.endsAt > now);
  const holders = createGrantHolders({
    kv: {
      time: kv.time,
      set: (...args) => (isAway ? Promise.reject(new AppError('store_unavailable')) : kv.set(...args)),
    },
    read: {
      holders: {
        insert: async () => undefined,
        ofUser: async (id, now) => found(({ userId }) => userId === id, now),
        ofSession: async (id, now) => found(({ sessionId }) => sessionId === id, now),
        holders: async (now) => found(() => true, now),
        remove: async (ids) => ids.forEach((id) => rows.delete(id)),
        prune: async () => undefined,
      },
    },
    clock,
    log: { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} },
    findUser: async (id) => ({ id }) as UserRef,
    stateOf: async ({ id }) => states[id] ?? 'unknown',
    isSessionLive: async (id) => !endedSessions.has(id),
  });
  const ended = async () => {
    await holders.settled();
    const { values } = await kv.getAll(['grant:ada', 'grant:ben']);
    return values.map((value) => value === endedGrant);
  };
  return {
    holders,
    states,
    endedSessions,
    ended,
    rows,
    cut: (value: boolean) => (isAway = value),
  };
}

test('the sweep ends the grants of a person who is disabled or without the role, and of no other', async () => {
  const { holders, states, ended, rows } = setUp();
  await holders.checkAll();
  expect(await ended()).toEqual([false, false]);
  states['ben'] = 'unknown';
  await holders.checkAll();
  expect(await ended()).toEqual([false, false]);
  states['ben'] = 'lost';
  await holders.checkAll();
  expect(await ended()).toEqual([false, true]);
  expect([...rows.keys()]).toEqual(['grt_ada']);
});

test('the sweep ends the grants of a session that ended', async () => {
  const { holders, endedSessions, ended } = setUp();
  endedSessions.add('ses_ada');
  await holders.checkAll();
  expect(await ended()).toEqual([true, false]);
});

test('what the key-value store could not take is ended when it is back', async () => {
  const { holders, ended, cut, rows } = setUp();
  cut(true);
  holders.endOfUser('ada');
  await holders.retryOwed();
  expect(await ended()).toEqual([false, false]);
  expect(rows.size).toBe(2);
  cut(false);
  await holders.retryOwed();
  expect(await ended()).toEqual([true, false]);
});
