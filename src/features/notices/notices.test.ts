// @module-tag sql
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { FastifyInstance } from 'fastify';
import { FakeClock } from '../../../test/clock.ts';
import { fixedCaller } from '../../../test/fixed-caller.ts';
import { openTestDatabase } from '../../../test/database.ts';
import type { Role } from '../../core/caller.ts';
import { systemRandom } from '../../core/ids.ts';
import type { Database } from '../../platform/database/database.ts';
import { sql } from '../../platform/database/sql.ts';
import { createWebServer } from '../../surfaces/web/server.ts';
import { noticeStore } from './notice-store.ts';
import { createNotices, type NewNotice } from './notices.ts';
import { noticeRoutes } from './routes.ts';
import { noticeResponse } from './schemas.ts';

let database: Database;
let app: FastifyInstance;
let clock: FakeClock;
let asking: { id: string; roles: Role[] };
let logged: object[];

const log = { debug() {}, info: (fields: object) => void logged.push(fields), warn() {}, error() {} };
const origin = 'http://localhost:3000';
const storeDeps = { clock: { now: () => clock.now() }, random: systemRandom, log };

beforeAll(async () => {
  database = await openTestDatabase();
  const notices = createNotices({
    read: noticeStore(database.sql, storeDeps),
    tx: (work) => database.tx((tx) => work({ notices: noticeStore(tx, storeDeps) })),
  });
  app = await createWebServer({
    uiOrigin: origin,
    isHttps: false,
    trustedProxies: [],
    log,
    metrics: { count() {} },
    routes: noticeRoutes({ notices }),
    pages: [],
    ...fixedCaller(
      () => ({
        kind: 'session',
        user: { id: asking.id, issuer: 'i', subject: 's', name: 'Ada' },
        sessionId: 'ses_1',
        expiresAt: 0,
        authenticatedAt: null,
      }),
      () => ({ kind: 'active', roles: asking.roles }),
    ),
  });
});
afterAll(async () => {
  await app.close();
  await database.close();
});
beforeEach(async () => {
  clock = new FakeClock();
  asking = { id: 'usr_ada', roles: ['user'] };
  logged = [];
  await sql`delete from notices`.run(database.sql);
});

const notice = (more: Partial<NewNotice> = {}): NewNotice => ({
  recipient: { kind: 'user', userId: 'usr_ada' },
  kind: 'key_expires_7d',
  keyId: '4fKd02LmQx9Z',
  fields: { keyName: 'deploy', expiresAt: '2026-01-08T00:00:00.000Z' },
  ...more,
});
const add = (more: Partial<NewNotice> = {}) =>
  database.tx((tx) => noticeStore(tx, storeDeps).add(notice(more)));
const get = async (path: string) => (await app.inject(`/api/v2${path}`)).json();
const post = (path: string) => app.inject({ method: 'POST', url: `/api/v2${path}`, headers: { origin } });

test('a person reads what is to know about their keys, newest first', async () => {
  await add();
  clock.advance(1_000);
  await add({ kind: 'key_exposed', fields: { keyName: 'deploy', digest: 'ab'.repeat(32) } });
  const { data, metadata } = await get('/me/notices');
  expect(data).toMatchObject([
    { kind: 'key_exposed', keyId: '4fKd02LmQx9Z', digest: 'ab'.repeat(32), readAt: null },
    { kind: 'key_expires_7d', keyName: 'deploy', keyExpiresAt: '2026-01-08T00:00:00.000Z', digest: null },
  ]);
  for (const one of data) noticeResponse.parse(one);
  expect(data[1].message).toBe(
    'The key “deploy” (4fKd02LmQx9Z) expires within 7 days (2026-01-08T00:00:00.000Z). Rotate it to keep its scripts working.',
  );
  expect(metadata.pagination).toEqual({ current: 1, total: 1, items: 2, limit: 25 });
});

test('the same thing is told once, a new occasion is told again', async () => {
  await add({ occasion: '2026-01-08' });
  await add({ occasion: '2026-01-08' });
  await add({ occasion: '2026-01-09' });
  await add({ occasion: '2026-01-08', recipient: { kind: 'user', userId: 'usr_bob' } });
  expect((await get('/me/notices')).data).toHaveLength(2);
});

test('every notice is in the log once, with the key’s public id', async () => {
  await add();
  await add();
  expect(logged).toMatchObject([{ kind: 'key_expires_7d', keyId: '4fKd02LmQx9Z', userId: 'usr_ada' }]);
});

test('a notice of a change that was rolled back is not told', async () => {
  const change = database.tx(async (tx) => {
    await noticeStore(tx, storeDeps).add(notice());
    throw new Error('no');
  });
  await expect(change).rejects.toThrow('no');
  expect((await get('/me/notices')).data).toEqual([]);
});

test('reading marks a notice once, and repeating it changes nothing', async () => {
  await add();
  await add({ kind: 'key_expired' });
  const [{ id }] = (await get('/me/notices')).data;
  const first = (await post(`/me/notices/${id}/read`)).json().data;
  expect(first.readAt).toBe('2026-01-01T00:00:00.000Z');
  clock.advance(60_000);
  expect((await post(`/me/notices/${id}/read`)).json().data).toEqual(first);
  expect((await get('/me/notices?unread=false')).data).toEqual([first]);
  const unread = await get('/me/notices?unread=true&limit=1');
  expect(unread.data).toHaveLength(1);
  expect(unread.data[0].id).not.toBe(id);
  expect(unread.metadata.pagination.items).toBe(1);
});

test('nobody sees or marks the notices of someone else, administrators included', async () => {
  await add();
  await add({ recipient: { kind: 'administrators' }, kind: 'key_dead_use' });
  const [{ id }] = (await get('/me/notices')).data;
  for (const roles of [['user'], ['user', 'admin']] as Role[][]) {
    asking = { id: 'usr_bob', roles };
    expect((await get('/me/notices')).data).toEqual([]);
    const answer = await post(`/me/notices/${id}/read`);
    expect([answer.statusCode, answer.json().error.code]).toEqual([404, 'not_found']);
  }
  expect((await post(`/notices/${id}/read`)).statusCode).toBe(404);
});

test('notices about service keys go to administrators, and to them only', async () => {
  await add({ recipient: { kind: 'administrators' }, kind: 'key_dead_use' });
  expect((await get('/notices')).error.code).toBe('forbidden_role');
  asking = { id: 'usr_root', roles: ['user', 'admin'] };
  const [{ id }] = (await get('/notices?unread=true')).data;
  expect((await post(`/notices/${id}/read`)).statusCode).toBe(200);
  expect((await get('/notices?unread=true')).data).toEqual([]);
});

test('pages hold every notice once', async () => {
  for (let at = 0; at < 5; at++) await add({ keyId: `${at}`.repeat(12) });
  const pages = await Promise.all([1, 2, 3].map((page) => get(`/me/notices?limit=2&page=${page}`)));
  expect(new Set(pages.flatMap(({ data }) => data.map(({ keyId }: { keyId: string }) => keyId))).size).toBe(
    5,
  );
  expect(pages.map(({ data }) => data.length)).toEqual([2, 2, 1]);
  expect(pages[0].metadata.pagination).toEqual({ current: 1, total: 3, items: 5, limit: 2 });
});
