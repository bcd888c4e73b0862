import { createServer, type Server } from 'node:http';
import { within } from '../../platform/kv/deadline.ts';
import type { Metrics } from './metrics.ts';

/** A part that hangs is unavailable; whoever asks has a deadline of his own. In milliseconds. */
const partMs = 2_000;

/**
 * `/livez`, `/readyz` and `/metrics` on a port of their own (contract 1): what an operator's tools ask. `/readyz?exclude=PART`,
 * as often as wanted, is ready also without that part: for who decides whether a process gets requests (decision 0031).
 */
export type OperationsDeps = {
  readonly metrics: Pick<Metrics, 'registry' | 'noteParts' | 'watchProcess' | 'watchSpace'>;
  readonly freeBytes: () => Promise<number>;
  /** Each part's check; it rejects when the part cannot be used. Identity is not among them. */
  readonly checks: Readonly<Record<string, () => Promise<void>>>;
  readonly isStopping: () => boolean;
};

export function createOperationsServer({ metrics, freeBytes, checks, isStopping }: OperationsDeps): Server {
  metrics.watchProcess();
  metrics.watchSpace(freeBytes);

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
      return json(isReady ? 200 : 503, { status: isReady ? 'ok' : 'unavailable', parts });
    }
    if (path === '/metrics') {
      metrics.noteParts(await readiness(checks));
      const { registry } = metrics;
      return { status: 200, type: registry.contentType, body: await registry.metrics() };
    }
    return json(404, { status: 'not found' });
  }

  return createServer((request, response) => {
    const { url = '/' } = request;
    // What is no address is none of ours.
    answer(URL.parse(url, 'http://operations') ?? new URL('http://operations'))
      .catch(() => json(500, { status: 'failed' }))
      .then(({ status, type, body }) => {
        response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store' });
        response.end(body);
      })
      // The peer went away while it was answered; nobody is left to tell.
      .catch(() => response.destroy());
  });
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
