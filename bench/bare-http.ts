import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

// node:http with one fixed response: the maximum that a server on this Node version can reach. Started by bare-server.ts.
type Answer = { readonly headers: string[]; readonly body: string };

const server = createServer({ optimizeEmptyRequests: true });

process.on('message', (message: Answer | 'stop') => {
  if (message === 'stop') return void process.exit(0);
  const { headers } = message;
  // As in the gateway: small bodies as text, so that head and body are sent in one piece.
  const body = message.body.length > 32_768 ? Buffer.from(message.body, 'latin1') : message.body;
  server.on('request', (request, response) => {
    // Reads a header, as every response that depends on headers must.
    response.writeHead(request.headers.host === undefined ? 400 : 200, headers);
    if (typeof body === 'string') response.end(body, 'latin1');
    else response.end(body);
  });
  server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port));
});
