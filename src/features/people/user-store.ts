import type { UserRef } from '../../core/caller.ts';
import type { Clock } from '../../core/clock.ts';
import { type Sql, sql } from '../../platform/database/sql.ts';
import { containing } from '../../platform/database/values.ts';

/** A person known to this installation. Name and e-mail address are the last values from the provider (ID-15). */
export type Person = UserRef & {
  readonly email: string | null;
  readonly createdAt: number;
  readonly lastLoginAt: number | null;
};

/** The table `users`: everyone who has an account or has signed in, keyed by (issuer, subject). */
export type UserStore = {
  find(id: string): Promise<UserRef | undefined>;
  findBySubject(issuer: string, subject: string): Promise<UserRef | undefined>;
  findPerson(id: string): Promise<Person | undefined>;
  /** Ordered by name. `search`: text that the name or the e-mail address contains. */
  listPeople(filter: { search?: string | undefined; offset: number; limit: number }): Promise<{
    people: Person[];
    total: number;
  }>;
  /** Display names by id; unknown ids are absent. */
  names(ids: readonly string[]): Promise<ReadonlyMap<string, string>>;
  /** Returns the user of this subject; inserts one when it is new and leaves an existing one unchanged. */
  learn(user: { newId: string; issuer: string; subject: string; name: string }): Promise<UserRef>;
  /** True when the provider has confirmed that this person exists, by a sign-in or in an answer. */
  wasFound(issuer: string, subject: string): Promise<boolean>;
  noteFound(issuer: string, subject: string): Promise<void>;
  /** Inserts the user, or updates the name and e-mail. The id of an existing user never changes. */
  upsert(user: {
    newId: string;
    issuer: string;
    subject: string;
    name: string;
    email: string | null;
    isLogin: boolean;
  }): Promise<UserRef>;
};

const personColumns = sql`id, issuer, subject, name, email, created_at, last_login_at`;

export function userStore(db: Sql, clock: Clock): UserStore {
  return {
    async find(id) {
      return await sql<UserRef>`
        select id, issuer, subject, name from users where id = ${id}`.first(db);
    },
    async findBySubject(issuer, subject) {
      return await sql<UserRef>`
        select id, issuer, subject, name from users where issuer = ${issuer} and subject = ${subject}`.first(
        db,
      );
    },
    async findPerson(id) {
      return await sql<Person>`select ${personColumns} from users where id = ${id}`.first(db);
    },
    async listPeople({ search, offset, limit }) {
      const like = search === undefined ? null : containing(search);
      const matches = sql`(${like}::text is null or name ilike ${like} or email ilike ${like})`;
      const people = await sql<Person>`
        select ${personColumns} from users where ${matches}
         order by lower(name), id limit ${limit} offset ${offset}`.all(db);
      const counted = await sql<{ total: number }>`
        select count(*)::int as total from users where ${matches}`.first(db);
      return { people, total: counted?.total ?? 0 };
    },
    async names(ids) {
      const rows = await sql<{ id: string; name: string }>`
        select id, name from users
         where id in (select jsonb_array_elements_text(${JSON.stringify(ids)}::jsonb))`.all(db);
      return new Map(rows.map(({ id, name }) => [id, name]));
    },
    async learn({ newId, issuer, subject, name }) {
      // The no-op update makes `returning` include an existing row too, even one inserted by a concurrent transaction.
      const user = await sql<UserRef>`
        insert into users (id, issuer, subject, name, created_at)
        values (${newId}, ${issuer}, ${subject}, ${name}, ${new Date(clock.now())})
        on conflict (issuer, subject) do update set subject = excluded.subject
        returning id, issuer, subject, name`.first(db);
      if (user === undefined) throw new Error('An upsert returned no user.');
      return user;
    },
    async wasFound(issuer, subject) {
      const row = await sql<{ was: boolean }>`
        select coalesce(found_at, last_login_at) is not null as was from users
         where issuer = ${issuer} and subject = ${subject}`.first(db);
      return row?.was ?? false;
    },
    async noteFound(issuer, subject) {
      await sql`
        update users set found_at = ${new Date(clock.now())}
         where issuer = ${issuer} and subject = ${subject} and found_at is null`.run(db);
    },
    async upsert({ newId, issuer, subject, name, email, isLogin }) {
      const now = new Date(clock.now());
      const user = await sql<UserRef>`
        insert into users (id, issuer, subject, name, email, created_at, last_login_at)
        values (${newId}, ${issuer}, ${subject}, ${name}, ${email}, ${now}, ${isLogin ? now : null})
        on conflict (issuer, subject) do update
          set name = excluded.name, email = excluded.email,
              last_login_at = coalesce(excluded.last_login_at, users.last_login_at)
        returning id, issuer, subject, name`.first(db);
      if (user === undefined) throw new Error('An upsert returned no user.');
      return user;
    },
  };
}
