import Fastify from 'fastify';

// Fastify with one route that returns one fixed answer as JSON, and nothing else: what any API on this framework pays.
// Started by p1-key-request.ts.
type Answer = { readonly headers: Readonly<Record<string, string>>; readonly body: unknown };

process.on('message', (message: Answer | 'stop') => {
  if (message === 'stop') return void process.exit(0);
  const { headers, body } = message;
  const app = Fastify({ logger: false });
  app.get('/', (_request, reply) => {
    void reply.headers(headers);
    return body;
  });
  void app
    .listen({ host: '127.0.0.1', port: 0 })
    .then((address) => process.send?.(Number(new URL(address).port)));
});
