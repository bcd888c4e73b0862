import type { Role } from '../../core/caller.ts';
import type { Clock } from '../../core/clock.ts';
import { type Sql, sql } from '../../platform/database/sql.ts';

export type Group = {
  readonly id: string;
  readonly name: string;
  readonly parentId: string | null;
  readonly roles: readonly Role[];
  readonly memberCount: number;
  readonly createdAt: number;
  readonly updatedAt: number;
};

/** The tables `account_groups` and `account_group_members`. */
export type GroupStore = {
  find(id: string): Promise<Group | undefined>;
  list(page: { offset: number; limit: number }): Promise<{ groups: Group[]; total: number }>;
  /** The whole tree: there are few groups, and a role may come from any ancestor. */
  tree(): Promise<{ id: string; parentId: string | null; roles: readonly Role[] }[]>;
  /** Which of these ids exist. */
  existing(ids: readonly string[]): Promise<string[]>;
  /** Rejects with a unique violation when the name is taken. */
  insert(group: { id: string; name: string; parentId: string | null; roles: readonly Role[] }): Promise<void>;
  update(
    id: string,
    change: { name: string; parentId: string | null; roles: readonly Role[] },
  ): Promise<void>;
  hasChildren(id: string): Promise<boolean>;
  remove(id: string): Promise<void>;
  /** Replaces the groups an account is directly in. */
  setMembership(subject: string, groupIds: readonly string[]): Promise<void>;
};

export function groupStore(db: Sql, clock: Clock): GroupStore {
  const columns = sql`
    g.id, g.name, g.parent_id, g.roles, g.created_at, g.updated_at,
    (select count(*)::int from account_group_members m where m.group_id = g.id) as member_count`;
  return {
    async find(id) {
      return await sql<Group>`select ${columns} from account_groups g where g.id = ${id}`.first(db);
    },
    async list({ offset, limit }) {
      const rows = await sql<Group>`
        select ${columns} from account_groups g order by lower(g.name) limit ${limit} offset ${offset}`.all(
        db,
      );
      const counted = await sql<{ total: number }>`select count(*)::int as total from account_groups`.first(
        db,
      );
      return { groups: rows, total: counted?.total ?? 0 };
    },
    async tree() {
      return await sql<{ id: string; parentId: string | null; roles: Role[] }>`
        select id, parent_id, roles from account_groups`.all(db);
    },
    async existing(ids) {
      const rows = await sql<{ id: string }>`
        select id from account_groups where id = any(${[...ids]}::text[])`.all(db);
      return rows.map(({ id }) => id);
    },
    async insert({ id, name, parentId, roles }) {
      const now = new Date(clock.now());
      await sql`
        insert into account_groups (id, name, parent_id, roles, created_at, updated_at)
        values (${id}, ${name}, ${parentId}, ${JSON.stringify(roles)}::jsonb, ${now}, ${now})`.run(db);
    },
    async update(id, { name, parentId, roles }) {
      await sql`
        update account_groups set name = ${name}, parent_id = ${parentId}, roles = ${JSON.stringify(roles)}::jsonb,
               updated_at = ${new Date(clock.now())}
         where id = ${id}`.run(db);
    },
    async hasChildren(id) {
      const child = await sql`select 1 from account_groups where parent_id = ${id} limit 1`.first(db);
      return child !== undefined;
    },
    async remove(id) {
      await sql`delete from account_groups where id = ${id}`.run(db);
    },
    async setMembership(subject, groupIds) {
      await sql`
        delete from account_group_members
         where subject = ${subject} and not (group_id = any(${[...groupIds]}::text[]))`.run(db);
      await sql`
        insert into account_group_members (group_id, subject)
        select id, ${subject} from unnest(${[...groupIds]}::text[]) as id
        on conflict do nothing`.run(db);
    },
  };
}
