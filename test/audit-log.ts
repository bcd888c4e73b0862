import type { AuditContext } from '../src/core/caller.ts';
import type { Database } from '../src/platform/database/database.ts';
import { sql } from '../src/platform/database/sql.ts';
import type { AuditEntry } from '../src/features/audit/audit.ts';

/** An audit log entry as a feature would write it. */
export function auditEntry(more: Partial<AuditEntry> = {}): AuditEntry {
  return {
    event: 'api_key.created',
    auditContext: testAuditContext,
    target: { kind: 'api_key', id: 'AAAAAAAAAAAA' },
    outcome: 'success',
    ...more,
  };
}

export const testAuditContext: AuditContext = {
  actor: { kind: 'user', id: 'usr_ada', name: 'Ada', credential: 'ses_1' },
  origin: { requestId: 'req-1', address: '192.0.2.7', agent: 'curl/8' },
};

const tables = ['audit_events', 'audit_event_keys', 'audit_seals'];

/** Runs statements that the audit log refuses: what an intruder with the database owner's rights could do. */
export async function tamper(database: Database, ...statements: string[]): Promise<void> {
  const run = (text: string) => sql.raw(text).run(database.sql);
  for (const table of tables) await run(`alter table ${table} disable trigger append_only`);
  for (const statement of statements) await run(statement);
  for (const table of tables) await run(`alter table ${table} enable always trigger append_only`);
}

/** Empties the audit log, so that tests can share one database. */
export async function emptyAuditLog(database: Database): Promise<void> {
  await tamper(database, `truncate ${[...tables, 'audit_unsealed'].join(', ')} restart identity`);
}
