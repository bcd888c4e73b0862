import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { environmentRow } from '../../../../test/environment-row.ts';
import type { EnvironmentStatus } from '../environment/environment.ts';
import { createReconciler } from './reconciler.ts';

/** Environments without services and with ids `<repository>:<status>:<number>`, and git servers that never answer. */
function world() {
  /** Repositories of requests to git. */
  const asked: string[] = [];
  const written = { transactions: 0 };
  const environmentOf = (id: string) => {
    const [repositoryId = '', status] = id.split(':');
    const creator = { kind: 'user', id: 'usr_ada' } as const;
    // The ids have the form that the test below uses.
    return environmentRow(0, {
      id,
      uuid: id,
      label: id,
      creator,
      repositoryId,
      status: status as EnvironmentStatus,
    });
  };
  const deps = {
    read: {
      environments: { find: async (id: string) => environmentOf(id), services: async () => new Map() },
      deploys: {
        underWay: async (id: string) => ({ id, repositoryId: environmentOf(id).repositoryId, plan: null }),
        steps: async () => new Map(),
      },
    },
    tx: async () => void (written.transactions += 1),
    feed: { subscribe: () => undefined },
    repositories: {
      async remoteOf(id: string) {
        asked.push(id);
        await new Promise<never>(() => undefined);
      },
    },
    engine: null,
    databases: null,
    clock: { now: () => 0 },
    log: { debug() {}, info() {}, warn() {}, error() {} },
  };
  // The steps of the test use no other dependency.
  const reconciler = createReconciler(deps as never);
  return { reconciler, asked, written };
}

test('git servers that do not answer delay nothing that needs none', async () => {
  const { reconciler, asked, written } = world();
  for (const repository of ['one', 'two', 'three'])
    for (const number of [1, 2]) reconciler.look(`${repository}:queued:${number}`);
  while (asked.length < 4) await setImmediate();
  reconciler.look('four:tearing_down:1');
  while (written.transactions === 0) await setImmediate();
  expect(asked).toEqual(['one', 'one', 'two', 'two']);
});
