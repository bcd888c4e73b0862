import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { second } from '../core/clock.ts';

/** What answers under way have, in ms. What was held in memory is written down after it, in the rest of 10 s (contract 1). */
const patienceMs = 7 * second;
/** Between two looks for connections that nobody uses any more, in ms. */
const lookMs = 100;

/**
 * Closes a server: what is under way is answered, and each answer is the last of its connection and says so (RFC 9112 section
 * 9.6), because a client that always has the next request ready would keep it open for ever. Who is still there when the
 * patience is over is cut off. Resolves when nobody is left, also when the server never listened.
 */
export async function drain(
  server: Server,
  {
    close = () => closed(server),
    patience = patienceMs,
  }: { close?: () => Promise<void>; patience?: number } = {},
): Promise<void> {
  // Before whatever answers.
  server.prependListener('request', lastOfItsConnection);
  const looking = setInterval(() => server.closeIdleConnections(), lookMs);
  const cutting = setTimeout(() => server.closeAllConnections(), patience);
  try {
    await close();
  } finally {
    clearInterval(looking);
    clearTimeout(cutting);
  }
}

function lastOfItsConnection(_request: IncomingMessage, response: ServerResponse): void {
  response.shouldKeepAlive = false;
}

function closed(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeIdleConnections();
  });
}
