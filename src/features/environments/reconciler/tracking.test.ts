import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { Change } from '../../../platform/database/change-feed.ts';
import { createTracking } from './tracking.ts';

/** Environments of two repositories at the newest commit, and a git server that answers when the test calls answer(). */
function world({ isEnabled = true } = {}) {
  const listeners: ((change: Change) => void)[] = [];
  /** Repositories of requests to git, in order. */
  const asked: string[] = [];
  const waiting: (() => void)[] = [];
  const tracked = ['one', 'two'].map((repositoryId) => ({
    id: `env_${repositoryId}`,
    repositoryId,
    branch: 'main',
    sha: 'head',
    creator: { kind: 'user', id: 'usr_ada' } as const,
    served: null,
  }));
  const tracking = createTracking({
    read: { environments: { tracked: async () => tracked } as never },
    tx: () => Promise.reject(new Error('Nothing is to be deployed.')),
    feed: { subscribe: (listener) => void listeners.push(listener) },
    repositories: {
      remoteOf: async (id) => ({ id, cloneUrl: 'https://git.example.com/x', credential: null }),
    },
    git: {
      async branches({ id }) {
        asked.push(id);
        await new Promise<void>((resolve) => waiting.push(resolve));
        return { kind: 'ok', value: [{ name: 'main', sha: 'head' }] };
      },
      treeOf: () => Promise.reject(new Error('Nothing is to be compared.')),
    },
    isEnabled: async () => isEnabled,
    isCreatorActive: async () => true,
    random: { bytes: (count) => new Uint8Array(count), int: () => 0 },
    clock: { now: () => 0 },
    log: { debug() {}, info() {}, warn() {}, error() {} },
  });
  return {
    asked,
    /** One run of the job, and all work that does not wait for git. */
    async run() {
      const outcome = await tracking.runPushed();
      await setImmediate();
      return outcome;
    },
    round: () => tracking.run(),
    push: (subject: string) => listeners.forEach((listen) => listen({ topic: 'push', subject })),
    async answer() {
      for (const resolve of waiting.splice(0)) resolve();
      await tracking.idle();
    },
  };
}

test('many pushes at once cost one question to git, and pushes during it one more', async () => {
  const { run, asked, push, answer } = world();
  for (let count = 0; count < 100; count += 1) push('one');
  expect(await run()).toBeUndefined();
  for (let count = 0; count < 100; count += 1) push('one');
  expect(await run()).toBe('unfinished');
  expect(await run()).toBe('unfinished');
  expect(asked).toEqual(['one']);
  await answer();
  expect(await run()).toBeUndefined();
  await answer();
  expect(await run()).toBeUndefined();
  expect(asked).toEqual(['one', 'one']);
});

test('a git server that does not answer delays no other repository', async () => {
  const { run, round, asked, push, answer } = world();
  push('one');
  await run();
  push('two');
  await run();
  expect(asked).toEqual(['one', 'two']);
  await answer();
  const whole = round();
  await setImmediate();
  expect(asked).toEqual(['one', 'two', 'one', 'two']);
  await answer();
  await whole;
});

test('a push to a repository without such Environments, or while they are switched off, asks nothing', async () => {
  const { run, asked, push } = world();
  push('three');
  push('*');
  await run();
  const off = world({ isEnabled: false });
  off.push('one');
  await off.run();
  expect([asked, off.asked]).toEqual([[], []]);
});
