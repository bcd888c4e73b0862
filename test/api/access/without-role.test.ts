// @module-tag sql
import { afterAll, beforeAll, expect, test } from 'vitest';
import { minute } from '../../../src/core/clock.ts';
import { fakeDirectory, type FakeDirectory } from '../../fakes/directory.ts';
import { type Harness, openHarness, type Person, uiOrigin } from '../../harness.ts';
import { absentPath, contents, manyChanges } from './cast.ts';

/**
 * A person who can sign in and has no role of this service, such as everyone else of a company's realm: held against every
 * route, so that a new one cannot open by being forgotten.
 */
let h: Harness;
let fake: FakeDirectory;
let nobody: Person;

beforeAll(async () => {
  fake = fakeDirectory({
    clock: { now: () => h.clock.now() },
    issuer: `${uiOrigin}/identity`,
  });
  h = await openHarness({ ...manyChanges, directory: () => fake });
  nobody = await h.person('Nobody');
  fake.person(nobody.subject, { roles: [] });
  const expiresAt = h.clock.now() + 100 * minute;
  fake.token(nobody.accessToken, { subject: nobody.subject, clientId: 'postern-web', expiresAt });
  fake.token('token-of-nobody', {
    subject: nobody.subject,
    expiresAt,
    scopes: ['env:read', 'repos:read', 'sites:read'],
  });
});
afterAll(() => h.close());

/** Who I am, what an upload may be, and what is mine: seeing it and ending it. */
const open = (name: string) =>
  name.startsWith('GET /me/') ||
  [
    'GET /auth/context',
    'GET /sites/capabilities',
    'DELETE /me/tokens/{id}',
    'POST /me/tokens/revoke-all',
    'POST /me/notices/{id}/read',
    'DELETE /me/clients/{id}',
    'POST /me/passkeys/options',
    'POST /me/passkeys',
    'PATCH /me/passkeys/{id}',
    'DELETE /me/passkeys/{id}',
    'DELETE /me/sessions',
    'DELETE /me/sessions/{id}',
    'DELETE /me/connections/{slug}',
    'POST /me/agents/sessions/{id}/end',
    'POST /me/password',
  ].includes(name);

test('without a role, every route but those of one’s own account refuses a session and a token, and nothing changes', async () => {
  const before = await contents(h);
  for (const { method, path, policy } of h.app.routes) {
    if (typeof policy.callers === 'string') continue;
    const name = `${method} ${path}`;
    // Below, because it needs no valid body, and so succeeds.
    if (name === 'POST /me/recovery-codes') continue;
    const refusal = policy.role === 'admin' ? 'forbidden_role' : 'role_required';
    for (const as of [nobody, 'Bearer token-of-nobody']) {
      const kind = as === nobody ? 'session' : 'access_token';
      if (!policy.callers.includes(kind) || (kind === 'access_token' && policy.tokenScope !== undefined))
        continue;
      if (kind === 'access_token' && policy.scope?.endsWith(':write')) continue;
      const { error } = await h.call(method, absentPath(path), {
        as,
        ...(method === 'GET' ? {} : { body: {} }),
      });
      const isRefused = ['role_required', 'forbidden_role'].includes(error?.code);
      expect([name, kind, isRefused ? error.code : 'open']).toEqual([
        name,
        kind,
        open(name) ? 'open' : refusal,
      ]);
    }
  }
  // A person without a role may begin to create a passkey.
  const { passkey_challenges, passkey_handles } = before;
  expect({ ...(await contents(h)), passkey_challenges, passkey_handles }).toEqual(before);
  expect((await h.call('POST', '/me/recovery-codes', { as: nobody })).status).toBe(200);
});
