import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { defaultKeyPolicy } from '../../src/features/keys/key-policy.ts';
import { documentStore } from '../../src/features/settings/settings.ts';
import { defaultSitesConfig } from '../../src/features/sites/site/sites-config.ts';
import { type Harness, openHarness, type Person, type TestKey } from '../harness.ts';
import { page, upload } from './sites/uploads.ts';

/** Configuration documents that another release wrote into the database this one serves from (decision 0028). */
let h: Harness;
let root: Person;
let key: TestKey;
let site: { id: string; url: string };
beforeAll(async () => {
  h = await openHarness();
  root = await h.person('Root', { admin: true });
  key = await h.key(root);
  site = (await upload(h, root, { 'index.html': page('here') }, { visibility: 'public' })).data;
});
afterAll(() => h.close());

const topics = { 'api-keys': 'policy', sites: 'config' } as const;

async function store(name: keyof typeof topics, value: unknown): Promise<void> {
  const documents = documentStore(h.database.sql);
  const version = ((await documents.current(name))?.version ?? 0) + 1;
  await documents.add(name, { version, value, changedAt: h.clock.now(), changedBy: null });
  h.app.services.feed.announce({ topic: topics[name], subject: name });
  await h.settle();
}

beforeEach(async () => {
  await store('api-keys', defaultKeyPolicy);
  await store('sites', defaultSitesConfig);
});

const withKey = (on = h) => on.call('GET', '/auth/context', { as: key });

const newerPolicy = {
  ...defaultKeyPolicy,
  rateLimitPerMinute: 77,
  scopes: { personal: ['builds:read', 'repos:read'], service: defaultKeyPolicy.scopes.service },
  lifetime: {
    ...defaultKeyPolicy.lifetime,
    personal: { ...defaultKeyPolicy.lifetime.personal, pauseHours: 3 },
  },
  networks: { allowed: ['10.0.0.0/8'] },
};
const newerConfig = {
  ...defaultSitesConfig,
  quotas: { ...defaultSitesConfig.quotas, sitesPerOwner: 7, previewsPerOwner: 9 },
  previews: { enabled: false },
};

test('with documents of a newer release, every process answers, starts, and applies the parts that it knows', async () => {
  await store('api-keys', newerPolicy);
  await store('sites', newerConfig);
  const other = await h.another();
  const gateway = await h.gatewayAlone();
  for (const on of [h, other]) {
    expect((await withKey(on)).status).toBe(200);
    const policy = (await on.call('GET', '/config/api-keys', { as: root })).data.policy;
    expect(policy).toEqual({
      ...defaultKeyPolicy,
      rateLimitPerMinute: 77,
      scopes: { ...defaultKeyPolicy.scopes, personal: ['repos:read'] },
    });
    const { config } = (await on.call('GET', '/config/sites', { as: root })).data;
    expect(config).toEqual({
      ...defaultSitesConfig,
      quotas: { ...defaultSitesConfig.quotas, sitesPerOwner: 7 },
    });
  }
  expect((await h.open(site.url)).statusCode).toBe(200);
  expect((await gateway.open(site.url)).statusCode).toBe(200);
  await gateway.stop();
  await other.close();
});

test('an allow-list of extensions from an older release stays, and forbids nothing else', async () => {
  const { forbiddenExtensions: _later, ...upload } = defaultSitesConfig.upload;
  await store('sites', { ...defaultSitesConfig, upload: { ...upload, allowedExtensions: ['html', 'css'] } });
  const { config } = (await h.call('GET', '/config/sites', { as: root })).data;
  expect(config.upload).toMatchObject({ allowedExtensions: ['html', 'css'], forbiddenExtensions: [] });
});

test('a document that an older release wrote has the defaults where it has no field yet', async () => {
  const {
    rateLimitPerMinute: _limit,
    lifetime,
    ...older
  } = { ...defaultKeyPolicy, authentication: { personal: true } };
  const { allowNoExpiry: _may, ...personal } = lifetime.personal;
  await store('api-keys', { ...older, lifetime: { ...lifetime, personal } });
  await store('sites', { enabled: false });
  expect((await h.call('GET', '/config/api-keys', { as: root })).data.policy).toEqual(defaultKeyPolicy);
  const { config } = (await h.call('GET', '/config/sites', { as: root })).data;
  expect(config).toEqual({ ...defaultSitesConfig, enabled: false });
});

test.each([
  [
    'api-keys',
    'policy',
    newerPolicy,
    { ...defaultKeyPolicy, rateLimitPerMinute: 88 },
    'networks',
    [422, 'config_invalid'],
  ],
  [
    'sites',
    'config',
    newerConfig,
    { ...defaultSitesConfig, enabled: false },
    'previews',
    [400, 'invalid_body'],
  ],
] as const)(
  'a request for %s stays strict, and replaces all that a newer release wrote',
  async (name, field, newer, next, unknown, code) => {
    await store(name, newer);
    const { etag = '' } = (await h.call('GET', `/config/${name}`, { as: root })).headers;
    const put = (body: object) =>
      h.call('PUT', `/config/${name}`, { as: root, body, headers: { 'if-match': etag } });
    const refused = await put(newer);
    expect([refused.status, refused.error.code]).toEqual(code);
    expect(JSON.stringify(refused.error.details)).toContain(unknown);
    const { quotas: _quotas, rateLimitPerMinute: _limit, ...partial }: Record<string, unknown> = { ...next };
    expect((await put(partial)).status).toBe(422);
    const changed = await put(next);
    expect([changed.status, changed.data[field]]).toEqual([200, next]);
    const stored = await documentStore(h.database.sql).current(name);
    expect(stored?.value).toEqual(next);
    const history = await h.call('GET', `/config/${name}/history`, { as: root });
    expect(history.data[1][field]).not.toHaveProperty(unknown);
    const reverted = await h.call('POST', `/config/${name}/revert`, {
      as: root,
      headers: { 'if-match': changed.headers['etag'] ?? '' },
      body: { version: changed.data.version - 1 },
    });
    expect([reverted.status, reverted.data[field]]).toEqual([200, history.data[1][field]]);
  },
);

test.each([
  ['a text for a number', { ...defaultKeyPolicy, rateLimitPerMinute: '600' }],
  ['null for a field', { ...defaultKeyPolicy, authentication: null }],
  ['a number beyond its bounds', { ...defaultKeyPolicy, rateLimitPerMinute: -1 }],
  ['a scope that is no text', { ...defaultKeyPolicy, scopes: { personal: [1], service: [] } }],
  ['no object at all', 'everything'],
])('with %s in the stored policy, no key is accepted', async (_what, value) => {
  await store('api-keys', value);
  await expect(withKey()).rejects.toThrow('failed');
});
