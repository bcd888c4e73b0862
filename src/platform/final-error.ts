import type { Socket } from 'node:net';

/** Milliseconds for a client to receive the response to a broken request, before the connection is closed. */
const lingerMs = 1_000;

/**
 * Sends a response on a connection that can no longer be used, and closes it. A client that keeps its side open would
 * keep the connection forever; if it were closed at once, the client might lose the response.
 */
export function sendFinalError(socket: Socket, head: readonly string[], body: string): void {
  socket.end(
    `${head.join('\r\n')}\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
  );
  setTimeout(() => socket.destroy(), lingerMs).unref();
}
