// @module-tag sql
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Harness, openHarness, type Person } from '../../../../test/harness.ts';
import { defaultEnvironmentPolicy, environmentPolicySchema } from './environment-policy.ts';

const isolation = {
  kind: 'process',
  isComplete: false,
  message: 'Environments run without isolation.',
} as const;
let h: Harness;
let root: Person;
beforeAll(async () => {
  h = await openHarness({ isolation });
  root = await h.person('Root', { admin: true });
});
afterAll(() => h.close());

const read = () => h.call('GET', '/config/api-environments', { as: root });
const put = (body: object, options: { etag?: string; query?: Record<string, string> } = {}) =>
  h.call('PUT', '/config/api-environments', {
    as: root,
    body,
    headers: { 'if-match': options.etag ?? '*' },
    query: options.query ?? {},
  });

test('an installation starts with Environments switched off, and public ones not allowed', async () => {
  const { data } = await read();
  expect(data).toEqual({
    version: 0,
    changedAt: null,
    changedBy: null,
    policy: defaultEnvironmentPolicy,
    warnings: [],
  });
  expect(defaultEnvironmentPolicy).toMatchObject({
    enabled: false,
    defaultTtlHours: 72,
    maxTtlHours: 336,
    extensionHours: 24,
    maxPerOwner: 10,
    maxTotal: 200,
    maxServices: 20,
    maxConcurrentBuilds: 2,
    buildTimeoutMinutes: 30,
    logBytes: 10_485_760,
    artifactBytesPerRepository: 10_737_418_240,
    grantMinutes: 5,
    allowedAccess: ['owner', 'members'],
  });
  expect(environmentPolicySchema.safeParse(defaultEnvironmentPolicy).success).toBe(true);
});

test('an administrator who enables Environments without an engine reads a warning', async () => {
  const { headers } = await read();
  const etag = headers['etag'] ?? '';
  const tried = await put(
    { ...defaultEnvironmentPolicy, enabled: true },
    { etag, query: { dryRun: 'true' } },
  );
  expect(tried.data.warnings).toEqual([expect.stringContaining('ENVIRONMENTS_ENGINE is off')]);
});

test('a change is tried out, made, read by everyone, audited, kept in the history and reverted', async () => {
  const next = { ...defaultEnvironmentPolicy, enabled: true, maxPerOwner: 3 };
  const first = await read();
  const etag = first.headers['etag'] ?? '';
  const tried = await put(next, { etag, query: { dryRun: 'true' } });
  expect([tried.status, tried.data.dryRun]).toEqual([200, { changed: ['enabled', 'maxPerOwner'] }]);
  expect((await read()).data.version).toBe(0);

  expect((await h.call('PUT', '/config/api-environments', { as: root, body: next })).error.code).toBe(
    'precondition_required',
  );
  const changed = await put(next, { etag });
  expect([changed.status, changed.data.version, changed.data.dryRun]).toEqual([200, 1, null]);
  expect((await put(next, { etag })).error.code).toBe('precondition_failed');
  const ada = await h.person('Ada');
  const key = await h.serviceKey({ scopes: ['sites:read'] });
  for (const as of [ada, key]) {
    const { data } = await h.call('GET', '/environments/policy', { as });
    expect(data).toMatchObject({
      enabled: true,
      maxPerOwner: 3,
      allowedAccess: ['owner', 'members'],
      isolation,
      serverTime: new Date(h.clock.now()).toISOString(),
    });
    expect(data).not.toHaveProperty('maxConcurrentBuilds');
  }

  const reverted = await h.call('POST', '/config/api-environments/revert', {
    as: root,
    body: { version: 0 },
    headers: { 'if-match': changed.headers['etag'] ?? '' },
  });
  expect(reverted.data).toMatchObject({ version: 2, policy: defaultEnvironmentPolicy });
  const history = await h.call('GET', '/config/api-environments/history', { as: root });
  expect(history.data.map(({ version }: { version: number }) => version)).toEqual([2, 1, 0]);
  const events = await h.call('GET', '/audit/events', {
    as: root,
    query: { event: 'config.api-environments.changed' },
  });
  expect(
    events.data.map(({ reason, target, details }: { reason: string; target: object; details: object }) => ({
      reason,
      target,
      details,
    })),
  ).toEqual([
    {
      reason: 'reverted',
      target: expect.objectContaining({ kind: 'config', id: 'api-environments' }),
      details: { version: 2, before: next, after: defaultEnvironmentPolicy },
    },
    {
      reason: 'changed',
      target: expect.objectContaining({ kind: 'config', id: 'api-environments' }),
      details: { version: 1, before: defaultEnvironmentPolicy, after: next },
    },
  ]);
});

describe('a policy is refused by the field that is wrong, and nothing changes', () => {
  const { resources } = defaultEnvironmentPolicy;
  test.each<[change: object, field: string, problem: string]>([
    [{ defaultTtlHours: 337 }, 'defaultTtlHours', 'must not be more than maxTtlHours'],
    [{ extensionHours: 337 }, 'extensionHours', 'must not be more than maxTtlHours'],
    [{ maxPerOwner: 201 }, 'maxPerOwner', 'must not be more than maxTotal'],
    [{ maxServices: 21 }, 'maxServices', 'must be at most 20'],
    [{ grantMinutes: 61 }, 'grantMinutes', 'must be at most 60'],
    [{ grantMinutes: 4 }, 'grantMinutes', 'must be at least 5'],
    [{ allowedAccess: ['owner', 'owner'] }, 'allowedAccess', 'must not repeat an access'],
    [{ resources: { ...resources, maxMilliCpu: 0 } }, 'resources.maxMilliCpu', 'must be at least 50'],
  ])('%j', async (change, field, problem) => {
    const before = (await read()).data;
    const { status, error } = await put({ ...defaultEnvironmentPolicy, ...change });
    expect([status, error.code, error.details]).toEqual([
      422,
      'config_invalid',
      { fields: [{ field, problem }] },
    ]);
    expect((await read()).data).toEqual(before);
  });

  test.each([{ allowedAccess: [] }, { allowedAccess: ['everyone'] }, { maxTtlHours: '72' }])(
    '%j',
    async (change) => {
      const { error } = await put({ ...defaultEnvironmentPolicy, ...change });
      expect([error.code, error.details.fields[0].field]).toEqual([
        'config_invalid',
        expect.stringContaining(Object.keys(change)[0] ?? ''),
      ]);
    },
  );
});
