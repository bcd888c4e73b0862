import { setTimeout as wait } from 'node:timers/promises';
import type { AppBackends } from '../../composition/app-settings.ts';
import type { Clock } from '../../core/clock.ts';
import { AppError } from '../../core/errors.ts';
import type { Directory } from '../../features/people/directory/directory.ts';
import { type Database, DatabaseUnavailable, type Pool } from '../../platform/database/database.ts';
import { sql } from '../../platform/database/sql.ts';
import type { Kv } from '../../platform/kv/kv.ts';

/**
 * The faults of a drill. Each sits between the product and one of its backends, and behaves in a way that the backend's
 * interface allows. Only drill-app.ts uses them; a server never does.
 */
export type Faults = {
  /** `away`: the directory cannot be reached. `inactive`: it reports every token as revoked. */
  identity: 'well' | 'away' | 'inactive';
  /** `silent`: it accepts requests and never responds, until the client stops waiting. */
  store: 'well' | 'away' | 'silent';
  database: 'well' | 'away';
  /** Records whose key has this prefix are read as the result of `becomes`. */
  record: { readonly begins: string; readonly becomes: (value: string) => string | null } | null;
};

export function noFaults(): Faults {
  return { identity: 'well', store: 'well', database: 'well', record: null };
}

export function breakableDirectory(faults: Faults, builtin: Directory): Directory {
  return {
    async introspect(token, hint) {
      if (faults.identity === 'away') return { kind: 'unavailable', reason: 'drill' };
      return faults.identity === 'inactive' ? { kind: 'inactive' } : await builtin.introspect(token, hint);
    },
    principal: (subject) =>
      faults.identity === 'away' ? { kind: 'unavailable', reason: 'drill' } : builtin.principal(subject),
  };
}

/** When a client of the store stops waiting (platform/kv/kv.ts). */
const patienceMs = 250;

/** `make` creates an empty store; `lose` replaces the current store by one, as a restart without a disk does. */
export function breakableKv(faults: Faults, make: () => Kv): { kv: Kv; lose: () => void } {
  let real = make();
  async function reach(): Promise<Kv> {
    if (faults.store === 'away') throw new AppError('store_unavailable');
    if (faults.store === 'silent') {
      await wait(patienceMs);
      throw new AppError('store_unavailable');
    }
    return real;
  }
  const read = (key: string, value: string | null) =>
    value !== null && faults.record !== null && key.startsWith(faults.record.begins)
      ? faults.record.becomes(value)
      : value;
  return {
    lose: () => void (real = make()),
    kv: {
      get: async (key) => read(key, await (await reach()).get(key)),
      take: async (key) => read(key, await (await reach()).take(key)),
      async getAll(keys) {
        const { values, now } = await (await reach()).getAll(keys);
        return { values: keys.map((key, at) => read(key, values[at] ?? null)), now };
      },
      set: async (...args) => (await reach()).set(...args),
      delete: async (key) => (await reach()).delete(key),
      setIfAbsent: async (...args) => (await reach()).setIfAbsent(...args),
      setIfNewer: async (...args) => (await reach()).setIfNewer(...args),
      time: async () => (await reach()).time(),
      ping: async () => (await reach()).ping(),
      close: async () => real.close(),
    },
  };
}

/** The key-value store counts the limits, so both are unavailable together. */
export function breakableLimits(
  faults: Faults,
  real: AppBackends['limitSource'],
): AppBackends['limitSource'] {
  const reach = () => {
    if (faults.store !== 'well') throw new AppError('store_unavailable');
  };
  return {
    async spend(request) {
      reach();
      return await real.spend(request);
    },
    async peek(...args) {
      reach();
      return await real.peek(...args);
    },
    async setStamp(stamp) {
      reach();
      await real.setStamp(stamp);
    },
  };
}

export function breakablePool(faults: Faults, real: Pool): Pool {
  return {
    async connect() {
      if (faults.database === 'away') throw new DatabaseUnavailable('The drill took the database away.');
      return await real.connect();
    },
    end: () => real.end(),
  };
}

/** A clock that can be advanced, so that the drill need not wait five minutes. */
export function breakableClock(real: Clock): Clock & { advance(ms: number): void } {
  let aheadMs = 0;
  return {
    now: () => real.now() + aheadMs,
    advance: (ms) => void (aheadMs += ms),
  };
}

/**
 * Changes the row of a key without any rule of the product and without notifying any process. Returns a function that
 * restores it.
 */
export async function spoilKey(
  { sql: db }: Database,
  keyId: string,
  what: 'scopes' | 'digest',
): Promise<() => Promise<void>> {
  const before = await sql<{ scopes: string; digest: string }>`
    select scopes::text as scopes, encode(digest, 'hex') as digest from api_keys where id = ${keyId}`.first(
    db,
  );
  if (before === undefined) throw new Error('The key to spoil is not there.');
  const set = async ({ scopes, digest }: typeof before) =>
    void (await sql`
      update api_keys set scopes = ${scopes}::jsonb, digest = decode(${digest}, 'hex') where id = ${keyId}`.run(
      db,
    ));
  // A single text that contains the names of scopes, as a list would; and a digest that belongs to no key.
  await set(
    what === 'scopes'
      ? { ...before, scopes: JSON.stringify('sites:read sites:write') }
      : { ...before, digest: '00'.repeat(32) },
  );
  return () => set(before);
}
