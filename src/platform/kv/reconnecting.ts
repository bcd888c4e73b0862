import { setTimeout as realWait } from 'node:timers/promises';
import { within } from './deadline.ts';

/** A client of the library. It connects once; another attempt needs a new client. */
export type Connection = {
  connect(): Promise<unknown>;
  /** Closes it in any state; never throws. */
  destroy(): void;
};

export type Reconnecting<C extends Connection> = {
  /** The newest connection. Until it is connected, its commands reject at once. */
  current(): C;
  /** Retries until an attempt succeeds; rejects when end() is called first. */
  connect(): Promise<void>;
  /**
   * Replaces the current connection, and retries until the new one is connected. Does nothing while it is already
   * connecting.
   */
  reconnect(): void;
  /** Starts no further attempt; the caller closes the current connection. */
  end(): void;
};

/** Time limit of an attempt: a server may accept a connection and never respond. */
const attemptMs = 5_000;
const backoffMs = (tries: number) => Math.min(50 * 2 ** tries, 1_000);

/**
 * Keeps one connection, and replaces it when it is lost. Every attempt uses a new client. A client left in the middle of
 * connecting would continue next to its successor, and a cluster client that found no node is closed permanently.
 */
export function reconnecting<C extends Connection>({
  build,
  wait = (ms, signal) => realWait(ms, undefined, { signal }),
}: {
  build: () => C;
  /** Rejects when the signal is aborted. */
  wait?: (ms: number, signal: AbortSignal) => Promise<void>;
}): Reconnecting<C> {
  const ended = new AbortController();
  let current = build();
  let connecting: Promise<void> | undefined;

  async function tryUntilConnected(): Promise<void> {
    for (let tries = 0; ; tries += 1) {
      try {
        await within(attemptMs, current.connect(), () => new Error('The attempt to connect took too long.'));
        return;
      } catch {
        // The client reports its own errors; here only the next attempt matters.
        current.destroy();
      }
      await wait(backoffMs(tries), ended.signal);
      current = build();
    }
  }

  function connect(): Promise<void> {
    connecting ??= tryUntilConnected().finally(() => {
      connecting = undefined;
    });
    return connecting;
  }

  return {
    current: () => current,
    connect,
    reconnect() {
      if (connecting !== undefined || ended.signal.aborted) return;
      current.destroy();
      current = build();
      // Rejects only after end(), when the result no longer matters.
      connect().catch(() => {});
    },
    end: () => ended.abort(),
  };
}
