// @module-tag sql
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { FakeClock } from '../../../test/clock.ts';
import { openTestDatabase } from '../../../test/database.ts';
import {
  emptyAuditLog,
  testAuditContext as auditContext,
  auditEntry as entry,
} from '../../../test/audit-log.ts';
import { systemRandom } from '../../core/ids.ts';
import type { Database } from '../../platform/database/database.ts';
import { sql } from '../../platform/database/sql.ts';
import type { AuditEntry } from './audit.ts';
import { type AuditStore, auditStore } from './audit-store.ts';

let database: Database;
let clock: FakeClock;
let read: AuditStore;

beforeAll(async () => {
  database = await openTestDatabase();
});
afterAll(() => database.close());
beforeEach(async () => {
  await emptyAuditLog(database);
  clock = new FakeClock();
  read = auditStore(database.sql, { clock, random: systemRandom });
});

const append = (more: Partial<AuditEntry> = {}) =>
  database.tx((tx) => auditStore(tx, { clock, random: systemRandom }).append(entry(more)));
const all = async () => (await read.page({}, 'newest', null, 100)).events;

test('an event tells who did what, to what, from where and when', async () => {
  await append({ reason: 'asked', details: { before: null, after: { scopes: ['sites:read'] } } });
  const [event] = await all();
  expect(event).toMatchObject({
    at: clock.now(),
    event: 'api_key.created',
    actor: auditContext.actor,
    target: { kind: 'api_key', id: 'AAAAAAAAAAAA' },
    outcome: 'success',
    reason: 'asked',
    requestId: 'req-1',
    address: '192.0.2.7',
    agent: 'curl/8',
    details: { before: null, after: { scopes: ['sites:read'] } },
    seal: null,
  });
  expect(event?.id).toMatch(/^evt_[0-9A-Za-z]{20}$/);
  expect(await read.find(event?.id ?? '')).toEqual(event);
});

test('AU-03 a change whose audit event cannot be written did not happen, and the caller is told 503', async () => {
  await sql`create table things (id int)`.run(database.sql);
  await sql
    .raw(`
    create function full_disk() returns trigger language plpgsql as
      $$ begin raise exception 'could not extend file' using errcode = 'disk_full'; end $$`)
    .run(database.sql);
  await sql`create trigger full_disk before insert on audit_events execute function full_disk()`.run(
    database.sql,
  );
  const change = database.tx(async (tx) => {
    await sql`insert into things values (1)`.run(tx);
    await auditStore(tx, { clock, random: systemRandom }).append(entry());
  });
  await expect(change).rejects.toMatchObject({ code: 'store_unavailable', status: 503 });
  expect(await sql`select * from things`.all(database.sql)).toEqual([]);
  await sql`drop trigger full_disk on audit_events`.run(database.sql);
});

test('an event whose change is rolled back leaves no trace', async () => {
  await expect(
    database.tx(async (tx) => {
      await auditStore(tx, { clock, random: systemRandom }).append(entry());
      throw new Error('no');
    }),
  ).rejects.toThrow('no');
  expect(await all()).toEqual([]);
  expect(await sql`select * from audit_unsealed`.all(database.sql)).toEqual([]);
});

test.each([
  ['update audit_events set actor_name = null'],
  ['delete from audit_events'],
  ['truncate audit_events'],
  ['update audit_seals set hash = previous_hash'],
  ['delete from audit_seals'],
  ['truncate audit_seals'],
  ['delete from audit_event_keys'],
  ["set session_replication_role = 'replica'; delete from audit_events"],
])('AU-05 the database refuses: %s', async (statement) => {
  await append();
  const run = (text: string) => sql.raw(text).run(database.sql);
  await expect(
    statement.split('; ').reduce((before, text) => before.then(() => run(text)), Promise.resolve<unknown>(0)),
  ).rejects.toMatchObject({ code: '42501' });
  await sql`set session_replication_role = 'origin'`.run(database.sql);
  expect(await all()).toHaveLength(1);
});

test('AU-04 line breaks, ANSI sequences and hidden marks in names and agents are shown, not obeyed', async () => {
  await append({
    auditContext: {
      actor: { ...auditContext.actor, name: 'Eve\r\n{"event":"forged"}' },
      origin: { ...auditContext.origin, agent: '\u001b[2Kcurl\u0000\u202egpj\u2028' },
    },
    details: { 'na\nme': 'a\u0000b', emoji: '👩‍🚀', lone: '\ud800' },
  });
  const [event] = await all();
  expect(event?.actor.name).toBe('Eve\\u000d\\u000a{"event":"forged"}');
  expect(event?.agent).toBe('\\u001b[2Kcurl\\u0000\\u202egpj\\u2028');
  expect(event?.details).toEqual({ 'na\\u000ame': 'a\\u0000b', emoji: '👩‍🚀', lone: '\ufffd' });
});

test('a key value that strays into an event is masked', async () => {
  const value = 'app_pat_4fKd02LmQx9ZabcdefghijklmnopqrstuvwxyzABCDEF012345';
  await append({
    details: { name: value },
    auditContext: { ...auditContext, actor: { ...auditContext.actor, name: value } },
  });
  expect(JSON.stringify(await all())).not.toContain('4fKd02LmQx9Zabc');
});

test('each filter finds its events and nothing else', async () => {
  await append();
  clock.advance(1_000);
  const service = {
    kind: 'service_key',
    id: 'BBBBBBBBBBBB',
    name: 'ci',
    credential: 'BBBBBBBBBBBB',
  } as const;
  await append({
    event: 'auth.denied',
    auditContext: { actor: service, origin: { ...auditContext.origin, requestId: 'req-2' } },
    target: { kind: 'route', id: 'GET /tokens' },
    outcome: 'denied',
    keyIds: ['CCCCCCCCCCCC'],
  });
  clock.advance(1_000);
  const anonymous = { kind: 'anonymous', id: null, name: null, credential: null } as const;
  await append({
    auditContext: { actor: anonymous, origin: { ...auditContext.origin, requestId: null } },
    outcome: 'failure',
  });
  const start = clock.now() - 2_000;
  const found = async (filter: Parameters<AuditStore['page']>[0]) =>
    (await read.page(filter, 'oldest', null, 10)).events.map(({ at }) => (at - start) / 1_000);

  expect(await found({ actor: 'usr_ada' })).toEqual([0]);
  expect(await found({ actor: 'anonymous' })).toEqual([2]);
  expect(await found({ event: 'auth.denied' })).toEqual([1]);
  expect(await found({ target: 'AAAAAAAAAAAA' })).toEqual([0, 2]);
  expect(await found({ outcome: 'denied' })).toEqual([1]);
  expect(await found({ requestId: 'req-2' })).toEqual([1]);
  expect(await found({ from: start + 1_000, to: start + 2_000 })).toEqual([1]);
  expect(await found({ keyId: 'AAAAAAAAAAAA' })).toEqual([0, 2]);
  expect(await found({ keyId: 'BBBBBBBBBBBB' })).toEqual([1]);
  expect(await found({ keyId: 'CCCCCCCCCCCC', outcome: 'denied', from: start })).toEqual([1]);
  expect(await found({ keyId: 'ses_1' })).toEqual([]);
  expect(await found({ actor: "' or 1=1 --" })).toEqual([]);
});
