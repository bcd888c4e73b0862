import type { V1Pod } from '@kubernetes/client-node';
import { expect, test, vi } from 'vitest';
import type { DesiredProcess } from '../engine.ts';
import type { Cluster, LogSource } from './cluster.ts';
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

const desired: DesiredProcess = {
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
};

/** With one service, whose log Kubernetes answers so. */
function opened(log: Cluster['log']) {
  const removed: string[] = [];
  const texts: string[] = [];
  const logs = createServiceLogs({
    cluster: { log },
    view: { all: () => [pod] as never, changed: () => new Promise(() => undefined) },
    store: {
      append: async (_id, _service, lines) => void texts.push(...lines.map(({ text }) => text)),
      read: async () => [],
      trim: async () => undefined,
      remove: async (id) => void removed.push(id),
    },
    later: (work) => void setImmediate(work),
    onDefect: vi.fn<(error: unknown) => void>(),
  });
  logs.know('env_one', desired);
  logs.look();
  return { logs, removed, texts };
}

const aborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));

test('a log that never ends does not hold up the removal of its Environment', async () => {
  const reading = Promise.withResolvers<void>();
  const { logs, removed } = opened(async (_source, _onChunk, signal) => {
    reading.resolve();
    await aborted(signal);
  });
  await reading.promise;
  await logs.remove('env_one');
  expect(removed).toEqual(['env_one']);
});

test('of a service that prints without end, what is over the limit is not read', async () => {
  const time = (second: number) => `2026-01-01T00:00:0${second}.000000000Z`;
  const sources: LogSource[] = [];
  const again = Promise.withResolvers<void>();
  const { logs, texts } = opened(async (source, onChunk, signal) => {
    sources.push(source);
    if (sources.length === 1) {
      while (onChunk(Buffer.from(`${time(1)} a line of many\n${time(1)} half of`)));
      return;
    }
    onChunk(Buffer.from(`${time(3)} the newest\n`));
    again.resolve();
    await aborted(signal);
  });
  await again.promise;
  await logs.remove('env_one');
  expect(sources).toMatchObject([{ lastLines: undefined }, { since: undefined, lastLines: 200 }]);
  expect(texts[0]).toBe('a line of many');
  expect(texts).toContain(
    'The log is longer than 125 bytes within 1 s. The rest is left out, except its last lines.',
  );
  expect(texts.at(-1)).toBe('the newest');
});
