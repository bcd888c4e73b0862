import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { second } from '../core/clock.ts';

/** Time for requests in progress, in ms. The rest of the 10 s is for writing what was held in memory (contract 1). */
const patienceMs = 7 * second;
/** Interval between searches for idle connections, in ms. */
const lookMs = 100;

/**
 * Closes a server gracefully. It completes requests in progress, and marks each response as the last of its connection
 * (RFC 9112 section 9.6): a client that always has another request would keep the connection open forever. After the time
 * limit it closes the remaining connections. Resolves when none is left, also when the server never listened.
 */
export async function drain(
  server: Server,
  {
    close = () => closed(server),
    patience = patienceMs,
  }: { close?: () => Promise<void>; patience?: number } = {},
): Promise<void> {
  // Runs before the listener that responds.
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
