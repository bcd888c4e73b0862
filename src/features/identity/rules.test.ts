import { describe, expect, test } from 'vitest';
import { minute } from '../../core/clock.ts';
import { systemRandom } from '../../core/ids.ts';
import { FakeClock } from '../../../test/clock.ts';
import { effectiveRoles, wouldBeCircular } from './accounts/effective-roles.ts';
import { createPasswords } from './accounts/passwords.ts';
import { readIntrospection } from './directory/introspection.ts';
import { isSetupTokenValid, generateSetupToken } from './login/setup-token.ts';
import { createSignInThrottle } from './login/throttle.ts';
import { createEncryption, encryptAgain } from './encryption.ts';
import { digestOfSessionValue, generateSessionValue } from './sessions/session-value.ts';

describe('sealed secrets', () => {
  test('open again under their context only, and differ each time', () => {
    const encryption = createEncryption(['key-one'], systemRandom);
    const encrypted = encryption.encrypt('a secret', 'session:1');
    expect(encryption.decrypt(encrypted, 'session:1')).toBe('a secret');
    expect(encryption.encrypt('a secret', 'session:1')).not.toBe(encrypted);
    expect(() => encryption.decrypt(encrypted, 'session:2')).toThrow('None of the keys');
  });

  test('SE-03 sealed under an older key still open; a removed key opens nothing', () => {
    const old = createEncryption(['old'], systemRandom).encrypt('a secret', 'x');
    expect(createEncryption(['new', 'old'], systemRandom).decrypt(old, 'x')).toBe('a secret');
    expect(() => createEncryption(['new'], systemRandom).decrypt(old, 'x')).toThrow('None of the keys');
    const fresh = createEncryption(['new', 'old'], systemRandom).encrypt('a secret', 'x');
    expect(createEncryption(['new'], systemRandom).decrypt(fresh, 'x')).toBe('a secret');
  });

  test('SE-03 what earlier versions sealed, without a mark, opens and is sealed again', () => {
    const encryption = createEncryption(['key'], systemRandom);
    const earlier = `v1.${encryption.encrypt('a secret', 'x').slice(encryption.keyMark.length)}`;
    expect(encryption.decrypt(earlier, 'x')).toBe('a secret');
    expect(encryptAgain(encryption, earlier, 'x')?.startsWith(encryption.keyMark)).toBe(true);
    expect(encryptAgain(createEncryption(['other'], systemRandom), earlier, 'x')).toBeUndefined();
  });

  test('changed by one bit, do not open', () => {
    const encryption = createEncryption(['key'], systemRandom);
    const encrypted = encryption.encrypt('a secret', 'x');
    expect(encrypted.startsWith(encryption.keyMark)).toBe(true);
    const bytes = Buffer.from(encrypted.slice(encryption.keyMark.length), 'base64url');
    for (let at = 0; at < bytes.length; at += 1) {
      const changed = Buffer.from(bytes);
      changed[at] = (changed[at] ?? 0) ^ 1;
      expect(() => encryption.decrypt(`${encryption.keyMark}${changed.toString('base64url')}`, 'x')).toThrow(
        'None of the keys',
      );
    }
  });
});

describe('session values', () => {
  test('SE-03 signed by any secret of the list are known; by no secret of it are not', () => {
    const { value, digest } = generateSessionValue(['one'], systemRandom);
    expect(digestOfSessionValue(['one'], value)).toBe(digest);
    expect(digestOfSessionValue(['two', 'one'], value)).toBe(digest);
    expect(digestOfSessionValue(['two'], value)).toBeUndefined();
  });

  test.each(['', '.', 'abc', `${'A'.repeat(43)}.${'A'.repeat(43)}`, 'A'.repeat(10_000)])(
    'made up ones are refused without a look-up: %#',
    (value) => {
      expect(digestOfSessionValue(['one'], value)).toBeUndefined();
    },
  );
});

describe('setup links', () => {
  test('hold for fifteen minutes, under any secret of the list, and no longer than was promised', () => {
    const clock = new FakeClock();
    const token = generateSetupToken(['one'], clock);
    expect(isSetupTokenValid(['zero', 'one'], clock, token)).toBe(true);
    expect(isSetupTokenValid(['zero'], clock, token)).toBe(false);
    clock.advance(15 * minute - 1);
    expect(isSetupTokenValid(['one'], clock, token)).toBe(true);
    clock.advance(1);
    expect(isSetupTokenValid(['one'], clock, token)).toBe(false);
  });
});

describe('effective roles', () => {
  const tree = [
    { id: 'top', parentId: null, roles: ['admin'] as const },
    { id: 'middle', parentId: 'top', roles: [] },
    { id: 'bottom', parentId: 'middle', roles: ['user'] as const },
    { id: 'other', parentId: null, roles: [] },
  ];

  test('come from the account, its groups and everything above them', () => {
    expect(effectiveRoles([], ['bottom'], tree)).toEqual(['user', 'admin']);
    expect(effectiveRoles(['user'], ['other'], tree)).toEqual(['user']);
    expect(effectiveRoles([], [], tree)).toEqual([]);
    expect(effectiveRoles([], ['gone'], tree)).toEqual([]);
  });

  test('end even where the stored groups form a circle', () => {
    const circle = [
      { id: 'a', parentId: 'b', roles: ['user'] as const },
      { id: 'b', parentId: 'a', roles: [] },
    ];
    expect(effectiveRoles([], ['a'], circle)).toEqual(['user']);
    expect(wouldBeCircular('top', 'bottom', tree)).toBe(true);
    expect(wouldBeCircular('top', 'other', tree)).toBe(false);
  });
});

describe('the sign-in throttle', () => {
  const fail = (throttle: ReturnType<typeof createSignInThrottle>, account: string, address: string) =>
    throttle.attempt(account, address).kind;

  test('gives a right password its try back', () => {
    const throttle = createSignInThrottle({ clock: new FakeClock(), perAccount: 2 });
    for (let count = 0; count < 10; count += 1) {
      const attempt = throttle.attempt('a', '1.1.1.1');
      if (attempt.kind === 'allowed') attempt.succeed();
      expect(attempt.kind).toBe('allowed');
    }
  });

  test('slides: a try is free again exactly when the oldest failure is a quarter of an hour old', () => {
    const clock = new FakeClock();
    const throttle = createSignInThrottle({ clock, perAccount: 2 });
    fail(throttle, 'a', '1.1.1.1');
    clock.advance(10 * minute);
    fail(throttle, 'a', '1.1.1.1');
    expect(throttle.attempt('A', '2.2.2.2')).toMatchObject({ kind: 'refused', retryAfterSeconds: 300 });
    clock.advance(5 * minute);
    expect(fail(throttle, 'a', '1.1.1.1')).toBe('allowed');
    expect(fail(throttle, 'a', '1.1.1.1')).toBe('refused');
  });

  test('ten wrong passwords from a stranger do not lock the owner out, a hundred from anywhere do', () => {
    const throttle = createSignInThrottle({ clock: new FakeClock() });
    for (let count = 0; count < 10; count += 1) fail(throttle, 'a', '6.6.6.6');
    expect(fail(throttle, 'a', '6.6.6.6')).toBe('refused');
    expect(fail(throttle, 'a', '1.1.1.1')).toBe('allowed');
    for (let count = 0; count < 89; count += 1) fail(throttle, 'a', `7.7.7.${count}`);
    expect(fail(throttle, 'a', '8.8.8.8')).toBe('refused');
  });

  test('takes all addresses of one IPv6 customer for one', () => {
    const throttle = createSignInThrottle({ clock: new FakeClock() });
    for (let count = 0; count < 10; count += 1) fail(throttle, 'a', `2001:db8:1:2::${count}`);
    expect(fail(throttle, 'a', '2001:db8:1:2:ffff::1')).toBe('refused');
    expect(fail(throttle, 'a', '2001:db8:1:3::1')).toBe('allowed');
  });

  test('stops one address that tries many accounts, and nobody else', () => {
    const throttle = createSignInThrottle({ clock: new FakeClock(), perAddress: 3 });
    for (const account of ['a', 'b', 'c']) fail(throttle, account, '1.1.1.1');
    expect(fail(throttle, 'd', '1.1.1.1')).toBe('refused');
    expect(fail(throttle, 'd', '2.2.2.2')).toBe('allowed');
  });
});

describe('passwords', () => {
  test('are argon2id, salted, and verified only by the right text', async () => {
    const passwords = createPasswords({ memoryKib: 8, passes: 1 });
    const hash = await passwords.hash('correct horse');
    expect(hash).toMatch(/^\$argon2id\$/);
    expect(await passwords.hash('correct horse')).not.toBe(hash);
    expect(await passwords.verify(hash, 'correct horse')).toBe(true);
    expect(await passwords.verify(hash, 'wrong horse')).toBe(false);
    expect(await passwords.verify(null, 'the stand-in for accounts that do not exist')).toBe(false);
  });
});

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
      expiresAt: 2_000_000,
    });
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
