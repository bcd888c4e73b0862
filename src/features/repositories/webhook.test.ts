import { Readable } from 'node:stream';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { fallibleDatabase } from '../../../test/api/limits/outages.ts';
import { openTestDatabase } from '../../../test/database.ts';
import { fromGithub, fromGitlab, type WebhookOptions } from '../../../test/git-webhooks.ts';
import { type CallOptions, type Harness, openHarness, type Person, settings } from '../../../test/harness.ts';
import { FakeClock } from '../../../test/clock.ts';
import { AppError } from '../../core/errors.ts';
import { sql } from '../../platform/database/sql.ts';
import { memoryKv } from '../../platform/kv/memory-kv.ts';
import { maxDeliveryBytes } from './webhook.ts';

let h: Harness;
let admin: Person;
/** What cannot be reached. */
const away = { get: false, set: false, database: { isCut: false } };
beforeAll(async () => {
  const kv = memoryKv({ clock: new FakeClock() });
  const refused = () => Promise.reject(new AppError('store_unavailable'));
  h = await openHarness({
    kv: {
      ...kv,
      get: (...args) => (away.get ? refused() : kv.get(...args)),
      set: (...args) => (away.set ? refused() : kv.set(...args)),
    },
    database: fallibleDatabase(await openTestDatabase(), away.database),
  });
  admin = await h.person('Ada', { admin: true });
});
afterAll(() => h.close());

let repositoryId: string;
let secret: string;
let count = 0;
let name: string;
/** Each test sends from a different address, because refusals are counted by address. */
let from: string;
beforeEach(async () => {
  count += 1;
  name = `hooked-${count}`;
  from = `192.0.2.${count}`;
  repositoryId = await h.repository(`acme/${name}`);
  secret = (await create()).data.secret;
});

const create = (as: CallOptions['as'] = admin) =>
  h.call('POST', `/repositories/acme/${name}/webhook`, { as });
const send = (options: CallOptions, id = repositoryId) =>
  h.call('POST', `/webhooks/git/${id}`, { from, ...options });
const pushes = async (id = repositoryId) =>
  (
    await sql<{ n: number }>`
      select count(*)::int as n from changes where topic = 'push' and subject = ${id}`.first(h.database.sql)
  )?.n;
const eventsOf = async (id: string) =>
  (await h.call('GET', '/audit/events', { as: admin, query: { target: id } })).data.map(
    ({ event, reason }: { event: string; reason: string | null }) => [event, reason],
  );

describe('the secret of a webhook', () => {
  test('is in the answer that creates it, and nowhere else', async () => {
    const { status, data } = await create();
    expect([status, data.url]).toEqual([201, `http://localhost:3000/api/v2/webhooks/git/${repositoryId}`]);
    expect(data.secret).toMatch(/^[A-Za-z0-9_-]{43}$/);
    const one = await h.call('GET', `/repositories/acme/${name}`, { as: admin });
    expect(one.data.webhook).toEqual({ setAt: expect.any(String) });
    await send(fromGitlab(data.secret));
    await send(fromGitlab(`${data.secret}x`));
    const rows = await sql`select * from repository_webhooks`.all(h.database.sql);
    const audit = await h.call('GET', '/audit/events', { as: admin });
    for (const place of [one.text, audit.text, JSON.stringify(rows), ...h.logged])
      expect(place).not.toContain(data.secret);
  });

  test('replaces the one before, which is refused from then on', async () => {
    const next = (await create()).data.secret;
    expect((await send(fromGithub(secret))).status).toBe(401);
    expect((await send(fromGithub(next))).status).toBe(202);
    expect((await eventsOf(repositoryId)).slice(0, 2)).toEqual([
      ['repository.webhook_set', null],
      ['repository.webhook_set', null],
    ]);
  });

  test('is removed by an administrator, and with its repository', async () => {
    const remove = () => h.call('DELETE', `/repositories/acme/${name}/webhook`, { as: admin });
    expect((await remove()).data.webhook).toBeNull();
    expect((await remove()).status).toBe(200);
    expect((await send(fromGithub(secret))).error.code).toBe('invalid_credential');
    await create();
    await h.call('DELETE', `/repositories/acme/${name}`, { as: admin });
    expect((await eventsOf(repositoryId)).filter(([event]: [string]) => event.includes('webhook'))).toEqual([
      ['repository.webhook_removed', 'repository_deleted'],
      ['repository.webhook_set', null],
      ['repository.webhook_removed', 'removed'],
      ['repository.webhook_set', null],
    ]);
  });

  test('is created only by administrators and keys with repos:write, of repositories within reach', async () => {
    const bob = await h.person('Bob');
    expect((await create(bob)).error.code).toBe('forbidden_role');
    expect((await create(await h.serviceKey({ scopes: ['repos:read'] }))).error.code).toBe('forbidden_scope');
    const repositoryAccess = { mode: 'selected', repositories: ['acme/hooked-1'] } as const;
    const bound = await h.serviceKey({ scopes: ['repos:write'], repositoryAccess });
    expect((await create(bound)).error.code).toBe('repo_not_onboarded');
  });
});

const providers: [string, (key: string, options?: WebhookOptions) => CallOptions, string][] = [
  ['GitHub', fromGithub, 'ping'],
  ['GitLab', fromGitlab, 'Tag Push Hook'],
];
describe.each(providers)('a webhook of %s', (_provider, webhook, otherEvent) => {
  test('for a push asks for new commits of its repository', async () => {
    const answer = await send(webhook(secret));
    expect([answer.status, answer.data, await pushes()]).toEqual([202, { queued: true }, 1]);
  });

  test('for another event is accepted and does nothing', async () => {
    const answer = await send(webhook(secret, { event: otherEvent, delivery: null }));
    expect([answer.status, answer.data, await pushes()]).toEqual([200, { queued: false }, 0]);
  });

  test('SC-08 that is sent again does nothing more', async () => {
    const delivery = 'f4c3bd9a-0c2e-4a35-8f7e-1f6a2f3f9d10';
    expect((await send(webhook(secret, { delivery }))).status).toBe(202);
    const again = await send(webhook(secret, { delivery }));
    expect([again.status, again.data, await pushes()]).toEqual([200, { queued: false }, 1]);
  });

  test('SC-08 is refused alike with a wrong secret, for another repository, one without a secret, and none', async () => {
    const other = await h.repository(`acme/${name}-other`);
    const bare = webhook(secret);
    const { 'x-hub-signature-256': _one, 'x-gitlab-token': _other, ...headers } = bare.headers ?? {};
    await h.call('POST', `/repositories/acme/${name}-other/webhook`, { as: admin });
    const without = await h.repository(`acme/${name}-without`);
    const answers = [
      await send(webhook(`${secret}x`)),
      await send(webhook('')),
      await send({ ...bare, headers }),
      await send({ headers }),
      await send(webhook(secret), other),
      await send(webhook(secret), without),
      await send(webhook(secret), 'repo_00000000000000000000'),
    ];
    const [first] = answers;
    expect([first?.status, first?.error.code]).toEqual([401, 'invalid_credential']);
    for (const { status, error } of answers) expect([status, error]).toEqual([401, first?.error]);
    expect(await pushes(other)).toBe(0);
  });

  test('of an address that sent too many bad ones is 429, and a good one from there still counts', async () => {
    const policy = await h.app.services.policies.read();
    const limit = policy.value.failedAuthenticationsPerMinute;
    const statuses: number[] = [];
    for (let sent = 0; sent <= limit; sent += 1) statuses.push((await send(webhook('wrong'))).status);
    expect([statuses.slice(0, -1).every((one) => one === 401), statuses.at(-1)]).toEqual([true, 429]);
    expect((await send(webhook(secret))).status).toBe(202);
    await h.app.services.denials.flush({ all: true });
    const events = await h.call('GET', '/audit/events', { as: admin, query: { target: from } });
    expect(events.data).toMatchObject([{ event: 'auth.throttled', reason: 'rate_limited' }]);
  });

  test('is 503 while a store is unavailable, and can be sent again', async () => {
    const delivery = '0b8f6c46-8a52-4d3f-9a53-a1f2a58ab0c7';
    for (const [cut, restore] of [
      [() => (away.get = true), () => (away.get = false)],
      [() => (away.set = true), () => (away.set = false)],
      [() => (away.database.isCut = true), () => (away.database.isCut = false)],
    ] as const) {
      cut();
      const failed = await send(webhook(secret, { delivery }));
      restore();
      expect([failed.status, failed.error.code]).toEqual([503, 'store_unavailable']);
    }
    expect((await send(webhook(secret, { delivery }))).status).toBe(202);
  });
});

test('SC-08 a captured delivery of GitHub does nothing under another id, or under none', async () => {
  const captured = fromGithub(secret);
  expect((await send(captured)).status).toBe(202);
  const { 'x-github-delivery': _, ...without } = captured.headers ?? {};
  for (const headers of [{ ...without, 'x-github-delivery': 'another' }, without]) {
    const again = await send({ ...captured, headers });
    expect([again.status, again.data]).toEqual([200, { queued: false }]);
  }
  expect(await pushes()).toBe(1);
});

test('a push of GitLab without a delivery id is refused: it could be a replay', async () => {
  const { headers = {}, ...rest } = fromGitlab(secret, { delivery: null });
  const { 'x-gitlab-event-uuid': _, ...without } = headers;
  const { status, error } = await send({ ...rest, headers: without });
  expect([status, error.code, await pushes()]).toEqual([400, 'invalid_body', 0]);
});

test('a form of GitHub, whatever is in it, is verified byte by byte', async () => {
  const body = 'payload=%7B%22ref%22%3A+%00%ff';
  const { headers = {} } = fromGithub(secret, { body });
  const form = { type: 'application/x-www-form-urlencoded', bytes: body };
  expect((await send({ raw: form, headers })).status).toBe(202);
  expect((await send({ raw: { ...form, bytes: `${body} ` }, headers })).status).toBe(401);
});

test('events of GitLab that follow from each other are not taken for replays', async () => {
  const older = (id: string) => {
    const { headers = {}, ...rest } = fromGitlab(secret, { delivery: null });
    return { ...rest, headers: { ...headers, 'x-gitlab-event-uuid': id } };
  };
  expect((await send(fromGitlab(secret))).status).toBe(202);
  expect((await send(fromGitlab(secret))).status).toBe(202);
  // GitLab before 17.4 sends no Idempotency-Key.
  expect((await send(older('one'))).status).toBe(202);
  expect((await send(older('one'))).status).toBe(200);
});

test('a body above 25 MiB is refused while it arrives; one of that size is not', async () => {
  const chunk = Buffer.alloc(1024 * 1024, ' ');
  const ofChunks = (chunks: number) => ({
    raw: { type: 'application/json', bytes: Readable.from(Array.from({ length: chunks }, () => chunk)) },
    headers: fromGithub(secret).headers ?? {},
  });
  const most = maxDeliveryBytes / chunk.length;
  expect((await send(ofChunks(most))).error.code).toBe('invalid_credential');
  expect((await send(ofChunks(most + 1))).error.code).toBe('body_too_large');
});

test('any other type of body is refused with the types that git servers send', async () => {
  const { headers = {} } = fromGithub(secret);
  const { status, error } = await send({ raw: { type: 'text/plain', bytes: '{}' }, headers });
  expect([status, error.details.accepted]).toEqual([
    415,
    ['application/json', 'application/x-www-form-urlencoded'],
  ]);
});

// Last: afterwards this process cannot read the tokens of its sessions.
test('SE-03 a webhook outlives the older ENCRYPTION_KEY, once the job has encrypted its secret again', async () => {
  const keys = ['the-next-encryption-key-of-the-tests-01234', ...settings.encryptionKeys];
  const overlap = await h.another({ secrets: { encryptionKeys: keys } });
  await overlap.app.jobs.runNow('reseal');
  await overlap.close();
  const after = await h.another({ secrets: { encryptionKeys: keys.slice(0, 1) } });
  expect(await after.app.services.repositories.webhookSecretOf(repositoryId)).toBe(secret);
  await after.close();
});
