// @module-tag sql
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { grantableScopes, type Scope } from '../../../src/core/scopes.ts';
import { digestOf } from '../../../src/features/keys/key-value.ts';
import { type Harness, openHarness, type Person, type TestKey } from '../../harness.ts';
import { contents, noLimits, setPolicy } from './cast.ts';

/** What scopes and repository selections let a key do, and that what is out of reach does not exist. */
let h: Harness;
let ada: Person;
let root: Person;
beforeAll(async () => {
  h = await openHarness();
  await setPolicy(h, noLimits);
  ada = await h.person('Ada');
  root = await h.person('Root', { admin: true });
  for (const name of ['acme/api', 'acme/docs', 'acme/website', 'zeta/secret']) await h.repository(name);
});
afterAll(() => h.close());

const selected = (...repositories: string[]) => ({ mode: 'selected', repositories }) as const;
const namesSeen = async (key: TestKey, query: Record<string, string> = {}) => {
  const { data, metadata } = await h.call('GET', '/repositories', { as: key, query });
  return {
    names: data.map(({ fullName }: { fullName: string }) => fullName) as string[],
    items: metadata.pagination.items as number,
  };
};
const repositoryBody = (fullName: string) => ({
  fullName,
  cloneUrl: `https://git.example.com/${fullName}.git`,
});

/** The decision of the very function that enforces, for a scope no route of today asks for. */
async function isAllowed(key: TestKey, scope: Scope, repository?: string): Promise<boolean> {
  const query = { can: scope, ...(repository === undefined ? {} : { repository }) };
  return (await h.call('GET', '/auth/context', { as: key, query })).data.decision.allowed;
}

describe('scopes', () => {
  test('SC-02 a key for environments or sites is refused on repositories, and the answer names the missing scope', async () => {
    for (const scope of ['env:read', 'env:write', 'sites:read', 'sites:write'] as const) {
      const answer = await h.call('GET', '/repositories', { as: await h.serviceKey({ scopes: [scope] }) });
      expect([answer.status, answer.error.code]).toEqual([403, 'forbidden_scope']);
      expect(answer.error.message).toBe(`This key has ${scope}; this request needs repos:read.`);
      expect(answer.error.details).toEqual({ requiredScope: 'repos:read', grantedScopes: [scope] });
      expect(answer.headers['www-authenticate']).toBe(
        'Bearer realm="postern", error="insufficient_scope", scope="repos:read"',
      );
    }
  });

  test('SC-02 SC-03 a scope allows itself, a write its own read, and nothing of another resource', async () => {
    for (const granted of grantableScopes) {
      const key = await h.serviceKey({ scopes: [granted] });
      for (const asked of grantableScopes) {
        const isItself = asked === granted;
        const isItsRead = granted.endsWith(':write') && asked === granted.replace(':write', ':read');
        expect([granted, asked, await isAllowed(key, asked)]).toEqual([
          granted,
          asked,
          isItself || isItsRead,
        ]);
      }
    }
  });

  test('SC-03 the context of a key with a write names the implied read as effective, not as granted', async () => {
    const key = await h.serviceKey({ scopes: ['env:write', 'repos:write'] });
    const { data } = await h.call('GET', '/auth/context', { as: key });
    expect(data.scopes).toEqual(['env:write', 'repos:write']);
    expect(data.effectiveScopes).toEqual(['env:read', 'env:write', 'repos:read', 'repos:write']);
  });
});

describe('the legacy scope', () => {
  const legacyValue = `app_svc_${'fedcba9876543210'.repeat(3).slice(0, 40)}`;
  const record = (more: object) =>
    JSON.stringify({
      digest: digestOf(legacyValue),
      prefix: 'app_svc_',
      name: 'older deployer',
      scopes: ['repos:read', 'env:admin'],
      createdAt: '2025-01-01T00:00:00Z',
      expiresAt: null,
      ...more,
    });

  test('SC-04 no administrator can create a service key with env:admin, an unknown, a repeated or no scope', async () => {
    const before = await contents(h);
    for (const [scopes, status, code] of [
      [['env:admin'], 403, 'forbidden_scope'],
      [['env:admin', 'env:read'], 403, 'forbidden_scope'],
      [['env:everything'], 400, 'invalid_scopes'],
      [['repos:read', 'repos:read'], 400, 'invalid_scopes'],
      [['REPOS:READ'], 400, 'invalid_scopes'],
      [[], 400, 'invalid_scopes'],
      ['repos:read', 400, 'invalid_scopes'],
      [undefined, 400, 'invalid_scopes'],
    ] as const) {
      const body = { name: 'a key', scopes, repositoryAccess: { mode: 'all' } };
      const answer = await h.call('POST', '/tokens', { as: root, body });
      expect([scopes, answer.status, answer.error.code]).toEqual([scopes, status, code]);
    }
    expect(await contents(h)).toEqual(before);
  });

  test('SC-04 an imported service key with env:admin works, and env:admin satisfies no other scope', async () => {
    expect(await h.app.services.importKeys([record({})])).toMatchObject({ kind: 'imported', count: 1 });
    const key: TestKey = { id: '', value: legacyValue, type: 'service' };
    const { status, data } = await h.call('GET', '/auth/context', { as: key });
    expect(status).toBe(200);
    expect(data).toMatchObject({
      keyType: 'service',
      keyName: 'older deployer',
      scopes: ['repos:read', 'env:admin'],
      effectiveScopes: ['repos:read', 'env:admin'],
      expiresAt: null,
    });
    expect((await namesSeen(key)).names).toContain('acme/api');
    expect(await isAllowed(key, 'env:read')).toBe(false);
    expect(await isAllowed(key, 'env:write')).toBe(false);
  });

  test('SC-04 the successor of a key with env:admin does not have it', async () => {
    const { data } = await h.call('GET', '/auth/context', { as: `Bearer ${legacyValue}` });
    const kept = await h.call('POST', `/tokens/${data.keyId}/rotate`, {
      as: root,
      body: { scopes: ['env:admin'] },
    });
    expect([kept.status, kept.error.code]).toEqual([403, 'forbidden_scope']);
    const rotated = await h.call('POST', `/tokens/${data.keyId}/rotate`, { as: root, body: {} });
    expect([rotated.status, rotated.data.scopes]).toEqual([201, ['repos:read']]);
  });

  test('SC-04 a personal key cannot be imported with env:admin', async () => {
    const result = await h.app.services.importKeys([
      record({ prefix: 'app_pat_', owner: ada.subject, digest: digestOf('another') }),
    ]);
    expect(result).toMatchObject({ kind: 'refused', problems: [{ line: 1 }] });
  });
});

describe('a selection of repositories', () => {
  test('SC-05 only mode all reaches everything; no form of an empty selection passes for it', async () => {
    const before = await contents(h);
    for (const repositoryAccess of [
      undefined,
      null,
      'all',
      {},
      [],
      { mode: 'selected' },
      { mode: 'selected', repositories: [] },
      { mode: 'selected', repositories: null },
      { mode: 'all', repositories: [] },
      { mode: 'all', repositories: ['acme/api'] },
      { mode: 'none' },
      { repositories: ['acme/api'] },
    ]) {
      for (const path of ['/me/tokens', '/tokens']) {
        const body = { name: 'a key', scopes: ['repos:read'], repositoryAccess };
        const answer = await h.call('POST', path, { as: root, body });
        expect([repositoryAccess, answer.status, answer.error.code]).toEqual([
          repositoryAccess,
          400,
          'invalid_repository_access',
        ]);
      }
    }
    expect(await contents(h)).toEqual(before);
  });

  test('SC-07 lists, searches, counts and pages hold only what is selected', async () => {
    const key = await h.serviceKey({
      scopes: ['repos:read'],
      repositoryAccess: selected('acme/website', 'acme/api'),
    });
    expect(await namesSeen(key)).toEqual({ names: ['acme/api', 'acme/website'], items: 2 });
    expect(await namesSeen(key, { search: 'zeta' })).toEqual({ names: [], items: 0 });
    expect(await namesSeen(key, { limit: '1', page: '2' })).toEqual({ names: ['acme/website'], items: 2 });
    expect(await namesSeen(key, { page: '3' })).toEqual({ names: [], items: 2 });
  });

  test('SC-07 for every verb, a repository out of reach and a missing one get the same bytes', async () => {
    const key = await h.serviceKey({
      scopes: ['repos:write'],
      repositoryAccess: selected('acme/website'),
    });
    const before = await contents(h);
    const bytes = async (method: string, name: string, body?: object) => {
      const answer = await h.call(method, `/repositories/${name}`, { as: key, body });
      const { 'x-request-id': requestId = '', ratelimit: _budget, date: _date, ...headers } = answer.headers;
      return { status: answer.status, headers, text: answer.text.replaceAll(requestId, '') };
    };
    for (const [method, body] of [
      ['GET', undefined],
      ['HEAD', undefined],
      ['PATCH', { defaultBranch: 'trunk' }],
      ['PATCH', { fullName: 'acme/website' }],
      ['DELETE', undefined],
    ] as const) {
      const unreachable = await bytes(method, 'zeta/secret', body);
      expect(unreachable.status).toBe(404);
      expect(unreachable).toEqual(await bytes(method, 'zeta/absent', body));
      expect(await bytes(method, 'ZETA/Secret', body)).toEqual(unreachable);
    }
    expect(await contents(h)).toEqual(before);
  });

  test('SC-07 the context and its decisions do not tell whether a repository exists', async () => {
    const key = await h.serviceKey({
      scopes: ['repos:read'],
      repositoryAccess: selected('acme/website'),
    });
    const decision = async (repository: string) =>
      (await h.call('GET', '/auth/context', { as: key, query: { can: 'repos:read', repository } })).data
        .decision;
    expect(await decision('zeta/secret')).toEqual(await decision('zeta/absent'));
    expect((await decision('zeta/secret')).allowed).toBe(false);
    expect((await decision('Acme/Website')).allowed).toBe(true);
  });

  test('SC-07 a constrained key cannot register repositories, and learns nothing by trying', async () => {
    const key = await h.serviceKey({
      scopes: ['repos:write'],
      repositoryAccess: selected('acme/website'),
    });
    for (const name of ['zeta/secret', 'zeta/absent']) {
      const answer = await h.call('POST', '/repositories', { as: key, body: repositoryBody(name) });
      expect([answer.status, answer.error.code]).toEqual([403, 'forbidden_repository']);
    }
  });

  test('SC-07 a constrained key cannot rename, so it cannot learn which names are taken', async () => {
    const key = await h.serviceKey({
      scopes: ['repos:write'],
      repositoryAccess: selected('acme/docs'),
    });
    for (const fullName of ['zeta/secret', 'zeta/absent']) {
      const answer = await h.call('PATCH', '/repositories/acme/docs', { as: key, body: { fullName } });
      expect([answer.status, answer.error.code]).toEqual([403, 'forbidden_repository']);
      expect(answer.text).not.toContain('zeta');
    }
  });

  test('SC-05 a selection emptied by deletion reaches nothing, and does not become all', async () => {
    await h.repository('gone/soon');
    const key = await h.key(ada, {
      scopes: ['repos:write'],
      repositoryAccess: selected('gone/soon'),
    });
    expect((await namesSeen(key)).names).toEqual(['gone/soon']);
    expect((await h.call('DELETE', '/repositories/gone/soon', { as: root })).status).toBe(200);
    expect(await namesSeen(key)).toEqual({ names: [], items: 0 });
    const { data } = await h.call('GET', '/auth/context', { as: key });
    expect(data.repositories).toEqual({ mode: 'selected', repositories: [] });
    expect((await h.call('GET', '/repositories/acme/api', { as: key })).status).toBe(404);
    expect(await isAllowed(key, 'repos:read', 'acme/api')).toBe(false);
    // A repository registered later under the old name is another repository.
    await h.repository('gone/soon');
    expect(await namesSeen(key)).toEqual({ names: [], items: 0 });
  });

  test('SC-07 a rename neither widens nor breaks a key; the old name, given to another, is out of reach', async () => {
    await h.repository('old/name');
    const key = await h.serviceKey({
      scopes: ['repos:write'],
      repositoryAccess: selected('old/name'),
    });
    const renamed = await h.call('PATCH', '/repositories/old/name', {
      as: root,
      body: { fullName: 'new/name' },
    });
    expect(renamed.status).toBe(200);
    expect((await namesSeen(key)).names).toEqual(['new/name']);
    const { data } = await h.call('GET', '/auth/context', { as: key });
    expect(data.repositories).toEqual({ mode: 'selected', repositories: ['new/name'] });
    await h.repository('old/name');
    expect((await h.call('GET', '/repositories/old/name', { as: key })).status).toBe(404);
    expect((await h.call('GET', '/repositories/new/name', { as: key })).status).toBe(200);
    expect((await namesSeen(key)).items).toBe(1);
  });

  test('SC-07 another process knows a deletion or a rename as soon as it reads the change feed', async () => {
    const other = await h.another();
    await h.repository('pair/one');
    await h.repository('pair/two');
    const key = await h.serviceKey({
      scopes: ['repos:read'],
      repositoryAccess: selected('pair/one', 'pair/two'),
    });
    const namesThere = async () =>
      (await other.call('GET', '/auth/context', { as: key })).data.repositories.repositories;
    expect(await namesThere()).toEqual(['pair/one', 'pair/two']);
    await h.call('DELETE', '/repositories/pair/one', { as: root });
    await h.call('PATCH', '/repositories/pair/two', { as: root, body: { fullName: 'pair/renamed' } });
    await other.app.jobs.runNow('change-feed');
    expect(await namesThere()).toEqual(['pair/renamed']);
    await other.close();
  });
});

test('a query that cannot be answered is refused with what is wrong: a repository without can, an unknown name', async () => {
  const key = await h.key(await h.person('Asker'));
  const asking = async (query: Record<string, string>) =>
    (await h.call('GET', '/auth/context', { as: key, query })).error;
  const alone = await asking({ repository: 'acme/website' });
  expect([alone.code, alone.message]).toEqual([
    'invalid_query',
    'repository: needs can, the scope to try on it: ?can=repos:read&repository=owner/name',
  ]);
  expect(await asking({ cna: 'repos:read' })).toMatchObject({
    code: 'invalid_query',
    message: 'cna: is not a parameter of this route',
  });
});
