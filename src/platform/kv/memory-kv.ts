import type { Clock } from '../../core/clock.ts';
import { type Kv, numbered } from './kv.ts';
import { createSweep } from './sweep.ts';

type Entry = { readonly value: string; readonly endsAt: number };

/** A store for one process. Nothing survives a restart, which the contract of Kv allows. */
export function memoryKv({ clock }: { clock: Clock }): Kv {
  const entries = new Map<string, Entry>();
  const sweep = createSweep(entries, (entry, now) => entry.endsAt <= now);

  function read(key: string, now = clock.now()): string | null {
    const entry = entries.get(key);
    if (entry === undefined) return null;
    if (entry.endsAt > now) return entry.value;
    entries.delete(key);
    return null;
  }

  function write(key: string, value: string, ttlMs: number): void {
    const now = clock.now();
    sweep(4, now);
    entries.set(key, { value, endsAt: now + ttlMs });
  }

  return {
    get: async (key) => read(key),
    set: async (key, value, { ttlMs }) => write(key, value, ttlMs),
    async take(key) {
      const value = read(key);
      entries.delete(key);
      return value;
    },
    async delete(key) {
      const existed = read(key) !== null;
      entries.delete(key);
      return existed;
    },
    async setIfAbsent(key, value, { ttlMs }) {
      if (read(key) !== null) return false;
      write(key, value, ttlMs);
      return true;
    },
    getAll(keys) {
      const now = clock.now();
      return { values: keys.map((key) => read(key, now)), now };
    },
    async setIfNewer(key, { revision, text }, { ttlMs }) {
      const there = read(key);
      const known = there === null ? undefined : numbered(there);
      if (known !== undefined && known.revision > revision) return false;
      write(key, `${revision} ${text}`, ttlMs);
      return true;
    },
    time: async () => clock.now(),
    ping: async () => {},
    close: async () => entries.clear(),
  };
}
