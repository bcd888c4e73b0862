import { connect, type Socket } from 'node:net';
import { once } from 'node:events';

// Many connections that each send many requests at once, without waiting for responses. Started by r7-pipelining.ts in a
// separate process, so that receiving the responses does not delay the measurement.
const [port = '', connections = '', bytes = ''] = process.argv.slice(2);
const flood = Buffer.from(bytes, 'base64');
const sockets: Socket[] = [];
for (let count = 0; count < Number(connections); count += 1) {
  const socket = connect({ host: '127.0.0.1', port: Number(port) });
  socket.on('error', () => undefined).resume();
  await once(socket, 'connect');
  sockets.push(socket);
}
process.send?.('connected');
await once(process, 'message');
const closed = sockets.map((socket) => once(socket, 'close'));
for (const socket of sockets) socket.write(flood);
await Promise.all(closed);
process.send?.({ received: sockets.reduce((sum, { bytesRead }) => sum + bytesRead, 0) });
process.disconnect();
