import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { createMetrics } from './metrics.ts';
import { createOperationsServer } from './probes.ts';

async function open(
  checks: Record<string, () => Promise<void>>,
  isStopping = () => false,
  reasons: () => Record<string, string> = () => ({}),
) {
  const metrics = createMetrics();
  const server: Server = createOperationsServer({
    metrics,
    freeBytes: async () => 4_096,
    checks,
    reasons,
    isStopping,
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  // A server that listens on a port has an address of this form.
  const { port } = server.address() as AddressInfo;
  return {
    metrics,
    ask: async (path: string) => {
      const answer = await fetch(`http://127.0.0.1:${port}${path}`);
      return { status: answer.status, text: await answer.text() };
    },
    close: () => server.close(),
  };
}

test('ready means that every part answers; alive means that the process does', async () => {
  let isDown = false;
  const kv = async () => {
    if (isDown) throw new Error('away');
  };
  const { ask, close } = await open({ database: async () => undefined, kv });
  expect(await ask('/readyz')).toEqual({
    status: 200,
    text: '{"status":"ok","parts":{"database":"ok","kv":"ok"}}',
  });
  isDown = true;
  expect(await ask('/readyz')).toEqual({
    status: 503,
    text: '{"status":"unavailable","parts":{"database":"ok","kv":"unavailable"}}',
  });
  expect((await ask('/livez')).status).toBe(200);
  const { text } = await ask('/metrics');
  expect(text).toContain('postern_part_up{part="database"} 1');
  expect(text).toContain('postern_part_up{part="kv"} 0');
  close();
});

test('a part that is excluded is told and not needed; stopping is not excluded by anything', async () => {
  const away = async () => {
    throw new Error('away');
  };
  let isStopping = false;
  const { ask, close } = await open(
    { database: async () => undefined, kv: away, blobs: away },
    () => isStopping,
  );
  expect((await ask('/readyz?exclude=kv')).status).toBe(503);
  expect(await ask('/readyz?exclude=kv&exclude=blobs')).toEqual({
    status: 200,
    text: '{"status":"ok","parts":{"database":"ok","kv":"unavailable","blobs":"unavailable"}}',
  });
  expect((await ask('/readyz?exclude=everything')).status).toBe(503);
  isStopping = true;
  expect((await ask('/readyz?exclude=database&exclude=kv&exclude=blobs')).status).toBe(503);
  close();
});

test('a part that hangs is unavailable, and does not keep whoever asks', async () => {
  const { ask, close } = await open({ database: () => new Promise(() => undefined) });
  expect(await ask('/readyz')).toEqual({
    status: 503,
    text: '{"status":"unavailable","parts":{"database":"unavailable"}}',
  });
  close();
});

test('what a process still waits for since its start is told beside the parts', async () => {
  const away = async () => {
    throw new Error('away');
  };
  const { ask, close } = await open({ kv: away }, undefined, () => ({ kv: 'KV_URL nobody listens' }));
  expect(await ask('/readyz')).toEqual({
    status: 503,
    text: '{"status":"unavailable","parts":{"kv":"unavailable"},"waitingFor":{"kv":"KV_URL nobody listens"}}',
  });
  close();
});

test('jobs, the age of the news and the process itself are told', async () => {
  const { metrics, ask, close } = await open({});
  metrics.watchFeed(() => 1_500);
  metrics.countJob('seal', 'done', 1_700_000_000_000);
  metrics.count('GET', '/sites', 200, 5);
  metrics.count('GET', '/builds/:id/logs', 200, null);
  metrics.countJob('seal', 'failed', 1_700_000_009_000);
  const { text } = await ask('/metrics');
  expect(text).toContain('postern_feed_age_seconds 1.5');
  expect(text).toContain('route="/builds/:id/logs",status="2xx"} 1');
  expect(text).toContain('postern_http_request_seconds_count 1');
  expect(text).toContain('postern_job_runs_total{job_name="seal",result="done"} 1');
  expect(text).toContain('postern_job_runs_total{job_name="seal",result="failed"} 1');
  expect(text).toContain('postern_job_last_done_seconds{job_name="seal"} 1700000000');
  expect(text).toContain('process_resident_memory_bytes');
  close();
});

test('a process that stops is not ready from its first moment on', async () => {
  const { ask, close } = await open({ database: async () => undefined }, () => true);
  expect((await ask('/readyz')).status).toBe(503);
  close();
});
