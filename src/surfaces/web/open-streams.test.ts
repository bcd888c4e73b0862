import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { fixedCaller } from '../../../test/fixed-caller.ts';
import type { Caller, CallerKey, UserRef } from '../../core/caller.ts';
import { anything, type Change } from '../../platform/database/change-feed.ts';
import { defineRoute } from '../../platform/http.ts';
import { createOpenStreams } from './open-streams.ts';
import { createWebServer } from './server.ts';

const silent = defineRoute({
  method: 'GET',
  path: '/silent',
  operationId: 'silent',
  tag: 'Test',
  summary: 'Sends one line, and no other',
  policy: { callers: ['session', 'personal_key'], identity: 'people', scope: 'env:read' },
  success: { status: 200, stream: ['text/plain'] },
  async handle() {
    const never = new Promise<never>(() => undefined);
    const stream = (async function* () {
      yield 'first\n';
      await never;
    })();
    return { stream, contentType: 'text/plain', fileName: 'silent.txt' };
  },
});

const user: UserRef = {
  id: 'usr_ada',
  issuer: 'http://localhost:3000/identity',
  subject: 'ada',
  name: 'Ada',
};
const key: CallerKey = {
  id: 'key_ada',
  type: 'personal',
  name: 'CI',
  scopes: ['env:read'],
  repositories: { mode: 'all' },
  repositoryNames: [],
  expiresAt: null,
  isBound: true,
  isSuspended: false,
  isTypeEnabled: true,
};
const withKey: Caller = { kind: 'personal_key', key, user };
const withSession: Caller = {
  kind: 'session',
  user,
  sessionId: 'ses_ada',
  expiresAt: Number.MAX_SAFE_INTEGER,
  authenticatedAt: null,
};

/** A reader of the silent stream, who has read its only line. */
async function openReader(before: Caller) {
  let caller = before;
  let isActive = true;
  let tell: (change: Change) => void = () => undefined;
  const app = await createWebServer({
    uiOrigin: 'http://localhost:3000',
    isHttps: false,
    trustedProxies: [],
    log: { debug() {}, info() {}, warn() {}, error() {} },
    metrics: { count() {} },
    routes: [silent],
    pages: [],
    ...fixedCaller(
      () => caller,
      () => (isActive ? { kind: 'active', roles: ['user'] } : { kind: 'disabled' }),
    ),
    openStreams: createOpenStreams({ subscribe: (listener) => void (tell = listener) }),
  });
  await app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = app.server.address() as AddressInfo;
  const asked = request({
    port,
    path: '/api/v2/silent',
    agent: false,
    headers: { host: 'localhost:3000' },
  }).end();
  onTestFinished(async () => {
    asked.destroy();
    await app.close();
  });
  const [response] = (await once(asked, 'response')) as [IncomingMessage];
  expect(String((await once(response, 'data'))[0])).toBe('first\n');
  return {
    cut: once(response, 'error'),
    isOpen: async () => {
      for (let turns = 0; turns < 20; turns += 1) await turn();
      return !response.closed;
    },
    become: (after: Caller) => void (caller = after),
    disable: () => void (isActive = false),
    tell: (change: Change) => tell(change),
  };
}

test.each<[what: string, before: Caller, after: Caller, Change]>([
  ['the key is revoked', withKey, { kind: 'anonymous' }, { topic: 'key', subject: 'key_ada' }],
  [
    'the key loses the scope',
    withKey,
    { ...withKey, key: { ...key, scopes: ['repos:read'] } },
    { topic: 'key', subject: 'key_ada' },
  ],
  [
    'the key loses a repository',
    withKey,
    { ...withKey, key: { ...key, repositories: { mode: 'selected', repositoryIds: ['repo_other'] } } },
    { topic: 'key', subject: 'key_ada' },
  ],
  [
    'a repository of the key is removed',
    withKey,
    { ...withKey, key: { ...key, repositories: { mode: 'selected', repositoryIds: [] } } },
    { topic: 'repository', subject: 'repo_gone' },
  ],
  [
    'the policy switches the type of the key off',
    withKey,
    { ...withKey, key: { ...key, isTypeEnabled: false } },
    { topic: 'policy', subject: 'api-keys' },
  ],
  ['the session ends', withSession, { kind: 'anonymous' }, { topic: 'session', subject: 'ses_ada' }],
  [
    'the process may have missed a change',
    withSession,
    { kind: 'anonymous' },
    { topic: 'session', subject: anything },
  ],
])('a silent stream is cut at once when %s', async (_what, before, after, change) => {
  const reader = await openReader(before);
  reader.become(after);
  reader.tell(change);
  expect(await reader.cut).toMatchObject([{ code: 'ECONNRESET' }]);
});

test('a silent stream is cut at once when its reader is disabled', async () => {
  const reader = await openReader(withSession);
  reader.disable();
  reader.tell({ topic: 'principal', subject: 'ada' });
  expect(await reader.cut).toMatchObject([{ code: 'ECONNRESET' }]);
});

test('a silent stream stays open when its reader still may read it, and when the change is about others', async () => {
  const reader = await openReader(withKey);
  reader.tell({ topic: 'key', subject: 'key_ada' });
  expect(await reader.isOpen()).toBe(true);
  reader.become({ kind: 'anonymous' });
  reader.tell({ topic: 'key', subject: 'key_other' });
  reader.tell({ topic: 'session', subject: anything });
  reader.tell({ topic: 'principal', subject: 'ben' });
  expect(await reader.isOpen()).toBe(true);
  reader.tell({ topic: 'key', subject: anything });
  expect(await reader.cut).toMatchObject([{ code: 'ECONNRESET' }]);
});
