import type { Socket } from 'node:net';

/** What HTTP/1.1 messages consist of (RFC 9112). Headers are names and values in turn, as node:http has them in `rawHeaders`. */

/** Header lines, without the blank line that ends a head. Nothing is checked: names and values hold no line breaks. */
export function headerLines(headers: readonly string[]): string {
  let lines = '';
  for (let at = 0; at < headers.length; at += 2) lines += `${headers[at]}: ${headers[at + 1]}\r\n`;
  return lines;
}

/** All values of a header, in the order they were sent. `name` in lower case. */
export function valuesIn(headers: readonly string[], name: string): string[] {
  const found: string[] = [];
  for (let at = 0; at < headers.length; at += 2) {
    const sent = headers[at];
    if (sent?.length === name.length && sent.toLowerCase() === name) found.push(headers[at + 1] ?? '');
  }
  return found;
}

/** Sends one chunk of a body (section 7.1), which is not empty. False: wait for `drain` before the next. */
export function writeChunk(
  socket: Socket,
  piece: Buffer,
  onWritten?: (error?: Error | null) => void,
): boolean {
  socket.cork();
  socket.write(`${piece.length.toString(16)}\r\n`, 'latin1');
  socket.write(piece);
  const isTaken = socket.write('\r\n', 'latin1', onWritten);
  socket.uncork();
  return isTaken;
}

/** Ends a body in chunks. */
export const lastChunk = '0\r\n\r\n';
