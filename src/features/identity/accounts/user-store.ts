import { sql } from 'kysely';
import type { UserRef } from '../../../core/caller.ts';
import type { Clock } from '../../../core/clock.ts';
import type { Sql } from '../../../platform/database/database.ts';

/** The table `users`: everybody who has an account or has signed in, keyed by (issuer, subject). */
export type UserStore = {
  find(id: string): Promise<UserRef | undefined>;
  findBySubject(issuer: string, subject: string): Promise<UserRef | undefined>;
  /** Display names by id; ids nobody has are absent. */
  names(ids: readonly string[]): Promise<ReadonlyMap<string, string>>;
  /** The user of this subject, made known when it is new; an existing one is left as it is. */
  learn(user: { newId: string; issuer: string; subject: string; name: string }): Promise<UserRef>;
  /** The provider has said that there is this person: by a sign-in, or when it was asked. */
  wasFound(issuer: string, subject: string): Promise<boolean>;
  noteFound(issuer: string, subject: string): Promise<void>;
  /** Inserts, or refreshes the name and e-mail last seen. The id of an existing user never changes. */
  upsert(user: {
    newId: string;
    issuer: string;
    subject: string;
    name: string;
    email: string | null;
    isLogin: boolean;
  }): Promise<UserRef>;
};

type UserRow = { id: string; issuer: string; subject: string; name: string };

export function userStore(db: Sql, clock: Clock): UserStore {
  return {
    async find(id) {
      const { rows } = await sql<UserRow>`
        select id, issuer, subject, name from users where id = ${id}`.execute(db);
      return rows[0];
    },
    async findBySubject(issuer, subject) {
      const { rows } = await sql<UserRow>`
        select id, issuer, subject, name from users where issuer = ${issuer} and subject = ${subject}`.execute(
        db,
      );
      return rows[0];
    },
    async names(ids) {
      const { rows } = await sql<{ id: string; name: string }>`
        select id, name from users
         where id in (select jsonb_array_elements_text(${JSON.stringify(ids)}::jsonb))`.execute(db);
      return new Map(rows.map(({ id, name }) => [id, name]));
    },
    async learn({ newId, issuer, subject, name }) {
      // The no-op update makes `returning` answer for an existing row too, also one that was inserted meanwhile.
      const { rows } = await sql<UserRow>`
        insert into users (id, issuer, subject, name, created_at)
        values (${newId}, ${issuer}, ${subject}, ${name}, ${new Date(clock.now())})
        on conflict (issuer, subject) do update set subject = excluded.subject
        returning id, issuer, subject, name`.execute(db);
      const [user] = rows;
      if (user === undefined) throw new Error('An upsert returned no user.');
      return user;
    },
    async wasFound(issuer, subject) {
      const { rows } = await sql<{ was: boolean }>`
        select coalesce(found_at, last_login_at) is not null as was from users
         where issuer = ${issuer} and subject = ${subject}`.execute(db);
      return rows[0]?.was ?? false;
    },
    async noteFound(issuer, subject) {
      await sql`
        update users set found_at = ${new Date(clock.now())}
         where issuer = ${issuer} and subject = ${subject} and found_at is null`.execute(db);
    },
    async upsert({ newId, issuer, subject, name, email, isLogin }) {
      const now = new Date(clock.now());
      const { rows } = await sql<UserRow>`
        insert into users (id, issuer, subject, name, email, created_at, last_login_at)
        values (${newId}, ${issuer}, ${subject}, ${name}, ${email}, ${now}, ${isLogin ? now : null})
        on conflict (issuer, subject) do update
          set name = excluded.name, email = excluded.email,
              last_login_at = coalesce(excluded.last_login_at, users.last_login_at)
        returning id, issuer, subject, name`.execute(db);
      const [user] = rows;
      if (user === undefined) throw new Error('An upsert returned no user.');
      return user;
    },
  };
}
