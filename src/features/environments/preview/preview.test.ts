import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newRepository, type TestRepository } from '../../../../test/git-repository.ts';
import { type Harness, openHarness, type Person } from '../../../../test/harness.ts';
import { defaultEnvironmentPolicy, type EnvironmentPolicy } from '../policy/environment-policy.ts';
import { desiredOf, previewOf } from './preview.ts';

const commit = { branch: 'main', sha: '0123456789abcdef0123456789abcdef01234567' };
const file = (...services: string[]) => ['version: 1', 'services:', ...services, ''].join('\n');
const site = '{ build: { output: dist }, static: {} }';
const process = (run: string) =>
  `{ build: { image: "node:24" }, run: { command: node ., port: 80, ${run} } }`;
const preview = (text: string, policy: Partial<EnvironmentPolicy> = {}) =>
  previewOf(text, commit, { ...defaultEnvironmentPolicy, ...policy });
const problemsOf = (text: string, policy: Partial<EnvironmentPolicy> = {}) => {
  const found = preview(text, policy);
  return found.kind === 'problems' ? found.problems : [];
};

describe('what the policy refuses is a problem with its place', () => {
  test('more services than it allows', () => {
    const text = file(`  a: ${site}`, `  b: ${site}`);
    expect(problemsOf(text, { maxServices: 1 })).toEqual([
      {
        line: 2,
        column: 1,
        path: 'services',
        rule: 'policy',
        message: 'The file has 2 services; the policy allows 1.',
        fix: 'Remove services, or ask an administrator to allow more.',
      },
    ]);
    expect(preview(text, { maxServices: 2 }).kind).toBe('planned');
  });

  test('more processors or memory for one process', () => {
    const text = file(`  api: ${process('resources: { cpu: 1.5, memory: 2Gi }')}`);
    const resources = { maxMilliCpu: 1_000, maxMemoryBytes: 2 ** 30 };
    expect(problemsOf(text, { resources })).toMatchObject([
      {
        line: 3,
        path: 'services.api.run.resources.cpu',
        rule: 'policy',
        message: 'api asks for 1500m of cpu; the policy allows 1000m.',
        fix: 'Write at most 1000m, or ask an administrator to allow more.',
      },
      {
        line: 3,
        path: 'services.api.run.resources.memory',
        rule: 'policy',
        message: 'api asks for 2048Mi of memory; the policy allows 1024Mi.',
        fix: 'Write at most 1024Mi, or ask an administrator to allow more.',
      },
    ]);
    const enough = { maxMilliCpu: 1_500, maxMemoryBytes: 2 ** 31 };
    expect(problemsOf(text, { resources: enough })).toEqual([]);
  });
});

test('a service that this version cannot deploy is a problem at its name', () => {
  const text = file(`  web: ${site}`, '  cache: { image: "redis:8", run: { port: 6379 } }');
  expect(problemsOf(text)).toMatchObject([
    {
      line: 4,
      column: 3,
      path: 'services.cache',
      rule: 'unsupported',
      fix: expect.stringContaining('external'),
    },
  ]);
});

describe('a service that was switched off', () => {
  const server = 'build: { image: "node:24" }, run: { command: node ., port: 80 }';
  const problemsWithout = (name: string, ...lines: string[]) => {
    const overrides = {
      access: null,
      ttlHours: null,
      services: [{ name, isActive: false }],
      env: {},
      initEnv: {},
    };
    const found = desiredOf(file(...lines), commit, defaultEnvironmentPolicy, overrides);
    return found.kind === 'problems' ? found.problems : [];
  };

  test('has no internal address: each reference to it is a problem with its place and the fix', () => {
    const lines = [
      `  api: { ${server}, env: { CACHE: "redis://\${services.cache.host}:6379" } }`,
      `  cache: { ${server}, env: { CACHE_PORT: none } }`,
      'environment: { env: { CACHE_PORT: "${services.cache.port}" } }',
    ];
    const fix = 'Switch cache on, or add cache to requires of api, which also switches it on.';
    expect(problemsWithout('cache', ...lines)).toMatchObject([
      {
        line: 5,
        path: 'environment.env.CACHE_PORT',
        rule: 'reference',
        message: 'api uses ${services.cache.port}, but cache is switched off for this Environment.',
        fix,
      },
      {
        line: 3,
        path: 'services.api.env.CACHE',
        rule: 'reference',
        message: 'api uses ${services.cache.host}, but cache is switched off for this Environment.',
        fix,
      },
    ]);
    expect(problemsWithout('api', ...lines)).toEqual([]);
  });

  test('has the URL that it would have, and is on where an active service requires it', () => {
    const url = `  api: { ${server}, env: { CACHE: "\${services.cache.url}" } }`;
    expect(problemsWithout('cache', url, `  cache: { ${server} }`)).toEqual([]);
    expect(problemsWithout('cache', url, '  cache: { postgres: {} }')).toMatchObject([{ rule: 'reference' }]);
    const required = `  api: { ${server}, requires: [cache], env: { CACHE: "\${services.cache.host}" } }`;
    expect(problemsWithout('cache', required, `  cache: { ${server} }`)).toEqual([]);
  });
});

describe('GET /environments/config-preview', () => {
  let h: Harness;
  let admin: Person;
  let repository: TestRepository;
  beforeAll(async () => {
    h = await openHarness();
    admin = await h.person('Ada', { admin: true });
    repository = newRepository();
    await h.call('POST', '/repositories', {
      as: admin,
      body: { fullName: 'acme/shop', cloneUrl: repository.url },
    });
  });
  afterAll(async () => {
    await h.close();
    repository.remove();
  });
  const get = (query: Record<string, string>, as: Parameters<Harness['call']>[2] = { as: admin }) =>
    h.call('GET', '/environments/config-preview', { ...as, query: { repository: 'acme/shop', ...query } });

  test('shows what an Environment of the branch would be under the policy in force, without values', async () => {
    const sha = repository.commit({
      'postern.yaml': [
        'version: 1',
        'environment: { access: public, ttlHours: 500, env: { LEVEL: not-shown } }',
        'services:',
        `  api: ${process('')}`,
        '  web: { build: { output: dist }, static: {}, requires: [api], routes: { /api: api } }',
        '  docs: { external: { url: "https://docs.example.com" } }',
      ].join('\n'),
    });
    const { status, data, text } = await get({});
    expect([status, data]).toEqual([
      200,
      {
        branch: 'main',
        sha,
        valid: true,
        problems: [],
        planned: {
          access: 'members',
          ttlHours: 336,
          autoTrack: true,
          services: [
            { name: 'api', kind: 'process', isExposed: true, routes: {} },
            { name: 'web', kind: 'static', isExposed: true, routes: { '/api': 'api' } },
            { name: 'docs', kind: 'external', isExposed: false, routes: {} },
          ],
          levels: [['api'], ['web']],
        },
      },
    ]);
    expect(text).not.toContain('not-shown');

    await h.call('PUT', '/config/api-environments', {
      as: admin,
      headers: { 'if-match': '*' },
      body: { ...defaultEnvironmentPolicy, maxServices: 2, maxTtlHours: 400, defaultTtlHours: 400 },
    });
    const refused = await get({ branch: 'main' });
    expect([refused.data.valid, refused.data.planned]).toEqual([false, null]);
    expect(refused.data.problems).toMatchObject([{ rule: 'policy', path: 'services', line: 3 }]);
  });

  test('shows the problems of a file that is wrong or missing, and no plan', async () => {
    repository.commit({ 'postern.yaml': 'version: 1\nservices: { web: { statc: {} } }\n' }, 'wrong');
    const wrong = await get({ branch: 'wrong' });
    expect([wrong.status, wrong.data.valid, wrong.data.planned]).toEqual([200, false, null]);
    expect(wrong.data.problems).toContainEqual(expect.objectContaining({ rule: 'unknown_field', line: 2 }));
    repository.commit({ 'postern.yaml': null }, 'empty');
    const empty = await get({ branch: 'empty' });
    expect([empty.data.problems, empty.data.planned]).toMatchObject([[{ rule: 'missing' }], null]);
    expect((await get({ branch: 'absent' })).error.code).toBe('invalid_branch');
  });

  test('a key needs env:read, and reads only its repositories', async () => {
    const hidden = await h.serviceKey({
      scopes: ['env:read'],
      repositoryAccess: { mode: 'selected', repositories: ['acme/shop'] },
    });
    expect((await get({}, { as: hidden })).status).toBe(200);
    const missing = await get({ repository: 'acme/none' }, { as: hidden });
    expect([missing.status, missing.error.code]).toEqual([404, 'repo_not_onboarded']);
    const other = await h.serviceKey({ scopes: ['repos:read'] });
    expect((await get({}, { as: other })).error.code).toBe('forbidden_scope');
  });

  test('a key in the file is a problem, not repeated, and its owner is notified', async () => {
    const leaked = await h.key(admin, { scopes: ['env:read'] });
    repository.commit({ 'postern.yaml': `version: 1\n# ${leaked.value}\n` }, 'leak');
    const { data, text } = await get({ branch: 'leak' });
    expect(data.problems).toContainEqual(expect.objectContaining({ rule: 'key', line: 2 }));
    expect(text).not.toContain(leaked.value);
    await h.app.jobs.runNow('alarms');
    const notices = await h.call('GET', '/me/notices', { as: admin });
    expect(notices.data).toContainEqual(expect.objectContaining({ kind: 'key_exposed', keyId: leaked.id }));
  });
});
