import { once } from 'node:events';
import { buffer } from 'node:stream/consumers';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, request as send } from 'node:http';

export type Exchange = {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly status: number;
  readonly answerHeaders: IncomingHttpHeaders;
  readonly answer: string;
};

export type Recorder = {
  /** What was sent and answered, in the order in which the requests came. */
  exchanges(): Promise<Exchange[]>;
  /** Holds the first requests with these words in their bodies until that many have arrived, so that all are under way at once. */
  holdUntil(count: number, words: string): void;
  stop(): Promise<void>;
};

/** The public address of a server under test: passes each request on, and keeps it with its answer. It asks for no compression. */
export async function startRecorder(port: number, target: string): Promise<Recorder> {
  const recorded: Promise<Exchange>[] = [];
  let held = { count: 0, words: '' };
  let together = Promise.withResolvers<void>();

  async function passOn(request: IncomingMessage): Promise<Exchange> {
    const { method = '', url: path = '', headers } = request;
    const body = await buffer(request);
    if (held.count > 0 && body.toString().includes(held.words)) {
      held = { ...held, count: held.count - 1 };
      if (held.count === 0) together.resolve();
      await together.promise;
    }
    const { 'accept-encoding': _, ...passed } = headers;
    const onward = send(`${target}${path}`, { method, headers: passed });
    onward.end(body);
    // The event has the response as its only argument.
    const [answer] = (await once(onward, 'response')) as [IncomingMessage];
    return {
      method,
      path,
      headers,
      body: body.toString(),
      status: answer.statusCode ?? 500,
      answerHeaders: answer.headers,
      answer: (await buffer(answer)).toString(),
    };
  }

  const server = createServer((request, response) => {
    const exchange = passOn(request);
    recorded.push(exchange);
    exchange.then(
      ({ status, answerHeaders, answer }) => {
        const { 'transfer-encoding': _, ...headers } = answerHeaders;
        response.writeHead(status, headers).end(answer);
      },
      () => response.destroy(),
    );
  }).listen(port, '127.0.0.1');
  await once(server, 'listening');
  return {
    exchanges: async () => await Promise.all(recorded),
    holdUntil(count, words) {
      held = { count, words };
      together = Promise.withResolvers();
    },
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
