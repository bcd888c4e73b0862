// @module-tag sql
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { day, minute, second } from '../../../src/core/clock.ts';
import { defaultAccessConfig } from '../../../src/features/people/login/access-config.ts';
import { type Harness, openHarness, type Person } from '../../harness.ts';

/** The limit of sign-ins from one address: a document of the administrators, as a browser at the sign-in meets it. */
let h: Harness;
let admin: Person;
beforeAll(async () => {
  h = await openHarness();
});
let made = 0;
/** Signed in just now. */
const newAdmin = async () => (admin = await h.person(`Root ${(made += 1)}`, { admin: true }));
beforeEach(newAdmin);
afterAll(() => h.close());

const read = () => h.call('GET', '/config/access', { as: admin });
const etag = async () => (await read()).headers['etag'] ?? '';
const put = async (signInsPerAddressPerMinute: unknown, options: { query?: object; ifMatch?: string } = {}) =>
  await h.call('PUT', '/config/access', {
    as: admin,
    body: { signInsPerAddressPerMinute },
    query: { ...options.query },
    headers: { 'if-match': options.ifMatch ?? (await etag()) },
  });

/** Statuses of sign-ins that one address starts at once. */
async function signIns(count: number, from: string, process: Harness = h): Promise<number[]> {
  const statuses: number[] = [];
  for (let at = 0; at < count; at += 1) {
    const answer = await process.app.web.inject({
      url: '/auth/login',
      headers: { host: 'localhost:3000', accept: 'text/html' },
      remoteAddress: from,
    });
    statuses.push(answer.statusCode);
  }
  return statuses;
}

/** A process reads a changed document at once, and answers meanwhile. */
const untilInForce = (limit: number, process: Harness = h) =>
  expect.poll(() => process.app.services.accessConfig.lastRead().signInsPerAddressPerMinute).toBe(limit);

test('an installation starts with 60 a minute, with Keycloak with 600', async () => {
  const { data, headers } = await read();
  expect(data).toEqual({
    version: 0,
    changedAt: null,
    changedBy: null,
    config: { signInsPerAddressPerMinute: 60, freshProofMinutes: 120, secondFactor: 'optional' },
  });
  expect(headers['etag']).toMatch(/^"0-/);
  expect(defaultAccessConfig({ isKeycloak: true })).toEqual({
    signInsPerAddressPerMinute: 600,
    freshProofMinutes: 120,
    secondFactor: 'optional',
  });
});

test('an administrator’s limit applies on every process within a second, for each address separately', async () => {
  const other = await h.another();
  expect((await put(3)).status).toBe(200);
  await other.app.services.feed.poll();
  for (const process of [h, other]) await untilInForce(3, process);
  for (const process of [h, other]) {
    expect(await signIns(4, '192.0.2.1', process)).toEqual([303, 303, 303, 429]);
    expect(await signIns(1, '192.0.2.2', process)).toEqual([303]);
  }
  h.clock.advance(minute);
  expect((await put(500)).status).toBe(200);
  await untilInForce(500);
  expect(new Set(await signIns(120, '192.0.2.1'))).toEqual(new Set([303]));
  await other.close();
});

test('a change needs the version it was made from, is audited, listed and can be reverted', async () => {
  const stale = await etag();
  const { version, config: before } = (await read()).data;
  expect((await put(90)).data).toMatchObject({
    version: version + 1,
    changedBy: admin.user.id,
    dryRun: null,
  });
  expect((await put(91, { ifMatch: stale })).error.code).toBe('precondition_failed');
  const missing = await h.call('PUT', '/config/access', {
    as: admin,
    body: { signInsPerAddressPerMinute: 91 },
  });
  expect(missing.error.code).toBe('precondition_required');
  const { data: events } = await h.call('GET', '/audit/events', {
    as: admin,
    query: { event: 'config.access.changed' },
  });
  expect(events[0]).toMatchObject({
    actor: { id: admin.user.id },
    target: { kind: 'config', id: 'access' },
    details: { version: version + 1, before, after: { signInsPerAddressPerMinute: 90 } },
  });
  const reverted = await h.call('POST', '/config/access/revert', {
    as: admin,
    body: { version: 0 },
    headers: { 'if-match': await etag() },
  });
  expect(reverted.data).toMatchObject({ version: version + 2, config: { signInsPerAddressPerMinute: 60 } });
  const { data: history } = await h.call('GET', '/config/access/history', { as: admin });
  expect(history.slice(0, 2).map((one: { version: number }) => one.version)).toEqual([
    version + 2,
    version + 1,
  ]);
});

test('a dry run compares the limit with the sign-ins of the last 24 hours and changes nothing', async () => {
  // The beginning of a minute, so that what follows lies in it.
  h.clock.advance(minute - (h.clock.now() % minute));
  const began = (address: string, count: number) =>
    h.app.services.tx(async ({ audit }) => {
      for (let at = 0; at < count; at += 1)
        await audit.append({
          event: 'session.started',
          auditContext: {
            actor: { kind: 'user', id: admin.user.id, name: 'Root', credential: null },
            origin: { requestId: null, address, agent: null },
          },
          target: { kind: 'session', id: `ses_${at}` },
          outcome: 'success',
        });
    });
  await began('192.0.2.10', 5);
  await began('192.0.2.11', 3);
  h.clock.advance(minute);
  await began('192.0.2.10', 4);
  const before = await read();
  const tried = async (limit: number) => (await put(limit, { query: { dryRun: 'true' } })).data;
  expect(await tried(4)).toMatchObject({
    version: before.data.version,
    config: { signInsPerAddressPerMinute: 4 },
    dryRun: { addressesOverLimit: 1, mostFromOneAddress: 5 },
  });
  expect((await tried(2)).dryRun).toEqual({ addressesOverLimit: 2, mostFromOneAddress: 5 });
  expect((await tried(5)).dryRun).toEqual({ addressesOverLimit: 0, mostFromOneAddress: 5 });
  expect((await read()).data).toEqual(before.data);
  h.clock.advance(day + second);
  await newAdmin();
  expect((await tried(2)).dryRun).toEqual({ addressesOverLimit: 0, mostFromOneAddress: 0 });
});

test.each([0, 100_001, 1.5, '60', null])(
  '%j is not a limit, and the answer names the field',
  async (value) => {
    const refused = await put(value);
    expect([refused.status, refused.error.code]).toEqual([422, 'config_invalid']);
    expect(refused.error.details.fields).toMatchObject([{ field: 'signInsPerAddressPerMinute' }]);
  },
);

test('only an administrator reads or changes the limit', async () => {
  const ada = await h.person('Ada');
  const key = await h.key(ada);
  for (const [method, path] of [
    ['GET', '/config/access'],
    ['PUT', '/config/access'],
    ['GET', '/config/access/history'],
    ['POST', '/config/access/revert'],
  ] as const) {
    expect((await h.call(method, path)).status).toBe(401);
    expect((await h.call(method, path, { as: ada })).error.code).toBe('forbidden_role');
    expect((await h.call(method, path, { as: key })).status).toBe(403);
  }
});
