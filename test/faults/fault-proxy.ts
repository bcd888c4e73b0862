import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';

/**
 * A faulty network between a program and a server: late, reset, half-open (connections stay, but no data passes), or cut
 * after some bytes of a response. A setting affects existing connections and new ones.
 */
export type Weather =
  | { readonly kind: 'clear' }
  /** Each piece of data is delayed by this many milliseconds, in both directions. */
  | { readonly kind: 'late'; readonly ms: number }
  | { readonly kind: 'reset' }
  | { readonly kind: 'half-open' }
  /** Connections are reset when the server has sent this many bytes on them. */
  | { readonly kind: 'cut'; readonly afterBytes: number };

export type FaultProxy = {
  readonly port: number;
  set(weather: Weather): void;
  /** Number of connections so far. */
  accepted(): number;
  stop(): Promise<void>;
};

export async function startFaultProxy(targetPort: number): Promise<FaultProxy> {
  let weather: Weather = { kind: 'clear' };
  let accepted = 0;
  const open = new Set<Socket>();

  function keep(socket: Socket): Socket {
    open.add(socket);
    socket.on('error', () => undefined);
    socket.once('close', () => open.delete(socket));
    return socket;
  }

  function pass(from: Socket, to: Socket, isAnswer: boolean): void {
    let bytes = 0;
    // A piece that comes when the network is fast again does not overtake one that is still late.
    let written: Promise<unknown> = Promise.resolve();
    from.on('data', (piece: Buffer) => {
      bytes += piece.length;
      const now = weather;
      if (now.kind === 'half-open') return;
      if (now.kind === 'cut' && isAnswer && bytes > now.afterBytes) {
        from.resetAndDestroy();
        to.resetAndDestroy();
        return;
      }
      const due = now.kind === 'late' ? wait(now.ms) : undefined;
      written = written.then(() => due).then(() => to.write(piece));
    });
    from.once('end', () => void written.then(() => to.end()));
    from.once('close', () => to.destroy());
  }

  const server = createServer((near) => {
    accepted += 1;
    keep(near);
    if (weather.kind === 'reset') return void near.resetAndDestroy();
    const far = keep(connect(targetPort, '127.0.0.1'));
    pass(near, far, false);
    pass(far, near, true);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('The proxy listens on no port.');

  return {
    port: address.port,
    accepted: () => accepted,
    set(next) {
      // A half-open connection has lost data of its stream, so it is closed and does not recover with the network.
      const isOver = next.kind === 'reset' || weather.kind === 'half-open';
      weather = next;
      if (isOver) for (const socket of open) socket.resetAndDestroy();
    },
    async stop() {
      for (const socket of open) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
