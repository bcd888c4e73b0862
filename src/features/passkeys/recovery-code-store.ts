import type { Clock } from '../../core/clock.ts';
import { type Sql, sql } from '../../platform/database/sql.ts';

/** The table `recovery_codes`. */
export type RecoveryCodeStore = {
  /** The account's only codes from now on. */
  replaceAll(subject: string, digests: readonly string[]): Promise<void>;
  /** True once for each code. */
  use(subject: string, digest: string): Promise<boolean>;
  countUnused(subject: string): Promise<number>;
};

export function recoveryCodeStore(db: Sql, clock: Clock): RecoveryCodeStore {
  const now = () => new Date(clock.now());
  return {
    async replaceAll(subject, digests) {
      await sql`delete from recovery_codes where subject = ${subject}`.run(db);
      await sql`
        insert into recovery_codes (subject, digest, created_at)
        select ${subject}, digest, ${now()}::timestamptz from unnest(${[...digests]}::text[]) as digest`.run(
        db,
      );
    },
    async use(subject, digest) {
      const used = await sql`
        update recovery_codes set used_at = ${now()}
         where subject = ${subject} and digest = ${digest} and used_at is null`.run(db);
      return used === 1;
    },
    async countUnused(subject) {
      const row = await sql<{ unused: number }>`
        select count(*)::int as unused from recovery_codes where subject = ${subject} and used_at is null`.first(
        db,
      );
      return row?.unused ?? 0;
    },
  };
}
