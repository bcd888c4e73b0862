import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { RequestSpan, Tracing } from '../../platform/tracing.ts';

/** Adds a span for each request, named after its route. Call it before adding other hooks, so that the span covers them. */
export function traceRequests(app: FastifyInstance, tracing: Tracing): void {
  const spans = new WeakMap<FastifyRequest, RequestSpan>();
  app.addHook('onRequest', (request, _reply, done) => {
    const span = tracing.request(request.raw, request.routeOptions.url);
    spans.set(request, span);
    // Later hooks run inside done(), so they run inside the span.
    span.run(done);
  });
  app.addHook('onResponse', (request, reply, done) => {
    spans.get(request)?.end(reply.statusCode);
    done();
  });
}
