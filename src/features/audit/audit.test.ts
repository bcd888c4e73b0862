// @module-tag sql
import fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { FakeClock } from '../../../test/clock.ts';
import { openTestDatabase } from '../../../test/database.ts';
import { emptyAuditLog, auditEntry } from '../../../test/audit-log.ts';
import { systemRandom } from '../../core/ids.ts';
import type { Database } from '../../platform/database/database.ts';
import { type Audit, type AuditEvent, type AuditFilter, createAudit } from './audit.ts';
import { auditStore } from './audit-store.ts';

let database: Database;
let clock: FakeClock;
let audit: Audit;
beforeAll(async () => {
  database = await openTestDatabase();
});
afterAll(() => database.close());
beforeEach(async () => {
  await emptyAuditLog(database);
  clock = new FakeClock();
  const store = auditStore(database.sql, { clock, random: systemRandom });
  audit = createAudit({ read: store, tx: (work) => work({ audit: store }), clock });
});

const append = async (count: number, details: Record<string, unknown> = {}) =>
  await auditStore(database.sql, { clock, random: systemRandom }).appendAll(
    Array.from({ length: count }, () => auditEntry({ details })),
  );

async function ids(filter: AuditFilter, limit: number, between: () => Promise<void>): Promise<string[]> {
  const found: AuditEvent[] = [];
  let cursor: string | undefined;
  do {
    const { events, nextCursor } = await audit.search(filter, cursor, limit);
    found.push(...events);
    cursor = nextCursor ?? undefined;
    await between();
  } while (cursor !== undefined);
  return found.map(({ id }) => id);
}

test('paging shows every event once, newest first, however many arrive meanwhile', {
  tags: 'flood',
}, async () => {
  const runs = fc.array(fc.record({ count: fc.integer({ min: 1, max: 9 }), ms: fc.nat(3) }), {
    maxLength: 6,
  });
  const filters = fc.constantFrom<AuditFilter>(
    {},
    { keyId: 'AAAAAAAAAAAA' },
    { actor: 'usr_ada' },
    { event: 'api_key.created' },
  );
  await fc.assert(
    fc.asyncProperty(runs, filters, fc.integer({ min: 1, max: 7 }), async (writes, filter, limit) => {
      await emptyAuditLog(database);
      for (const { count, ms } of writes) {
        await append(count);
        clock.advance(ms);
      }
      const before = (await audit.search({}, undefined, 100)).events.map(({ id }) => id);
      const seen = await ids(filter, limit, async () => {
        await append(2);
        clock.advance(1);
      });
      expect(new Set(seen).size).toBe(seen.length);
      expect(seen.filter((id) => before.includes(id))).toEqual(before);
    }),
    { numRuns: 40 },
  );
});

test('the timeline of a key has its events and no others', async () => {
  await append(1);
  await auditStore(database.sql, { clock, random: systemRandom }).append(
    auditEntry({ event: 'repository.created', target: { kind: 'repository', id: 'repo_1' } }),
  );
  const { events, nextCursor } = await audit.timeline('AAAAAAAAAAAA', undefined, 25);
  expect(events.map(({ event }) => event)).toEqual(['api_key.created']);
  expect(nextCursor).toBeNull();
});

test.each(['x', 'MTIz', Buffer.from('1.99999999999999999999').toString('base64url'), '_'.repeat(200)])(
  'a cursor this API never gave out is refused: %s',
  async (cursor) => {
    await expect(audit.search({}, cursor, 25)).rejects.toMatchObject({ code: 'invalid_query' });
  },
);

test('an export ends, although the audit log grows while it is read', async () => {
  await append(1_201);
  let count = 0;
  for await (const page of audit.walk({})) {
    count += page.length;
    clock.advance(1);
    await append(10);
  }
  expect(count).toBe(1_201);
});

test('an unknown event does not exist', async () => {
  await expect(audit.get('evt_none')).rejects.toMatchObject({ code: 'not_found' });
});
