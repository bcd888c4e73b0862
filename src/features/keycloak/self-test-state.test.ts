import { expect, test } from 'vitest';
import { createSelfTestState } from './self-test-state.ts';
import type { SelfTestResult } from './self-test.ts';

const away: SelfTestResult = { kind: 'away', check: 'discovery', reason: 'ECONNREFUSED' };
const passed: SelfTestResult = { kind: 'passed' };
const refused: SelfTestResult = {
  kind: 'refused',
  check: 'client credentials',
  setting: 'PRINCIPAL_SYNC_CLIENT_ID',
  problem: 'can do more than read',
  fix: 'Take it away.',
};

function open() {
  let now = 0;
  let result = away;
  let runs = 0;
  const said: string[] = [];
  const note = (_: unknown, message: string) => void said.push(message);
  const selfTestState = createSelfTestState({
    selfTest: async () => {
      runs += 1;
      return result;
    },
    clock: { now: () => now },
    log: { debug: note, info: note, warn: note, error: note },
  });
  return {
    selfTestState,
    said,
    runs: () => runs,
    set: (next: SelfTestResult) => void (result = next),
    advance: (ms: number) => void (now += ms),
  };
}

test('nothing holds before the self-test has passed, and then it holds through an outage', async () => {
  const { selfTestState, set, advance } = open();
  expect(await selfTestState.holds()).toBe(false);
  set(passed);
  advance(1_000);
  expect(await selfTestState.holds()).toBe(true);
  set(away);
  await selfTestState.check();
  expect(await selfTestState.holds()).toBe(true);
});

test('a mistake that is made later closes it, and fixing it opens it again', async () => {
  const { selfTestState, set, advance, said } = open();
  set(passed);
  expect(await selfTestState.holds()).toBe(true);
  set(refused);
  await selfTestState.check();
  expect(await selfTestState.holds()).toBe(false);
  expect(said).toContain('identity provider: the self-test failed');
  set(passed);
  advance(1_000);
  expect(await selfTestState.holds()).toBe(true);
});

test('many who ask meanwhile start one self-test, and not another within the second', async () => {
  const { selfTestState, runs, advance } = open();
  await Promise.all(Array.from({ length: 20 }, () => selfTestState.holds()));
  await selfTestState.holds();
  expect(runs()).toBe(1);
  advance(1_000);
  await selfTestState.holds();
  expect(runs()).toBe(2);
});
