import { type Sql, sql } from '../../platform/database/sql.ts';
import type { TrustRule } from './trust-rule.ts';

/** The SQL of api_key_trust. */
export type TrustStore = {
  add(keyId: string, rule: TrustRule, at: number, by: string | null): Promise<void>;
  /** In the order in which they were added. */
  list(keyId: string): Promise<TrustRule[]>;
  /** The rule that was removed; undefined when the key has none with this id. */
  remove(keyId: string, id: string): Promise<TrustRule | undefined>;
};

const columns = sql`id, issuer, claims, max_ttl_minutes, max_age_minutes, single_use`;

export function trustStore(db: Sql): TrustStore {
  return {
    async add(keyId, { id, issuer, claims, maxTtlMinutes, maxAgeMinutes, singleUse }, at, by) {
      await sql`
        insert into api_key_trust (id, key_id, issuer, claims, max_ttl_minutes, max_age_minutes, single_use,
                                   created_at, created_by)
        values (${id}, ${keyId}, ${issuer}, ${JSON.stringify(claims)}::jsonb, ${maxTtlMinutes}, ${maxAgeMinutes},
                ${singleUse}, ${new Date(at)}, ${by})`.run(db);
    },
    list: (keyId) =>
      sql<TrustRule>`
        select ${columns} from api_key_trust where key_id = ${keyId} order by position`.all(db),
    remove: (keyId, id) =>
      sql<TrustRule>`
        delete from api_key_trust where key_id = ${keyId} and id = ${id} returning ${columns}`.first(db),
  };
}
