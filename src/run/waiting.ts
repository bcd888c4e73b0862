import { setTimeout as wait } from 'node:timers/promises';
import type { ConfigMistake } from '../config/config-error.ts';
import { second } from '../core/clock.ts';
import type { MissingStore, StoreName } from '../composition/backends/backends.ts';
import type { Log } from '../platform/log.ts';
import { awaited, explainStart } from '../composition/backends/start-errors.ts';

/**
 * The stores that a process still waits for while it already listens (decision 0042). Each store is retried until it
 * opens. The log gets a line when the process waits, when the reason changes, and when the store is available.
 */
export type Waiting = {
  /**
   * One attempt to start on an available database, before this process listens, so that it can serve from the first
   * moment. Rejects when waiting cannot help.
   */
  tryStart(): Promise<void>;
  /**
   * Resolves when every store is open and the process has started on its database; false when stop() came first. Rejects
   * when waiting cannot help. Waits for a store that the process can serve without, even if that store refuses the
   * settings.
   */
  untilReady(): Promise<boolean>;
  /** Rejects until the store is open. */
  requireOpen(name: StoreName): Promise<void>;
  /** Why a store is not open yet, for an operator. */
  reasons(): Readonly<Partial<Record<StoreName, string>>>;
  stop(): void;
};

/** Converts a failed attempt to a reason to wait; null or undefined when waiting cannot help. */
type ReasonOf = (error: unknown) => ConfigMistake | null | undefined;

export function createWaiting({
  log,
  missing,
  start,
  pause = (signal) => wait(second, undefined, { signal }),
}: {
  readonly log: Pick<Log, 'info' | 'warn'>;
  /** The stores that the first attempt did not open. */
  readonly missing: readonly MissingStore[];
  /** Starts the process on its database. May be called again until it succeeds. */
  readonly start: () => Promise<void>;
  /** The pause between two attempts. Rejects when the signal is aborted. */
  readonly pause?: (signal: AbortSignal) => Promise<void>;
}): Waiting {
  const ended = new AbortController();
  const { signal } = ended;
  // No request is served from a database before the process has started on it, even if the database is available.
  const closed = new Map<StoreName, string>([['database', '']]);
  for (const { name, found } of missing) note(name, found);

  function note(name: StoreName, { setting, problem, fix }: ConfigMistake): void {
    const reason = `${setting}: ${problem}`;
    if (closed.get(name) === reason) return;
    closed.set(name, reason);
    log.warn({ store: name, fix }, `waiting for the ${words[name]}: ${reason}`);
  }

  async function attempt(name: StoreName, open: () => Promise<void>, reasonOf: ReasonOf): Promise<void> {
    try {
      await open();
      if (closed.get(name) !== '') log.info({ store: name }, `the ${words[name]} is available`);
      closed.delete(name);
    } catch (error) {
      if (signal.aborted) return;
      const reason = reasonOf(error);
      if (!reason) throw error;
      note(name, reason);
    }
  }

  async function until(name: StoreName, open: () => Promise<void>, reasonOf: ReasonOf): Promise<boolean> {
    while (closed.has(name) && !signal.aborted) {
      await attempt(name, open, reasonOf);
      if (closed.has(name)) await pause(signal).catch(() => undefined);
    }
    return !closed.has(name);
  }

  const database = missing.find(({ name }) => name === 'database');
  async function begin(): Promise<void> {
    await database?.open();
    await start();
  }

  return {
    async tryStart() {
      if (database === undefined) await attempt('database', begin, awaited);
    },
    async untilReady() {
      const opened = await Promise.all([
        until('database', begin, awaited),
        ...missing
          .filter((store) => store !== database)
          .map(({ name, open }) => until(name, open, (error) => explainStart(error, null))),
      ]);
      return opened.every((isOpen) => isOpen);
    },
    async requireOpen(name) {
      if (closed.has(name)) throw new Error(`The ${words[name]} is not open yet.`);
    },
    reasons: () => Object.fromEntries([...closed].filter(([, reason]) => reason !== '')),
    stop: () => ended.abort(),
  };
}

const words: Readonly<Record<StoreName, string>> = {
  database: 'database',
  kv: 'key-value store',
  blobs: 'object store',
};
