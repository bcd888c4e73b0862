import { createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { pageOf } from './content.ts';

// A process of an Environment: it answers /1 with 1 KiB and /1024 with 1 MiB, accepts every WebSocket and says nothing on
// it. Started by e2-proxy.ts.
const pages = new Map([1, 1_024].map((kib) => [`/${kib}`, pageOf(kib)]));

const server = createServer((request, response) => {
  const page = pages.get(request.url ?? '');
  if (page === undefined) return void response.writeHead(404).end();
  response.writeHead(200, { 'Content-Type': 'text/html', 'Content-Length': page.length }).end(page);
});
server.on('upgrade', (_request, socket: Socket) => {
  socket.on('error', () => socket.destroy());
  socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
  socket.resume();
});
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port));
process.on('message', () => process.exit(0));
// The bench failed.
process.on('disconnect', () => process.exit(0));
