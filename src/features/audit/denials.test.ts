// @module-tag sql
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { FakeClock } from '../../../test/clock.ts';
import { openTestDatabase } from '../../../test/database.ts';
import { emptyAuditLog, testAuditContext } from '../../../test/audit-log.ts';
import type { AuditContext } from '../../core/caller.ts';
import { systemRandom } from '../../core/ids.ts';
import type { Database } from '../../platform/database/database.ts';
import type { AuditEntry, Refusal } from './audit.ts';
import { auditStore } from './audit-store.ts';
import { createDenials } from './denials.ts';

let database: Database;
beforeAll(async () => {
  database = await openTestDatabase();
});
afterAll(() => database.close());
let clock: FakeClock;
beforeEach(async () => {
  await emptyAuditLog(database);
  clock = new FakeClock();
});

const anonymousAuditContext = (address: string): AuditContext => ({
  actor: { kind: 'anonymous', id: null, name: null, credential: null },
  origin: { requestId: `req ${address}`, address, agent: 'curl/8' },
});
const denied = (address = '192.0.2.7'): Refusal => ({
  event: 'auth.denied',
  reason: 'authentication_required',
  auditContext: anonymousAuditContext(address),
  target: { kind: 'route', id: 'GET /me/tokens' },
});
const deadUse = (keyId: string, address = '192.0.2.7'): Refusal => ({
  event: 'api_key.dead_use',
  reason: 'invalid_credential',
  auditContext: anonymousAuditContext(address),
  target: { kind: 'api_key', id: keyId },
});

const dropped: number[] = [];
const inDatabase = (maxBuckets?: number) =>
  createDenials({
    clock,
    tx: (work) => database.tx((tx) => work({ audit: auditStore(tx, { clock, random: systemRandom }) })),
    onDropped: (count) => void dropped.push(count),
    ...(maxBuckets === undefined ? {} : { maxBuckets }),
  });
const written = async () =>
  (await auditStore(database.sql, { clock, random: systemRandom }).page({}, 'oldest', null, 100)).events;

/** An audit log in memory, so that a flood costs the test no database. */
function inMemory(options: { maxBuckets?: number; fails?: () => boolean } = {}) {
  const entries: AuditEntry[] = [];
  let lost = 0;
  const denials = createDenials({
    clock,
    tx: async (work) => {
      if (options.fails?.()) throw new Error('The database is unavailable.');
      return await work({ audit: { appendAll: async (batch) => void entries.push(...batch) } });
    },
    onDropped: (count) => {
      lost += count;
    },
    ...(options.maxBuckets === undefined ? {} : { maxBuckets: options.maxBuckets }),
  });
  const told = () => entries.reduce((sum, { details }) => sum + Number(details?.['count']), 0);
  return { denials, entries, told, lost: () => lost };
}

test('AU-02 a refused attempt is in the audit log with the next flush, with its reason and origin', async () => {
  const denials = inDatabase();
  denials.record(denied());
  await denials.flush();
  expect(await written()).toMatchObject([
    {
      event: 'auth.denied',
      actor: { kind: 'anonymous', id: null },
      target: { kind: 'route', id: 'GET /me/tokens' },
      outcome: 'denied',
      reason: 'authentication_required',
      requestId: 'req 192.0.2.7',
      address: '192.0.2.7',
      details: { count: 1, firstAt: '2026-01-01T00:00:00.000Z', lastAt: '2026-01-01T00:00:00.000Z' },
    },
  ]);
});

test('AU-02 repetitions of a refusal are one event a minute with a count; different ones stay apart', async () => {
  const denials = inDatabase();
  for (let at = 0; at < 50; at++) {
    denials.record(denied());
    await denials.flush();
    clock.advance(1_000);
  }
  denials.record({ ...denied(), auditContext: testAuditContext, reason: 'interactive_auth_required' });
  denials.record(denied('192.0.2.8'));
  await denials.flush();
  const counts = async () => (await written()).map(({ details }) => details['count']);
  expect(await counts()).toEqual([1, 1, 1]);
  clock.advance(9_999);
  await denials.flush();
  expect(await counts()).toEqual([1, 1, 1]);
  clock.advance(1);
  await denials.flush();
  expect(await counts()).toEqual([1, 1, 1, 49]);
  expect((await written())[3]).toMatchObject({
    details: { firstAt: '2026-01-01T00:00:01.000Z', lastAt: '2026-01-01T00:00:49.000Z' },
  });
});

test('a refusal a minute after the last of its kind is written at once again', async () => {
  const denials = inDatabase();
  for (let at = 0; at < 3; at++) {
    denials.record(denied());
    await denials.flush();
    clock.advance(60_000);
    await denials.flush();
    expect(denials.held()).toBe(0);
  }
  expect((await written()).map(({ details }) => details['count'])).toEqual([1, 1, 1]);
});

test('a dead key that is used over and over is one event a minute, whichever addresses it comes from', async () => {
  const denials = inDatabase();
  for (let at = 0; at < 300; at++) denials.record(deadUse('AAAAAAAAAAAA', `192.0.2.${at % 7}`));
  denials.record(deadUse('BBBBBBBBBBBB'));
  clock.advance(60_000);
  await denials.flush();
  const events = await written();
  expect(events.map(({ target, details }) => [target.id, details['count']])).toEqual([
    ['AAAAAAAAAAAA', 300],
    ['BBBBBBBBBBBB', 1],
  ]);
  expect(events[0]?.details['addresses']).toHaveLength(5);
  expect(events[0]?.keyIds).toEqual(['AAAAAAAAAAAA']);
});

test('what is held is written at an orderly stop', async () => {
  const denials = inDatabase();
  denials.record(denied());
  await denials.flush({ all: true });
  expect(await written()).toHaveLength(1);
  expect(denials.held()).toBe(0);
});

test('AU-02 a flood from a hundred thousand addresses holds bounded memory and is counted whole', {
  tags: 'flood',
}, async () => {
  const { denials, entries, told, lost } = inMemory();
  denials.record(deadUse('AAAAAAAAAAAA'));
  for (let at = 0; at < 100_000; at++) {
    denials.record(denied(`2001:db8:${at >> 16}:${(at & 0xffff).toString(16)}::1`));
  }
  expect(denials.held()).toBe(10_002);
  await denials.flush({ all: true });
  expect(told() + lost()).toBe(100_001);
  expect(lost()).toBe(0);
  const folded = entries.find(({ details }) => details?.['count'] === 90_000);
  expect(folded).toMatchObject({
    auditContext: { origin: { address: null } },
    target: { id: 'GET /me/tokens' },
  });
  expect(folded?.details?.['addresses']).toHaveLength(5);
  expect(entries.filter(({ event }) => event === 'api_key.dead_use')).toHaveLength(1);
});

test('AU-02 refusals of one IPv6 customer are one event, however many of its addresses it uses', async () => {
  const { denials, entries } = inMemory();
  for (let at = 0; at < 1_000; at++) denials.record(denied(`2001:db8:1:2::${at.toString(16)}`));
  denials.record(denied('2001:db8:1:3::1'));
  expect(denials.held()).toBe(2);
  await denials.flush({ all: true });
  expect(entries.map(({ details }) => details?.['count'])).toEqual([1_000, 1]);
  expect(entries[0]?.auditContext.origin.address).toBe('2001:db8:1:2::0');
  expect(entries[0]?.details?.['addresses']).toEqual([0, 1, 2, 3, 4].map((at) => `2001:db8:1:2::${at}`));
});

test('throttled addresses beyond the limit become one event', async () => {
  const { denials, entries, lost } = inMemory({ maxBuckets: 10 });
  for (let at = 0; at < 100; at++) {
    const address = `192.0.2.${at}`;
    const target = { kind: 'address', id: address } as const;
    denials.record({
      event: 'auth.throttled',
      reason: 'rate_limited',
      auditContext: anonymousAuditContext(address),
      target,
    });
  }
  await denials.flush({ all: true });
  expect(lost()).toBe(0);
  expect(entries.find(({ target }) => target.id === 'many')?.details).toMatchObject({ count: 90 });
});

test('refused exchanges for keys that the senders choose become one event beyond the limit', async () => {
  const { denials, entries, lost } = inMemory({ maxBuckets: 10 });
  for (let at = 0; at < 100; at++) {
    denials.record({
      event: 'api_key.exchange_refused',
      reason: 'bad_signature',
      auditContext: anonymousAuditContext(`192.0.2.${at}`),
      target: { kind: 'api_key', id: String(at).padStart(12, '0') },
    });
  }
  await denials.flush({ all: true });
  expect(lost()).toBe(0);
  expect(entries.find(({ target }) => target.id === 'many')?.details).toMatchObject({ count: 90 });
});

test('refusals that find no room at all are counted as dropped', async () => {
  const { denials, told, lost } = inMemory({ maxBuckets: 10 });
  for (let at = 0; at < 100; at++) {
    denials.record({ ...denied(`192.0.2.${at}`), target: { kind: 'route', id: `GET /${at}` } });
  }
  expect(denials.held()).toBe(11);
  await denials.flush({ all: true });
  expect([told(), lost()]).toEqual([11, 89]);
});

test('an unavailable database loses nothing: the next flush writes it', async () => {
  let isAway = true;
  const { denials, entries, told } = inMemory({ fails: () => isAway });
  denials.record(denied());
  await expect(denials.flush({ all: true })).rejects.toThrow('unavailable');
  clock.advance(1_000);
  denials.record(denied());
  await expect(denials.flush({ all: true })).rejects.toThrow('unavailable');
  isAway = false;
  await denials.flush({ all: true });
  expect(entries).toHaveLength(1);
  expect(told()).toBe(2);
});
