import type { Exchange } from '../../core/caller.ts';
import { type Sql, sql } from '../../platform/database/sql.ts';
import type { Key } from './key.ts';
import type { TrustRule } from './trust-rule.ts';

/**
 * The SQL of exchanged_tokens and used_id_tokens. An exchange also reads its key and rules here, in one statement: pipelines
 * exchange far more often than people change a key.
 */
export type NewExchangedToken = Exchange & {
  readonly digest: string;
  readonly keyId: string;
  readonly ruleId: string;
};

/** What decides whether a key can be used now. */
export type KeyState = Pick<Key, 'type' | 'name' | 'expiresAt' | 'expiryRecordedAt' | 'revokedAt'>;

export type ExchangedTokenStore = {
  /** The key, its rules in the order in which they were added, and whether the ID token was used before. */
  findKey(
    keyId: string,
    idToken: { readonly issuer: string; readonly jti: string | null },
  ): Promise<FoundKey | undefined>;
  /** The key, when it has the rule. Neither can be changed by others until the transaction ends. */
  holdKey(keyId: string, ruleId: string): Promise<KeyState | undefined>;
  /**
   * Stores the token. With `once`, only if the ID token was not used before: otherwise false. Waits for a transaction that
   * uses it now.
   */
  insert(token: NewExchangedToken, once: OneUse | null): Promise<boolean>;
  find(digest: string): Promise<(Exchange & { readonly keyId: string }) | undefined>;
  /** False: there is no such token any more. */
  remove(digest: string): Promise<boolean>;
  /** Ends the tokens of all other issuers. False: there was none. */
  keepOnly(issuers: readonly string[]): Promise<boolean>;
  /** Removes what has ended. */
  prune(now: number): Promise<void>;
};

type FoundKey = KeyState & { readonly rules: readonly TrustRule[]; readonly isUsed: boolean };

/** `until`: no rule accepts the ID token from then on. */
type OneUse = { readonly jti: string; readonly until: number };

const state = sql`k.type, k.name, k.expires_at, k.expiry_recorded_at, k.revoked_at`;

export function exchangedTokenStore(db: Sql): ExchangedTokenStore {
  return {
    findKey: (keyId, { issuer, jti }) =>
      sql<FoundKey>`
        select ${state},
               exists (select 1 from used_id_tokens where issuer = ${issuer} and jti = ${jti}) as is_used,
               (select coalesce(jsonb_agg(jsonb_build_object(
                         'id', t.id, 'issuer', t.issuer, 'claims', t.claims, 'maxTtlMinutes', t.max_ttl_minutes,
                         'maxAgeMinutes', t.max_age_minutes, 'singleUse', t.single_use) order by t.position), '[]')
                  from api_key_trust t where t.key_id = k.id) as rules
          from api_keys k where k.id = ${keyId}`.first(db),
    holdKey: (keyId, ruleId) =>
      sql<KeyState>`
        select ${state} from api_keys k join api_key_trust t on t.key_id = k.id
         where k.id = ${keyId} and t.id = ${ruleId} for share of k, t`.first(db),
    async insert({ tokenId, digest, keyId, ruleId, issuer, repository, ref, run, expiresAt }, once) {
      const columns = sql`id, digest, key_id, rule_id, issuer, repository, ref, run, expires_at`;
      const values = sql`
        ${tokenId}::text, decode(${digest}::text, 'hex'), ${keyId}::text, ${ruleId}::text, ${issuer}::text, ${repository}::text,
        ${ref}::text, ${run}::text, ${new Date(expiresAt)}::timestamptz`;
      if (once === null)
        return (await sql`insert into exchanged_tokens (${columns}) select ${values}`.run(db)) > 0;
      const inserted = await sql`
        with used as (
          insert into used_id_tokens (issuer, jti, expires_at) values (${issuer}, ${once.jti}, ${new Date(once.until)})
          on conflict (issuer, jti) do nothing returning 1)
        insert into exchanged_tokens (${columns}) select ${values} from used`.run(db);
      return inserted > 0;
    },
    find: (digest) =>
      sql<Exchange & { readonly keyId: string }>`
        select id as token_id, key_id, issuer, repository, ref, run, expires_at from exchanged_tokens
         where digest = decode(${digest}, 'hex')`.first(db),
    async remove(digest) {
      return (await sql`delete from exchanged_tokens where digest = decode(${digest}, 'hex')`.run(db)) > 0;
    },
    async keepOnly(issuers) {
      const removed = await sql`
        delete from exchanged_tokens
         where issuer not in (select jsonb_array_elements_text(${JSON.stringify(issuers)}::jsonb))`.run(db);
      return removed > 0;
    },
    async prune(now) {
      await sql`delete from exchanged_tokens where expires_at <= ${new Date(now)}`.run(db);
      await sql`delete from used_id_tokens where expires_at <= ${new Date(now)}`.run(db);
    },
  };
}
