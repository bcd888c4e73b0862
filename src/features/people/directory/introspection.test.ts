import { describe, expect, test } from 'vitest';
import { readIntrospection } from './introspection.ts';

describe('an introspection answer', () => {
  const now = 1_000_000;
  const issuer = 'https://id.example';
  const good = {
    active: true,
    iss: issuer,
    sub: 'abc',
    client_id: 'cli',
    token_type: 'Bearer',
    scope: 'openid admin',
    exp: 2_000,
  };

  test('counts when everything in it is right', () => {
    expect(readIntrospection(good, { issuer, now })).toEqual({
      kind: 'active',
      issuer,
      subject: 'abc',
      clientId: 'cli',
      scopes: ['openid', 'admin'],
      audiences: [],
      grantId: null,
      expiresAt: 2_000_000,
    });
  });

  test.each([
    [{ aud: 'one', postern_grant: 'grant', sid: 'session' }, ['one'], 'grant'],
    [{ aud: ['one', 7, 'two'], sid: 'session' }, ['one', 'two'], 'session'],
    [{ aud: {}, sid: 7 }, [], null],
  ])('%j is for %j', (more, audiences, grantId) => {
    expect(readIntrospection({ ...good, ...more }, { issuer, now })).toMatchObject({ audiences, grantId });
  });

  test.each([
    [{ active: false }, 'inactive'],
    [{ ...good, iss: 'https://evil.example' }, 'inactive'],
    [{ ...good, token_type: undefined }, 'inactive'],
    [{ ...good, token_type: 'DPoP' }, 'inactive'],
    [{ ...good, iss: undefined }, 'inactive'],
    [{ ...good, exp: 999 }, 'inactive'],
    [{ ...good, exp: 1_000 }, 'inactive'],
    [{ ...good, active: 'true' }, 'unavailable'],
    [{ ...good, sub: '' }, 'unavailable'],
    [{ ...good, sub: 7 }, 'unavailable'],
    [{ ...good, exp: '2000' }, 'unavailable'],
    [{ ...good, client_id: null }, 'unavailable'],
    [{ ...good, scope: ['admin'] }, 'unavailable'],
    [{}, 'unavailable'],
  ])('ID-11 %j is never a yes: %s', (answer, kind) => {
    expect(readIntrospection(answer, { issuer, now }).kind).toBe(kind);
  });
});
