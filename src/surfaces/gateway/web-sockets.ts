import { type IncomingMessage, type Server, ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Socket } from 'node:net';
import type { AnswerHead } from '../../platform/http-client/answer-reader.ts';
import { headerLines } from '../../platform/http-lines.ts';
import { leaveTurns } from '../../platform/turns.ts';
import { answerHeaders } from './proxy-headers.ts';
import { hasBodyIn } from './request-headers.ts';

/**
 * Requests for a WebSocket. They pass the same steps as every other request, with a separate response object, until the
 * proxy takes the connection.
 */
export type Upgrades = {
  /** Undefined: the request is not for a WebSocket. */
  of(request: IncomingMessage): Upgrade | undefined;
  /** Makes `server` treat them as requests. */
  listen(server: Server): void;
  /** Ends the open ones, of which a server that closes knows nothing, and refuses others from now on. */
  close(): void;
};

export type Upgrade = {
  /** Bytes that the client already sent after the head. */
  readonly head: Buffer;
  /** Takes the connection from the response, which has sent nothing. */
  take(response: ServerResponse): Duplex;
};

/** A request with a body does not count: the body would be read as the first data after the switch. */
export function asksForWebSocket(request: IncomingMessage): boolean {
  const { method, headers } = request;
  return method === 'GET' && headers.upgrade?.toLowerCase() === 'websocket' && !hasBodyIn(request);
}

export function createUpgrades(): Upgrades {
  const known = new WeakMap<IncomingMessage, Upgrade>();
  const open = new Set<Socket>();
  let isClosed = false;
  return {
    of: (request) => known.get(request),
    listen(server) {
      server.on('upgrade', (request: IncomingMessage, stream: Duplex, head: Buffer) => {
        // node:http gives the connection of the server, which is a socket.
        const socket = stream as Socket;
        socket.on('error', () => socket.destroy());
        socket.on('timeout', () => socket.destroy());
        // Earlier requests have no complete response yet: a client may not send this one before.
        if (!leaveTurns(socket) || isClosed) return void socket.destroy();
        open.add(socket);
        socket.once('close', () => open.delete(socket));
        const response = new ServerResponse(request);
        response.shouldKeepAlive = false;
        response.assignSocket(socket);
        response.once('finish', () => socket.destroySoon());
        known.set(request, {
          head,
          take() {
            response.detachSocket(socket);
            return socket;
          },
        });
        server.emit('request', request, response);
      });
    },
    close() {
      isClosed = true;
      for (const socket of open) socket.destroy();
    },
  };
}

/** The head of an answer that switches to the WebSocket protocol. */
export function switchLines(
  { reason, rawHeaders }: AnswerHead,
  to: Parameters<typeof answerHeaders>[1],
): string {
  const headers = ['Connection', 'Upgrade', 'Upgrade', 'websocket', ...answerHeaders(rawHeaders, to, 101)];
  return `HTTP/1.1 101 ${reason || STATUS_CODES[101]}\r\n${headerLines(headers)}\r\n`;
}

/** Connects both sides until one ends. */
export function joinSockets(
  client: Duplex,
  fromClient: Buffer,
  process: Duplex,
  fromProcess: Buffer,
  answer: string,
): void {
  const end = () => {
    client.destroy();
    process.destroy();
  };
  for (const side of [client, process]) {
    side.on('error', end);
    side.on('close', end);
  }
  client.write(answer, 'latin1');
  if (fromProcess.length > 0) client.write(fromProcess);
  if (fromClient.length > 0) process.write(fromClient);
  process.pipe(client);
  client.pipe(process);
}
