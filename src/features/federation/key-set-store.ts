import { type Sql, sql } from '../../platform/database/sql.ts';
import { minute } from '../../core/clock.ts';
import type { SigningKey } from '../keys/keys.ts';

/** The SQL of issuer_key_sets: the public keys that issuers publish. */
export type KeySet = {
  readonly keys: readonly SigningKey[];
  /** When the last fetch began, successful or not. */
  readonly triedAt: number;
  /** When the keys arrived; null = never. */
  readonly fetchedAt: number | null;
};

export type KeySetStore = {
  find(issuer: string): Promise<KeySet | undefined>;
  /** True for one caller a minute, in all processes together: it may fetch the keys of the issuer now. */
  mayFetch(issuer: string, now: number): Promise<boolean>;
  save(issuer: string, keys: readonly SigningKey[], at: number): Promise<void>;
  /** Removes the key sets of all other issuers. */
  keepOnly(issuers: readonly string[]): Promise<void>;
};

export function keySetStore(db: Sql): KeySetStore {
  return {
    find: (issuer) =>
      sql<KeySet>`
        select keys, tried_at, fetched_at from issuer_key_sets where issuer = ${issuer}`.first(db),
    async mayFetch(issuer, now) {
      const changed = await sql`
        insert into issuer_key_sets as s (issuer, tried_at, keys) values (${issuer}, ${new Date(now)}, '[]'::jsonb)
        on conflict (issuer) do update set tried_at = excluded.tried_at
         where s.tried_at <= ${new Date(now - minute)}`.run(db);
      return changed > 0;
    },
    async save(issuer, keys, at) {
      await sql`
        update issuer_key_sets set keys = ${JSON.stringify(keys)}::jsonb, fetched_at = ${new Date(at)}
         where issuer = ${issuer}`.run(db);
    },
    async keepOnly(issuers) {
      await sql`
        delete from issuer_key_sets
         where issuer not in (select jsonb_array_elements_text(${JSON.stringify(issuers)}::jsonb))`.run(db);
    },
  };
}
