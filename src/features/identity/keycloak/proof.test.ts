import { expect, test } from 'vitest';
import { createProof } from './proof.ts';
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
  const proof = createProof({
    selfTest: async () => {
      runs += 1;
      return result;
    },
    clock: { now: () => now },
    log: { debug: note, info: note, warn: note, error: note },
  });
  return {
    proof,
    said,
    runs: () => runs,
    set: (next: SelfTestResult) => void (result = next),
    advance: (ms: number) => void (now += ms),
  };
}

test('nothing holds before the self-test has passed, and then it holds through an outage', async () => {
  const { proof, set, advance } = open();
  expect(await proof.holds()).toBe(false);
  set(passed);
  advance(1_000);
  expect(await proof.holds()).toBe(true);
  set(away);
  await proof.check();
  expect(await proof.holds()).toBe(true);
});

test('a mistake that is made later closes it, and mending it opens it again', async () => {
  const { proof, set, advance, said } = open();
  set(passed);
  expect(await proof.holds()).toBe(true);
  set(refused);
  await proof.check();
  expect(await proof.holds()).toBe(false);
  expect(said).toContain('identity provider: the self-test found a mistake');
  set(passed);
  advance(1_000);
  expect(await proof.holds()).toBe(true);
});

test('many who ask meanwhile start one self-test, and not another within the second', async () => {
  const { proof, runs, advance } = open();
  await Promise.all(Array.from({ length: 20 }, () => proof.holds()));
  await proof.holds();
  expect(runs()).toBe(1);
  advance(1_000);
  await proof.holds();
  expect(runs()).toBe(2);
});
