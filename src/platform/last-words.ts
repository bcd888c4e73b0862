import type { Socket } from 'node:net';

/** Milliseconds for a client to take the answer to a broken request, before the connection goes. */
const lingerMs = 1_000;

/**
 * Answers on a connection that cannot be used any more, and ends it. A client that keeps its side open would keep the
 * connection; cut at once, it might lose the answer.
 */
export function sendLastWords(socket: Socket, head: readonly string[], body: string): void {
  socket.end(
    `${head.join('\r\n')}\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
  );
  setTimeout(() => socket.destroy(), lingerMs).unref();
}
