// @module-tag sql
import fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { FakeClock } from '../../../test/clock.ts';
import { openTestDatabase } from '../../../test/database.ts';
import { testServer } from '../../../test/postgres.ts';
import { emptyAuditLog, tamper, auditEntry } from '../../../test/audit-log.ts';
import { systemRandom } from '../../core/ids.ts';
import type { Database } from '../../platform/database/database.ts';
import { sql } from '../../platform/database/sql.ts';
import type { AuditEntry } from './audit.ts';
import { type AuditStore, auditStore } from './audit-store.ts';
import { canonicalJson } from './chain.ts';
import { chainStore } from './chain-store.ts';
import { safeJson } from '../../core/safe-text.ts';
import { createChainWriter, type ChainWriter } from './chain-writer.ts';
import { formatAuditReport, verifyAuditLog } from './verify.ts';

let database: Database;
let store: AuditStore;
let chainWriter: ChainWriter;
const clock = new FakeClock();
const logged: object[] = [];
const details: object[] = [];
const log = {
  debug: (fields: object) => void details.push(fields),
  info: (fields: object) => void logged.push(fields),
  warn() {},
  error() {},
};

const newChainWriter = () =>
  createChainWriter({
    read: chainStore(database.sql),
    tx: (work) => database.tx((tx) => work({ chain: chainStore(tx) })),
    clock,
    log,
  });
const verify = (anchor?: { seq: number; hash: string }) => verifyAuditLog(chainStore(database.sql), anchor);
const appendAll = (entries: AuditEntry[]) =>
  database.tx((tx) => auditStore(tx, { clock, random: systemRandom }).appendAll(entries));
const append = (count: number) =>
  appendAll(
    Array.from({ length: count }, (_, index) =>
      auditEntry({ details: { index, ratio: 0.1, nested: { 'ü"\\': [null, true, 1e21] } } }),
    ),
  );

beforeAll(async () => {
  database = await openTestDatabase();
});
afterAll(() => database.close());
beforeEach(async () => {
  await emptyAuditLog(database);
  store = auditStore(database.sql, { clock, random: systemRandom });
  chainWriter = newChainWriter();
});

test('every event is chained once, without gaps, and the audit log is whole', async () => {
  await append(7);
  expect(await verify()).toMatchObject({ events: 7, sealed: 0, unchainedTail: 7, head: null });
  await chainWriter.run();
  await append(5);
  await chainWriter.run();
  const report = await verify();
  expect(report).toMatchObject({ events: 12, sealed: 12, unchainedTail: 0, head: { seq: 12 } });
  expect(report.brokenAt).toBeUndefined();
  const { events } = await store.page({}, 'oldest', null, 100);
  expect(events.map(({ seal }) => seal?.seq)).toEqual(events.map((_, index) => index + 1));
  expect(events.slice(1).map(({ seal }) => seal?.previousHash)).toEqual(
    events.slice(0, -1).map(({ seal }) => seal?.hash),
  );
  expect(formatAuditReport(report)).toContain('The audit log is intact: 12 events');
});

test('a backlog longer than a batch is chained in one run, and the waiting list is empty after it', {
  tags: 'flood',
}, async () => {
  for (let at = 0; at < 5; at++) await append(500);
  await chainWriter.run();
  expect(await verify()).toMatchObject({ sealed: 2_500, unchainedTail: 0 });
});

test('two chain writers at once chain every event exactly once', async () => {
  await append(1_500);
  await Promise.all([chainWriter.run(), newChainWriter().run()]);
  const report = await verify();
  expect(report).toMatchObject({ sealed: 1_500, unchainedTail: 0 });
  expect(report.brokenAt).toBeUndefined();
});

// The embedded database has one connection: there nothing can commit late.
test.runIf(testServer !== undefined)(
  'an event whose transaction commits late is chained like any other',
  async () => {
    const started = Promise.withResolvers<void>();
    const finish = Promise.withResolvers<void>();
    const late = database.tx(async (tx) => {
      await auditStore(tx, { clock, random: systemRandom }).append(auditEntry({ reason: 'late' }));
      started.resolve();
      await finish.promise;
    });
    await started.promise;
    await append(3);
    await chainWriter.run();
    expect(await verify()).toMatchObject({ events: 3, sealed: 3 });
    finish.resolve();
    await late;
    await chainWriter.run();
    const report = await verify();
    expect(report).toMatchObject({ events: 4, sealed: 4, unchainedTail: 0 });
    expect(report.brokenAt).toBeUndefined();
    const [first] = (await store.page({}, 'oldest', null, 1)).events;
    expect(first).toMatchObject({ reason: 'late', seal: { seq: 4 } });
  },
);

test('the log keeps the head of the chain, once an hour, and once a minute for those who ask for more', async () => {
  logged.length = 0;
  details.length = 0;
  for (const waitedMs of [0, 0, 60_000, 59 * 60_000]) {
    clock.advance(waitedMs);
    await append(1);
    await chainWriter.run();
  }
  expect([logged, details]).toMatchObject([[{ seq: 1 }, { seq: 4 }], [{ seq: 3 }]]);
});

describe('verify finds', () => {
  beforeEach(async () => {
    await append(6);
    await chainWriter.run();
  });
  const eventOf = async (seq: number) => (await chainStore(database.sql).walkSeals(seq - 1, 1))[0]?.eventId;

  test('AU-05 an altered event', async () => {
    await tamper(database, `update audit_events set reason = 'ok' where seq = 3`);
    const report = await verify();
    expect(report.brokenAt).toEqual({ seq: 3, eventId: await eventOf(3), problem: 'event_altered' });
    expect(formatAuditReport(report)).toContain('THE AUDIT LOG IS BROKEN at link 3');
  });

  test('a removed event', async () => {
    await tamper(database, `delete from audit_events where seq = 3`);
    expect((await verify()).brokenAt).toMatchObject({ seq: 3, problem: 'event_removed' });
  });

  test('a removed event together with its link', async () => {
    await tamper(database, `delete from audit_events where seq = 3`, `delete from audit_seals where seq = 3`);
    expect((await verify()).brokenAt).toEqual({ seq: 3, eventId: null, problem: 'seal_removed' });
  });

  test('a removed event that waited for its link', async () => {
    await append(2);
    await tamper(database, `delete from audit_events where seq = 8`);
    expect((await verify()).brokenAt).toMatchObject({ problem: 'event_removed' });
  });

  test('an event slipped in beside the audit log', async () => {
    await tamper(
      database,
      `insert into audit_events (id, at, event, actor_kind, target_kind, target_id, outcome, details, key_ids)
       select 'evt_forged', at, event, actor_kind, target_kind, target_id, outcome, details, key_ids
         from audit_events where seq = 2`,
    );
    expect((await verify()).brokenAt).toEqual({
      seq: null,
      eventId: 'evt_forged',
      problem: 'event_inserted',
    });
  });

  test('two events that changed places', async () => {
    await tamper(
      database,
      `update audit_seals set event_id = case seq when 2 then '${await eventOf(4)}' else '${await eventOf(2)}' end || 'x'
        where seq in (2, 4)`,
      `update audit_seals set event_id = left(event_id, -1) where seq in (2, 4)`,
    );
    expect((await verify()).brokenAt).toMatchObject({ seq: 2, problem: 'event_altered' });
  });

  test('a chain cut off behind a link that someone remembered', async () => {
    const { head } = await verify();
    await tamper(database, `delete from audit_events where seq > 4`, `delete from audit_seals where seq > 4`);
    expect((await verify()).brokenAt).toBeUndefined();
    expect((await verify(head ?? undefined)).brokenAt).toMatchObject({ seq: 6, problem: 'anchor_missing' });
  });

  test('any change of any column of any one row', { tags: 'flood' }, async () => {
    const columns: Record<string, string> = {
      id: `'evt_other'`,
      at: `at + interval '1 millisecond'`,
      event: `'api_key.revoked'`,
      actor_kind: `'system'`,
      actor_id: `'usr_eve'`,
      actor_name: `'Eve'`,
      credential: `null`,
      target_kind: `'user'`,
      target_id: `'BBBBBBBBBBBB'`,
      outcome: `'failure'`,
      reason: `'asked'`,
      request_id: `null`,
      address: `'192.0.2.8'`,
      agent: `'curl/9'`,
      details: `details || '{"index": 99}'`,
      key_ids: `'{}'`,
    };
    const seals: Record<string, string> = {
      seq: 'seq + 100',
      event_id: `'evt_other'`,
      hash: 'sha256(hash)',
      previous_hash: 'sha256(previous_hash)',
    };
    const changes = fc.oneof(
      fc.record({
        table: fc.constant('audit_events'),
        change: fc.constantFrom(...Object.entries(columns)),
      }),
      fc.record({ table: fc.constant('audit_seals'), change: fc.constantFrom(...Object.entries(seals)) }),
    );
    await fc.assert(
      fc.asyncProperty(changes, fc.integer({ min: 1, max: 6 }), async ({ table, change }, seq) => {
        const [column, value] = change;
        await tamper(
          database,
          `create table kept as select * from ${table} where seq = ${seq}`,
          `update ${table} set ${column} = ${value} where seq = ${seq}`,
        );
        const report = await verify();
        const where = column === 'seq' ? seq + 100 : seq;
        await tamper(
          database,
          `update ${table} set ${column} = kept.${column} from kept where ${table}.seq = ${where}`,
          `drop table kept`,
        );
        expect(report.brokenAt, `${table}.${column}`).toBeDefined();
        expect((await verify()).brokenAt).toBeUndefined();
      }),
      { numRuns: 60 },
    );
  });
});

test('whatever details an event carries, its hash is the same before and after the database', {
  tags: 'flood',
}, async () => {
  await fc.assert(
    fc.asyncProperty(fc.dictionary(fc.string({ unit: 'binary' }), fc.jsonValue()), async (details) => {
      await emptyAuditLog(database);
      await appendAll([auditEntry({ details })]);
      const [event] = (await store.page({}, 'newest', null, 1)).events;
      expect(canonicalJson(event?.details)).toBe(canonicalJson(safeJson(details)));
    }),
    { numRuns: 100 },
  );
});

test('canonical JSON sorts members at every depth and writes numbers as RFC 8785 does', () => {
  expect(canonicalJson({ b: [3, { z: 1e21, a: -0 }], a: 'é\n', '€': null, '1': true })).toBe(
    '{"1":true,"a":"é\\n","b":[3,{"a":0,"z":1e+21}],"€":null}',
  );
});

test('vacuuming the waiting list works on the embedded database', async () => {
  await append(3);
  await chainWriter.run();
  await chainStore(database.sql).tidy();
  expect(await sql`select * from audit_unsealed`.all(database.sql)).toEqual([]);
});
