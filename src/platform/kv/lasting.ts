import { setTimeout as realWait } from 'node:timers/promises';
import { within } from './deadline.ts';

/** A client of the library. Connects once: to try again, build another. */
export type Connection = {
  connect(): Promise<unknown>;
  /** Ends it whatever it does; never throws. */
  destroy(): void;
};

export type Lasting<C extends Connection> = {
  /** The newest one. While it is being connected its commands reject at once. */
  current(): C;
  /** Tries until one attempt succeeds; rejects when end() comes first. */
  connect(): Promise<void>;
  /** Leaves the current one for another, and tries until that one is connected. Nothing while it already tries. */
  reconnect(): void;
  /** No attempt after this; whoever calls it ends the current one. */
  end(): void;
};

/** An attempt that takes longer is given up: a server may accept a connection and never say a word. */
const attemptMs = 5_000;
const backoffMs = (tries: number) => Math.min(50 * 2 ** tries, 1_000);

/**
 * One connection at a time, and always another one after it. Every attempt is a client of its own: one that was left in the
 * middle of connecting would go on beside its successor, and a cluster's client that found no node is closed for good.
 */
export function lasting<C extends Connection>({
  build,
  wait = (ms, signal) => realWait(ms, undefined, { signal }),
}: {
  build: () => C;
  /** Rejects when the signal comes. */
  wait?: (ms: number, signal: AbortSignal) => Promise<void>;
}): Lasting<C> {
  const ended = new AbortController();
  let current = build();
  let connecting: Promise<void> | undefined;

  async function tryUntilConnected(): Promise<void> {
    for (let tries = 0; ; tries += 1) {
      try {
        await within(attemptMs, current.connect(), () => new Error('The attempt to connect took too long.'));
        return;
      } catch {
        // The client reports its own errors; here only the next attempt is of interest.
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
      // Rejects only when end() comes first, and then nobody asks any more.
      connect().catch(() => {});
    },
    end: () => ended.abort(),
  };
}
