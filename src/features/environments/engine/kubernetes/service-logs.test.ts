import type { V1Pod } from '@kubernetes/client-node';
import { expect, test, vi } from 'vitest';
import { labels } from './objects.ts';
import { createServiceLogs } from './service-logs.ts';

const pod: V1Pod = {
  metadata: {
    uid: 'one',
    name: 'one',
    labels: { [labels.environment]: 'env_one', [labels.service]: 'api' },
  },
  status: {
    containerStatuses: [
      {
        name: 'service',
        image: '',
        imageID: '',
        ready: true,
        restartCount: 0,
        containerID: 'a',
        state: { running: { startedAt: new Date(0) } },
      },
    ],
  },
};

test('a log that never ends does not hold up the removal of its Environment', async () => {
  const reading = Promise.withResolvers<void>();
  const removed: string[] = [];
  const logs = createServiceLogs({
    cluster: {
      async log(_source, _onChunk, signal) {
        reading.resolve();
        await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
      },
    },
    view: { all: () => [pod] as never, changed: () => new Promise(() => undefined) },
    store: {
      append: async () => undefined,
      read: async () => [],
      trim: async () => undefined,
      remove: async (id) => void removed.push(id),
    },
    later: (work) => void setImmediate(work),
    onDefect: vi.fn<(error: unknown) => void>(),
  });
  logs.know('env_one', {
    service: 'api',
    revision: 'first',
    artifact: { digest: '0'.repeat(64), size: 1 },
    image: 'node:24',
    command: 'node server.js',
    port: 8080,
    health: null,
    variables: {},
    secrets: {},
    redacted: [],
    memoryBytes: 1,
    milliCpu: 1,
    logBytes: 1_000,
    isAsleep: false,
  });
  logs.look();
  await reading.promise;
  await logs.remove('env_one');
  expect(removed).toEqual(['env_one']);
});
