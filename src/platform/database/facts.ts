import type { Database } from './database.ts';
import { sql } from './sql.ts';

/** What a server reports about itself and about the current role. Reads only. */
export type DatabaseFacts = {
  /** Such as `15.8`. */
  readonly version: string;
  /** server_version_num, such as 150008. */
  readonly versionNumber: number;
  readonly role: string;
  readonly isSuperuser: boolean;
  /** The role may create tables in the schema that it uses. */
  readonly canCreate: boolean;
  /** Existing tables that the role may not read and change. */
  readonly closedTables: readonly string[];
};

export async function databaseFacts(database: Database): Promise<DatabaseFacts> {
  const facts = await sql<DatabaseFacts>`
    select split_part(current_setting('server_version'), ' ', 1) as version,
           current_setting('server_version_num')::int as version_number,
           current_user::text as role,
           (select rolsuper from pg_roles where rolname = current_user) as is_superuser,
           coalesce(has_schema_privilege(current_schema(), 'create'), false) as can_create,
           array(select c.relname::text from pg_class c
                  where c.relnamespace = to_regnamespace(current_schema()) and c.relkind = 'r'
                    and not (has_table_privilege(c.oid, 'select') and has_table_privilege(c.oid, 'insert')
                             and has_table_privilege(c.oid, 'update') and has_table_privilege(c.oid, 'delete'))
                  order by c.relname) as closed_tables`.first(database.sql);
  if (facts === undefined) throw new Error('The database did not answer the query for its facts.');
  return facts;
}

export type UnavailableReason = { readonly problem: string; readonly fix: string };

const oldest = 15;

/** Null when the server is new enough. Pure. */
export function unavailableReasonForVersion({
  version,
  versionNumber,
}: Pick<DatabaseFacts, 'version' | 'versionNumber'>): UnavailableReason | null {
  if (versionNumber >= oldest * 10_000) return null;
  return {
    problem: `its server is PostgreSQL ${version}; Postern needs ${oldest} or newer`,
    fix: 'Upgrade the server (pg_upgrade), or use another server.',
  };
}
