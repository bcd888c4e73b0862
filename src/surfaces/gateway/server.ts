import { createServer, type Server } from 'node:http';

/**
 * The gateway answers on the content hosts of Sites. No site exists before the Sites feature, so every host gets the
 * one 404 that a host nobody knows will always get: same status, same bytes, nothing to tell apart.
 */
const body = 'Not found\n';
const headers = {
  'content-type': 'text/plain; charset=utf-8',
  'content-length': Buffer.byteLength(body),
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'; sandbox",
  'referrer-policy': 'no-referrer',
} as const;

export function createGateway(): Server {
  const server = createServer({ maxHeaderSize: 16_384, requestTimeout: 10_000 }, (request, response) => {
    response.writeHead(404, headers);
    response.end(request.method === 'HEAD' ? undefined : body);
    // What a client still sends is of no interest to anybody.
    request.resume();
  });
  server.on('clientError', (_error, socket) => {
    if (socket.writable)
      socket.end('HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n');
  });
  return server;
}
