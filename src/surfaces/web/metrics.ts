import { Counter, Histogram, Registry } from 'prom-client';

/** The only file that knows the metrics library. Labels are route patterns, never addresses, ids or values. */
export type RequestMetrics = {
  count(method: string, route: string, status: number, elapsedMs: number): void;
};

export type Metrics = RequestMetrics & {
  readonly registry: Registry;
  readonly limiterFallback: Counter;
  readonly auditDropped: Counter;
};

export function createMetrics(): Metrics {
  const registry = new Registry();
  const requests = new Counter({
    name: 'postern_http_requests_total',
    help: 'Requests answered, by method, route pattern and status class.',
    labelNames: ['method', 'route', 'status'],
    registers: [registry],
  });
  const duration = new Histogram({
    name: 'postern_http_request_seconds',
    help: 'Time from the first byte of a request to the last of its answer.',
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10],
    registers: [registry],
  });
  // Resolving labels costs more than counting, so the children are kept.
  const children = new Map<string, { inc(): void }>();
  return {
    registry,
    limiterFallback: new Counter({
      name: 'postern_limiter_local_total',
      help: 'Requests limited by this process alone because the key-value store did not answer.',
      registers: [registry],
    }),
    auditDropped: new Counter({
      name: 'postern_audit_denials_dropped_total',
      help: 'Denials that were counted but not written because their queue was full.',
      registers: [registry],
    }),
    count(method, route, status, elapsedMs) {
      const key = `${method} ${route} ${status}`;
      let child = children.get(key);
      if (child === undefined) {
        child = requests.labels(method, route, `${Math.floor(status / 100)}xx`);
        children.set(key, child);
      }
      child.inc();
      duration.observe(elapsedMs / 1000);
    },
  };
}
