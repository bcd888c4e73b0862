// @module-tag sql
import { afterAll, beforeAll, expect, test } from 'vitest';
import { newRepository, type TestRepository } from '../../../../test/git-repository.ts';
import { type Harness, openHarness, type Person } from '../../../../test/harness.ts';

let h: Harness;
let admin: Person;
let repository: TestRepository;
beforeAll(async () => {
  h = await openHarness();
  admin = await h.person('Ada', { admin: true });
  repository = newRepository();
  for (const branch of ['main', 'a-first', 'feature/login']) repository.commit({ file: branch }, branch);
  await register('acme/website', repository.url);
});
afterAll(async () => {
  await h.close();
  repository.remove();
});

const register = (fullName: string, cloneUrl: string) =>
  h.call('POST', '/repositories', { as: admin, body: { fullName, cloneUrl } });
const list = (query: Record<string, string>, as: Parameters<Harness['call']>[2] = { as: admin }) =>
  h.call('GET', '/environments/branches', { ...as, query });

test('the branches of a repository are listed with their newest commit, the default branch first', async () => {
  const { status, data } = await list({ repository: 'acme/website' });
  expect(status).toBe(200);
  expect(data.map(({ name, isDefault }: { name: string; isDefault: boolean }) => [name, isDefault])).toEqual([
    ['main', true],
    ['a-first', false],
    ['feature/login', false],
  ]);
  expect(data[1].sha).toBe(repository.git('rev-parse', 'a-first'));
  const found = await list({ repository: 'ACME/website', search: 'LOGIN' });
  expect(found.data.map(({ name }: { name: string }) => name)).toEqual(['feature/login']);
});

test('many who ask for the same branches at once all get them', async () => {
  const answers = await Promise.all(Array.from({ length: 20 }, () => list({ repository: 'acme/website' })));
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
});

test('a repository that git cannot read says why, and what to do', async () => {
  await register('acme/gone', `${repository.url}-gone`);
  const gone = await list({ repository: 'acme/gone' });
  expect([gone.status, gone.error.code, gone.error.details]).toEqual([
    400,
    'invalid_repository',
    { reason: 'repository_not_found' },
  ]);
  await register('acme/inside', 'https://127.0.0.1/acme/inside.git');
  const inside = await list({ repository: 'acme/inside' });
  expect([inside.status, inside.error.details]).toEqual([400, { reason: 'private_address' }]);
  expect(inside.error.hint).toContain('OUTBOUND_ALLOW_PRIVATE');
  await register('acme/nowhere', 'https://nowhere.invalid/acme/nowhere.git');
  const nowhere = await list({ repository: 'acme/nowhere' });
  expect([nowhere.status, nowhere.error.code, nowhere.headers['retry-after']]).toEqual([
    503,
    'git_unavailable',
    '10',
  ]);
});

test('a key reads the branches of its repositories only, and needs env:read', async () => {
  const as = await h.serviceKey({
    scopes: ['env:read'],
    repositoryAccess: { mode: 'selected', repositories: ['acme/website'] },
  });
  expect((await list({ repository: 'acme/website' }, { as })).status).toBe(200);
  await register('acme/hidden', repository.url);
  const hidden = await list({ repository: 'acme/hidden' }, { as });
  const missing = await list({ repository: 'acme/missing' }, { as });
  expect([hidden.status, hidden.error]).toEqual([404, missing.error]);
  const other = await h.serviceKey({ scopes: ['sites:read'] });
  expect((await list({ repository: 'acme/website' }, { as: other })).error.code).toBe('forbidden_scope');
});

test('a branch whose name has any letters that git allows can be previewed and deployed', async () => {
  for (const name of ['ünï/çode', '日本語', 'emoji-🎉', "it's", 'a%20b']) {
    repository.commit({ file: name }, name);
    const query = { repository: 'acme/website', branch: name };
    const preview = await h.call('GET', '/environments/config-preview', { as: admin, query });
    expect([preview.status, preview.data.branch]).toEqual([200, name]);
  }
  const query = { repository: 'acme/website', branch: 'a..b' };
  const refused = await h.call('GET', '/environments/config-preview', { as: admin, query });
  expect(refused.error.code).toBe('invalid_query');
});

test('a postern.yml is noticed where postern.yaml is missing', async () => {
  repository.commit({ 'postern.yml': 'version: 1\nservices: {}\n' }, 'other-ending');
  const { data } = await validate({ repository: 'acme/website', branch: 'other-ending' });
  expect(data).toMatchObject({
    valid: false,
    problems: [
      {
        message:
          'The branch has no postern.yaml in its top folder. It has a postern.yml, which Postern does not read.',
        fix: 'Rename postern.yml to postern.yaml.',
      },
    ],
  });
});

const validate = (query: Record<string, string>, as: Parameters<Harness['call']>[2] = { as: admin }) =>
  h.call('GET', '/schema/validate', { ...as, query });

test('the postern.yaml of a branch is validated where it is now, with the commit that was read', async () => {
  const repositoryOf = { repository: 'acme/website' };
  const missing = await validate(repositoryOf);
  expect(missing.data).toEqual({
    valid: false,
    problems: [expect.objectContaining({ rule: 'missing', line: 1, fix: 'Add postern.yaml to the branch.' })],
    sha: repository.git('rev-parse', 'main'),
  });
  const wrong = repository.commit({
    'postern.yaml': 'version: 1\nservices:\n  web:\n    static: {}\n    biuld: { output: dist }\n',
  });
  const found = await validate(repositoryOf);
  expect([found.data.valid, found.data.sha]).toEqual([false, wrong]);
  expect(found.data.problems).toContainEqual(
    expect.objectContaining({ line: 5, column: 5, path: 'services.web.biuld', rule: 'unknown_field' }),
  );
  const right = repository.commit({
    'postern.yaml': 'version: 1\nservices:\n  web:\n    build: { output: dist }\n    static: {}\n',
  });
  expect((await validate({ ...repositoryOf, branch: 'main' })).data).toEqual({
    valid: true,
    problems: [],
    sha: right,
  });
  const other = await validate({ ...repositoryOf, branch: 'a-first' });
  expect(other.data.problems[0].rule).toBe('missing');
});

test('a branch that does not exist, or cannot be one, is refused by its name', async () => {
  const absent = await validate({ repository: 'acme/website', branch: 'absent' });
  expect([absent.status, absent.error.code]).toEqual([400, 'invalid_branch']);
  for (const branch of ['-x', 'a..b', 'a//b', 'main:x', 'a b', 'a@{1}', 'a.lock', 'a/', '.a', 'a\u0000'])
    expect((await validate({ repository: 'acme/website', branch })).error.code).toBe('invalid_query');
});

test('a key in the postern.yaml of a branch is reported and its owner notified, but not shown', async () => {
  const key = await h.serviceKey();
  repository.commit(
    { 'postern.yaml': `version: 1\nservices: { web: { env: { KEY: ${key.value} } } }\n` },
    'leak',
  );
  const { text, data } = await validate({ repository: 'acme/website', branch: 'leak' });
  expect(data.problems.map(({ rule }: { rule: string }) => rule)).toContain('key');
  expect(text).not.toContain(key.value);
  await h.settle();
  await h.app.jobs.runNow('alarms');
  await h.app.services.denials.flush({ all: true });
  const events = await h.call('GET', '/audit/events', { as: admin, query: { event: 'api_key.exposed' } });
  expect(events.data.map(({ target }: { target: { id: string } }) => target.id)).toContain(key.id);
});
