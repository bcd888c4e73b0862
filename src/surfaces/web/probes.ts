import { createServer, type Server } from 'node:http';
import { within } from '../../platform/kv/deadline.ts';
import type { Metrics, WorkCounts } from './metrics.ts';

/**
 * In milliseconds. A backend that does not respond in time is unavailable: the tool that sent the request has a
 * deadline too.
 */
const partMs = 2_000;

/**
 * `/livez`, `/readyz` and `/metrics` on a separate port (contract 1), for the operator's tools. `/readyz?exclude=PART`,
 * repeatable, reports ready even without that part. It is for the tools that decide whether a process gets requests
 * (decision 0031).
 */
export type OperationsDeps = {
  readonly metrics: Pick<
    Metrics,
    'registry' | 'noteParts' | 'noteWork' | 'watchProcess' | 'watchSpace' | 'watchDatabaseMemory'
  >;
  readonly freeBytes: () => Promise<number>;
  /** Absent: the database is PostgreSQL. */
  readonly databaseBytes?: (() => Promise<number>) | undefined;
  /** The check of each part; it rejects when the part is unavailable. Identity is not among them. */
  readonly checks: Readonly<Record<string, () => Promise<void>>>;
  /** Why parts have been unavailable since this process started, as messages for an operator. */
  readonly reasons?: () => Readonly<Record<string, string>>;
  /** Counts the current work at each scrape. Absent: this process reports nothing about it. */
  readonly work?: () => Promise<WorkCounts>;
  readonly isStopping: () => boolean;
};

export function createOperationsServer(deps: OperationsDeps): Server {
  const { metrics, freeBytes, databaseBytes, checks, reasons = () => ({}), work, isStopping } = deps;
  metrics.watchProcess();
  metrics.watchSpace(freeBytes);
  if (databaseBytes !== undefined)
    metrics.watchDatabaseMemory(async () => (await inTime(databaseBytes())) ?? Number.NaN);

  async function answer({
    pathname: path,
    searchParams,
  }: URL): Promise<{ status: number; type: string; body: string }> {
    if (path === '/livez') return json(200, { status: 'ok' });
    if (path === '/readyz') {
      const parts = await readiness(checks);
      const excluded = new Set(searchParams.getAll('exclude'));
      const needed = Object.entries(parts).filter(([name]) => !excluded.has(name));
      const isReady = !isStopping() && needed.every(([, state]) => state === 'ok');
      const waitingFor = reasons();
      return json(isReady ? 200 : 503, {
        status: isReady ? 'ok' : 'unavailable',
        parts,
        ...(Object.keys(waitingFor).length === 0 ? {} : { waitingFor }),
      });
    }
    if (path === '/metrics') {
      metrics.noteParts(await readiness(checks));
      if (work !== undefined) metrics.noteWork(await inTime(work()));
      const { registry } = metrics;
      return { status: 200, type: registry.contentType, body: await registry.metrics() };
    }
    return json(404, { status: 'not found' });
  }

  return createServer((request, response) => {
    const { url = '/' } = request;
    // A URL that cannot be parsed gets the response for an unknown path.
    answer(URL.parse(url, 'http://operations') ?? new URL('http://operations'))
      .catch(() => json(500, { status: 'failed' }))
      .then(({ status, type, body }) => {
        response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' });
        response.end(body);
      })
      // The client disconnected meanwhile, so there is no response to send.
      .catch(() => response.destroy());
  });
}

/** Null: the database did not answer in time, which `postern_part_up` reports. */
async function inTime<T>(question: Promise<T>): Promise<T | null> {
  return await within(partMs, question, () => new Error('late')).catch(() => null);
}

async function readiness(checks: OperationsDeps['checks']): Promise<Record<string, 'ok' | 'unavailable'>> {
  const states = await Promise.all(
    Object.entries(checks).map(async ([name, check]) => {
      const late = () => new Error(`${name} did not answer within ${partMs} ms.`);
      const state = await within(partMs, check(), late).then(
        () => 'ok' as const,
        () => 'unavailable' as const,
      );
      return [name, state] as const;
    }),
  );
  return Object.fromEntries(states);
}

function json(status: number, value: unknown) {
  return { status, type: 'application/json; charset=utf-8', body: JSON.stringify(value) };
}
