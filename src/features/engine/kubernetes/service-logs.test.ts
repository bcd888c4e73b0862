import type { V1Pod } from '@kubernetes/client-node';
import { expect, test, vi } from 'vitest';
import type { DesiredProcess } from '../contract.ts';
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

/** Service logs with one service, whose log `log` returns. */
function opened(log: Cluster['log']) {
  const removed: string[] = [];
  const texts: string[] = [];
  /** Rows that were not trimmed, and the maximum bytes kept with and without a trim. */
  const rows: { bytes: number }[] = [];
  let most = 0;
  const bytesOf = (lines: readonly { text: string }[]) =>
    lines.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0);
  const kept = () => rows.reduce((sum, { bytes }) => sum + bytes, 0);
  const logs = createServiceLogs({
    cluster: { log },
    view: { all: () => [pod] as never, changed: () => new Promise(() => undefined) },
    store: {
      async append(_id, _service, lines) {
        most = Math.max(most, kept());
        texts.push(...lines.map(({ text }) => text));
        rows.push({ bytes: bytesOf(lines) });
      },
      read: async () => [],
      async trim(_id, _service, maxBytes) {
        while (kept() > maxBytes && rows.length > 1) rows.shift();
      },
      remove: async (id) => void removed.push(id),
    },
    later: (work) => void setImmediate(work),
    onDefect: vi.fn<(error: unknown) => void>(),
  });
  logs.know('env_one', desired);
  logs.look();
  return { logs, removed, texts, most: () => Math.max(most, kept()) };
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
      while (await onChunk(Buffer.from(`${time(1)} a line of many\n${time(1)} half of`))) continue;
      return;
    }
    await onChunk(Buffer.from(`${time(3)} the newest\n`));
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

test('what is kept of a log is never more than its limit', async () => {
  const { logs, texts, most } = opened(async (_source, onChunk, signal) => {
    for (let second = 10; second < 60; second += 1) {
      await onChunk(Buffer.from(`2026-01-01T00:00:${second}.000000000Z ${'x'.repeat(100)}\n`));
      await new Promise((resolve) => setImmediate(resolve));
      await new Promise((resolve) => setImmediate(resolve));
    }
    await aborted(signal);
  });
  await expect.poll(() => texts).toHaveLength(50);
  expect(most()).toBeLessThanOrEqual(desired.logBytes);
  expect(most()).toBeGreaterThan(desired.logBytes / 2);
  await logs.remove('env_one');
});
