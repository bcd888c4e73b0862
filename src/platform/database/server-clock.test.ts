import { expect, test } from 'vitest';
import { createServerClock, tellWhenOff } from './server-clock.ts';

test.each([
  [0, []],
  [1_900, []],
  [-1_900, []],
  [120_000, [{ machineIsBehindByMs: 120_000 }]],
  [-3_600_000, [{ machineIsBehindByMs: -3_600_000 }]],
])('a start tells of a clock that is %i ms off only when someone would notice', async (off, expected) => {
  const told: object[] = [];
  const clock = createServerClock({
    local: { now: () => 1_000_000 },
    serverTime: async () => 1_000_000 + off,
  });
  await clock.sync();
  tellWhenOff(clock, { warn: (fields) => void told.push(fields) });
  expect(told).toEqual(expected);
});
