import type { FastifyInstance, FastifyRequest } from 'fastify';
import { trustedPeers } from '../../platform/peers.ts';
import type { RequestSpan, Tracing } from '../../platform/tracing.ts';

/** A span for each request, named after its route. Called before other hooks are added, so that it is around them. */
export function traceRequests(
  app: FastifyInstance,
  { tracing, trustedProxies }: { tracing: Tracing; trustedProxies: readonly string[] },
): void {
  const isOurs = trustedPeers(trustedProxies);
  const spans = new WeakMap<FastifyRequest, RequestSpan>();
  app.addHook('onRequest', (request, _reply, done) => {
    const { method, headers, socket } = request;
    const route = request.routeOptions.url;
    const span = tracing.request({
      method,
      ...(route === undefined ? {} : { route }),
      parentHeaders: isOurs(socket.remoteAddress) ? headers : null,
    });
    spans.set(request, span);
    // What comes after a hook is called from its done().
    span.run(done);
  });
  app.addHook('onResponse', (request, reply, done) => {
    spans.get(request)?.end(reply.statusCode);
    done();
  });
}
