import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { RequestSpan, Tracing } from '../../platform/tracing.ts';

/** A span for each request, named after its route. Called before other hooks are added, so that it is around them. */
export function traceRequests(app: FastifyInstance, tracing: Tracing): void {
  const spans = new WeakMap<FastifyRequest, RequestSpan>();
  app.addHook('onRequest', (request, _reply, done) => {
    const span = tracing.request(request.raw, request.routeOptions.url);
    spans.set(request, span);
    // What comes after a hook is called from its done().
    span.run(done);
  });
  app.addHook('onResponse', (request, reply, done) => {
    spans.get(request)?.end(reply.statusCode);
    done();
  });
}
