import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { createMetrics, type WorkCounts } from './metrics.ts';
import { createOperationsServer, type OperationsDeps } from './probes.ts';

async function open(checks: Record<string, () => Promise<void>>, more: Partial<OperationsDeps> = {}) {
  const metrics = createMetrics();
  const server: Server = createOperationsServer({
    metrics,
    freeBytes: async () => 4_096,
    checks,
    isStopping: () => false,
    ...more,
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
    { isStopping: () => isStopping },
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
  const { ask, close } = await open({ kv: away }, { reasons: () => ({ kv: 'KV_URL nobody listens' }) });
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

const counts: WorkCounts = {
  builds: { queued: 2, running: 1 },
  oldestQueuedMs: 61_000,
  environments: { deployed: 3 },
  approvals: 4,
  connections: { broken: 5 },
};
const counted = [
  'postern_builds{state="queued"} 2',
  'postern_builds{state="running"} 1',
  'postern_build_oldest_queued_seconds 61',
  'postern_environments{status="deployed"} 3',
  'postern_agent_approvals_waiting 4',
  'postern_mcp_connections{status="broken"} 5',
];

test('the work of people is counted at each scrape; counts that cannot be read are not the last ones', async () => {
  let work = async () => counts;
  const { ask, close } = await open({}, { work: () => work() });
  expect((await ask('/metrics')).text.split('\n')).toEqual(expect.arrayContaining(counted));
  work = () => Promise.reject(new Error('the database is unavailable'));
  const { status, text } = await ask('/metrics');
  expect(status).toBe(200);
  const series = counted.map((line) => line.slice(0, line.indexOf(' ')));
  expect(text.split('\n').filter((line) => series.some((name) => line.startsWith(name)))).toEqual([]);
  close();
});

test('the memory of the database, and how much memory the process may use, are in the metrics', async () => {
  const { ask, close } = await open({}, { databaseBytes: async () => 5_000 });
  const { text } = await ask('/metrics');
  expect(text).toContain('postern_database_thread_bytes 5000');
  expect(Number(/^postern_memory_limit_bytes (\S+)$/m.exec(text)?.[1])).toBeGreaterThan(1e6);
  close();
});

test('a process that stops is not ready from its first moment on', async () => {
  const { ask, close } = await open({ database: async () => undefined }, { isStopping: () => true });
  expect((await ask('/readyz')).status).toBe(503);
  close();
});
