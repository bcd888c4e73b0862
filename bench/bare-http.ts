import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

// node:http with one answer and nothing else: what a server of this Node can give at most. Started by bare-server.ts.
type Answer = { readonly headers: string[]; readonly body: string };

const server = createServer({ optimizeEmptyRequests: true });

process.on('message', (message: Answer | 'stop') => {
  if (message === 'stop') return void process.exit(0);
  const { headers } = message;
  // As the gateway holds it: small bodies as text, so that head and body go out in one piece.
  const body = message.body.length > 32_768 ? Buffer.from(message.body, 'latin1') : message.body;
  server.on('request', (request, response) => {
    // Reading the headers is a part of answering whatever depends on them.
    response.writeHead(request.headers.host === undefined ? 400 : 200, headers);
    if (typeof body === 'string') response.end(body, 'latin1');
    else response.end(body);
  });
  server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port));
});
