// @module-tag sql
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { FastifyInstance } from 'fastify';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { FakeClock } from '../../../test/clock.ts';
import { fixedCaller } from '../../../test/fixed-caller.ts';
import { openTestDatabase } from '../../../test/database.ts';
import { testAuditContext, auditEntry } from '../../../test/audit-log.ts';
import type { Role } from '../../core/caller.ts';
import { AppError } from '../../core/errors.ts';
import { systemRandom } from '../../core/ids.ts';
import type { Database } from '../../platform/database/database.ts';
import { createWebServer } from '../../surfaces/web/server.ts';
import { type AuditEntry, createAudit } from './audit.ts';
import { auditStore } from './audit-store.ts';
import { chainStore } from './chain-store.ts';
import { auditRoutes } from './routes.ts';
import { type AuditEventResponse, auditEventResponse, listedEventResponse } from './schemas.ts';
import { createChainWriter } from './chain-writer.ts';

let database: Database;
let app: FastifyInstance;
let roles: Role[] = ['user', 'admin'];
let whenAgain: () => Promise<void> = async () => undefined;
const steps = fixedCaller(
  {
    kind: 'session',
    user: { id: 'usr_ada', issuer: 'i', subject: 's', name: 'Ada' },
    sessionId: 'ses_1',
    expiresAt: 0,
    authenticatedAt: null,
  },
  () => ({ kind: 'active', roles }),
);
const recorded: AuditEntry[] = [];
const clock = new FakeClock();
const log = { debug() {}, info() {}, warn() {}, error() {} };

beforeAll(async () => {
  database = await openTestDatabase();
  const store = auditStore(database.sql, { clock, random: systemRandom });
  app = await createWebServer({
    uiOrigin: 'http://localhost:3000',
    isHttps: false,
    trustedProxies: [],
    log,
    metrics: { count() {} },
    routes: auditRoutes({
      audit: createAudit({
        read: store,
        tx: (work) => work({ audit: { append: async (entry) => void recorded.push(entry) } }),
        clock,
      }),
      clock,
      names: async () => new Map(),
    }),
    pages: [],
    ...steps,
    authentication: {
      ...steps.authentication,
      async authenticateAgain(request) {
        await whenAgain();
        return await steps.authentication.authenticateAgain(request);
      },
    },
  });
  const forged = '=cmd|"/C calc"!A1\r\nforged,line';
  await store.append(
    auditEntry({ auditContext: { ...testAuditContext, actor: { ...testAuditContext.actor, name: forged } } }),
  );
  for (let at = 0; at < 5; at++) {
    clock.advance(1_000);
    await store.append(auditEntry({ event: 'api_key.narrowed', details: { at, ü: ['"', 0.1] } }));
  }
  await createChainWriter({
    read: chainStore(database.sql),
    tx: (work) => database.tx((tx) => work({ chain: chainStore(tx) })),
    clock,
    log,
  }).run();
});
afterAll(async () => {
  await app.close();
  await database.close();
});

const get = (path: string) => app.inject(`/api/v2/audit${path}`);
const search = async (query: string) => (await get(`/events${query}`)).json();
const spans = (events: AuditEventResponse[]) => events.map(({ details }) => details['at']);

test('an administrator pages through the audit log, newest first', async () => {
  const first = await search('?limit=4');
  expect(spans(first.data)).toEqual([4, 3, 2, 1]);
  for (const event of first.data) listedEventResponse.parse(event);
  const { nextCursor, limit } = first.metadata.pagination;
  expect(limit).toBe(4);
  const second = await search(`?limit=4&cursor=${nextCursor}`);
  expect(spans(second.data)).toEqual([0, undefined]);
  expect(second.metadata.pagination).toEqual({ limit: 4, nextCursor: null });
  const [event] = second.data;
  expect((await get(`/events/${event.id}`)).json().data).toEqual(event);
});

test('filters narrow the search', async () => {
  expect((await search('?event=api_key.created')).data).toHaveLength(1);
  expect(spans((await search('?from=2026-01-01T00:00:04Z&to=2026-01-01T02:00:05%2B02:00')).data)).toEqual([
    3,
  ]);
  expect((await search('?actor=usr_other')).data).toEqual([]);
});

test.each([
  '?event=api_key.crated',
  '?outcome=maybe',
  '?from=yesterday',
  '?cursor=!',
  '?cursor=eA',
  '?actr=usr_ada',
])('a mistyped search is refused, not ignored: %s', async (query) => {
  const response = await get(`/events${query}`);
  expect(response.statusCode).toBe(400);
  expect(response.json().error.code).toBe('invalid_query');
});

test('AU-05 whoever is no administrator reads nothing of the audit log', async () => {
  roles = ['user'];
  const answers = await Promise.all(['/events', '/events/evt_1', '/export'].map(get));
  roles = ['user', 'admin'];
  expect(answers.map(({ statusCode }) => statusCode)).toEqual([403, 403, 403]);
  expect(answers.map((answer) => answer.json().error.code)).toEqual(Array(3).fill('forbidden_role'));
});

test('an event that is not there is 404', async () => {
  expect((await get('/events/evt_none')).statusCode).toBe(404);
});

test('AU-04 in a CSV export an event is one row, and no cell runs in a spreadsheet', async () => {
  const response = await get('/export?format=csv');
  expect(response.headers['content-type']).toContain('text/csv');
  expect(response.headers['content-disposition']).toBe('attachment; filename="audit-2026-01-01.csv"');
  expect(response.headers['cache-control']).toBe('no-store');
  const lines = response.body.trimEnd().split('\r\n');
  expect(lines).toHaveLength(7);
  expect(lines[0]).toMatch(/^id,time,event,actorKind,/);
  expect(lines[1]).toContain(`,"'=cmd|""/C calc""!A1\\u000d\\u000aforged,line",`);
});

test('an NDJSON export has the filters of the search and one event a line, oldest first', async () => {
  const { body } = await get('/export?event=api_key.narrowed');
  const events = body
    .trimEnd()
    .split('\n')
    .map((line) => auditEventResponse.parse(JSON.parse(line)));
  expect(spans(events)).toEqual([0, 1, 2, 3, 4]);
});

test('an export is itself written down: by whom, with which filters, in which form', async () => {
  recorded.length = 0;
  await get('/export?event=api_key.narrowed&format=csv');
  expect(recorded).toEqual([
    {
      event: 'audit.exported',
      auditContext: expect.objectContaining({
        actor: expect.objectContaining({ id: 'usr_ada', credential: 'ses_1' }),
      }),
      target: { kind: 'trail', id: 'all' },
      outcome: 'success',
      details: { event: 'api_key.narrowed', format: 'csv' },
    },
  ]);
});

test('an export that matches nothing is empty, not an error', async () => {
  expect((await get('/export?actor=nobody')).body).toBe('');
});

test('anyone can verify an export offline with the script in the reference', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'postern-chain-'));
  const page = await readFile(join(import.meta.dirname, '../../../docs/reference/audit-chain.md'), 'utf8');
  await writeFile(join(folder, 'verify.mjs'), /```js\n(.*?)```/s.exec(page)?.[1] ?? '');
  const check = async (text: string) => {
    await writeFile(join(folder, 'audit.ndjson'), text);
    return await new Promise<{ failed: boolean; output: string }>((resolve) => {
      const args = [join(folder, 'verify.mjs'), join(folder, 'audit.ndjson')];
      execFile(process.execPath, args, (error, output) => resolve({ failed: error !== null, output }));
    });
  };
  const { body } = await get('/export');
  const { data } = await search('?limit=1');
  expect(await check(body)).toEqual({
    failed: false,
    output: `6 chained events, 0 altered, 6 linked from the beginning, head ${data[0].hash}\n`,
  });
  const altered = await check(body.replace('"at":2', '"at":7'));
  expect(altered).toMatchObject({ failed: true, output: expect.stringContaining('ALTERED evt_') });
  const shortened = await check(
    body
      .split('\n')
      .filter((_, line) => line !== 2)
      .join('\n'),
  );
  expect(shortened).toMatchObject({ failed: true, output: expect.stringContaining('0 altered, 2 linked') });
  await rm(folder, { recursive: true });
});

test('CS-03 an export stops where its session ended, and the download is cut, not finished', async () => {
  const store = auditStore(database.sql, { clock, random: systemRandom });
  const many = Array.from({ length: 1_100 }, (_, at) =>
    auditEntry({ event: 'api_key.imported', details: { at } }),
  );
  await store.appendAll(many);
  clock.advance(1_000);
  const asked: number[] = [];
  whenAgain = async () => {
    asked.push(asked.length);
    if (asked.length > 1) throw new AppError('authentication_required');
  };
  const address = await app.listen({ port: 0, host: '127.0.0.1' });
  const response = await fetch(`${address}/api/v2/audit/export?event=api_key.imported`);
  expect(response.status).toBe(200);
  await expect(response.text()).rejects.toThrow('terminated');
  expect(asked).toEqual([0, 1]);
  whenAgain = async () => undefined;
  const whole = await (await fetch(`${address}/api/v2/audit/export?event=api_key.imported`)).text();
  expect(whole.trimEnd().split('\n')).toHaveLength(1_100);
});
