import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { z } from 'zod';
import { createApp } from '../src/composition/app.ts';
import { readConfig } from '../src/config/read.ts';
import { systemAuditContext } from '../src/core/caller.ts';
import { defaultKeyPolicy } from '../src/features/keys/key-policy.ts';
import type { TrustedIssuer } from '../src/features/keys/keys.ts';
import type { SpendRequest } from '../src/features/rate-limit/rate-limit.ts';
import { migrate } from '../src/platform/database/migrate.ts';
import { type Sql, sql as sqlText } from '../src/platform/database/sql.ts';
import { defineRoute } from '../src/platform/http.ts';
import { openBackends } from '../src/composition/backends/backends.ts';
import { keepTickShapes } from '../src/platform/tick-shapes.ts';
import { githubRule } from '../test/api/federation/platforms.ts';

// The whole server as npm start builds it, on the engines of the environment, with people and keys to measure with. One
// extra route returns the same response to anyone, without key, limit and usage count. Started by server-process.ts.
keepTickShapes();
const config = readConfig();
const opened = await openBackends(config, { isServer: true });
await migrate(opened.database);

/** Calls of the database and the key-value store since the last report. */
const calls = { database: 0, kv: 0 };
const sql: Sql = {
  run(...statement) {
    calls.database += 1;
    return opened.database.sql.run(...statement);
  },
};
const backends: typeof opened = {
  ...opened,
  database: {
    ...opened.database,
    sql,
    tx(work) {
      calls.database += 1;
      return opened.database.tx(work);
    },
  },
  limitSource: {
    spend(request: SpendRequest) {
      calls.kv += 1;
      return opened.limitSource.spend(request);
    },
    peek(owner, limit) {
      calls.kv += 1;
      return opened.limitSource.peek(owner, limit);
    },
    setStamp: (stamp) => opened.limitSource.setStamp(stamp),
  },
};

let plainData: unknown = {};
const app = await createApp({ ...config, passwordCost: { memoryKib: 8, passes: 1 } }, backends, [
  defineRoute({
    method: 'GET',
    path: '/bench/plain',
    operationId: 'benchPlain',
    tag: 'Authentication',
    summary: 'The same answer without a key',
    policy: { callers: 'anyone', identity: 'none' },
    exemptFromLimit: true,
    success: { status: 200, data: z.unknown() },
    handle: () => ({ data: plainData }),
  }),
]);
await app.start();
const { policies, identity, keys } = app.services;
const before = await policies.read();
await policies.put(systemAuditContext, before.etag, { ...defaultKeyPolicy, rateLimitPerMinute: 1_000_000 });

/** One person for each key, because the limit is for each person: no round uses up another round's budget. */
const values: string[] = [];
for (let index = 0; index < 12; index++) {
  const { account } = await identity.accounts.create(systemAuditContext, {
    email: `${randomUUID()}@example.com`,
    name: 'Ada Lovelace',
    password: randomUUID(),
    roles: ['user'],
    groups: [],
    enabled: true,
  });
  const issued = await keys.create(
    systemAuditContext,
    { type: 'personal', userId: account.userId },
    {
      name: 'deploy from CI',
      scopes: ['repos:read', 'sites:write'],
      repositoryAccess: { mode: 'all' },
      ttlHours: 720,
    },
  );
  values.push(issued.value);
}

const address = await app.web.listen({ host: '127.0.0.1', port: config.port });
app.jobs.start();
const answer = await fetch(`${address}/api/v2/auth/context`, {
  headers: { authorization: `Bearer ${values[0]}` },
});
if (answer.status !== 200) throw new Error(`The first request answered ${answer.status}.`);
plainData = ((await answer.json()) as { data: unknown }).data;

/** Bytes that PostgreSQL writes to its log for `seconds`, in small transactions of rows as long as those of the audit log. */
async function writeRows(seconds: number): Promise<number> {
  const { sql: executor } = opened.database;
  await sqlText`create table if not exists bench_rows (id text primary key, text text)`.run(executor);
  const position = async () => {
    const row = await sqlText<{ at: number }>`
      select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8 as at`.first(executor);
    return row?.at ?? 0;
  };
  const from = await position();
  const end = performance.now() + seconds * 1_000;
  while (performance.now() < end) {
    await sqlText`insert into bench_rows select gen_random_uuid()::text, repeat(md5(n::text), 16)
      from generate_series(1, 50) n`.run(executor);
    await wait(10);
  }
  return (await position()) - from;
}

/** More keys than exchanges need, because each may make 60 a minute. */
const federatedKeys = 250;

/** Lets `federatedKeys` new keys trust the jobs of one repository. */
async function trust(issuer: TrustedIssuer): Promise<{ audience: string; keyIds: string[] }> {
  const { etag, value } = await policies.read();
  await policies.put(systemAuditContext, etag, { ...value, federation: { issuers: [issuer] } });
  const keyIds: string[] = [];
  for (let index = 0; index < federatedKeys; index += 1) {
    const { id } = await keys.createFederated(systemAuditContext, {
      name: 'deploy from CI',
      scopes: ['repos:read', 'sites:write'],
      repositoryAccess: { mode: 'all' },
      ttlHours: 720,
      trust: [{ issuer: issuer.url, claims: githubRule.claims, maxTtlMinutes: 15 }],
    });
    keyIds.push(id);
  }
  return { audience: config.uiUrl, keyIds };
}

process.on('message', (message) => {
  if (typeof message === 'object' && message !== null && 'issuer' in message)
    void trust(message.issuer as TrustedIssuer).then((trusting) => process.send?.(trusting));
  if (typeof message === 'number') void writeRows(message).then((bytes) => process.send?.(bytes));
  if (message === 'count') {
    process.send?.({ ...calls });
    calls.database = 0;
    calls.kv = 0;
  }
  // Reading the feed and writing batches must not count as work of the requests.
  if (message === 'rest') void app.jobs.stop().then(() => process.send?.('resting'));
  if (message === 'stop') {
    void app
      .stop()
      .then(() => backends.close())
      .then(() => process.exit(0));
  }
});
process.send?.({ address, keys: values });
