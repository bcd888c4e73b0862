import { describe, expect, test } from 'vitest';
import { systemRandom } from '../core/ids.ts';
import { createEncryption, encryptAgain } from './encryption.ts';

describe('encrypted secrets', () => {
  test('open again under their context only, and differ each time', () => {
    const encryption = createEncryption(['key-one'], systemRandom);
    const encrypted = encryption.encrypt('a secret', 'session:1');
    expect(encryption.decrypt(encrypted, 'session:1')).toBe('a secret');
    expect(encryption.encrypt('a secret', 'session:1')).not.toBe(encrypted);
    expect(() => encryption.decrypt(encrypted, 'session:2')).toThrow('None of the keys');
  });

  test('SE-03 secrets under an older key still open; a removed key opens nothing', () => {
    const old = createEncryption(['old'], systemRandom).encrypt('a secret', 'x');
    expect(createEncryption(['new', 'old'], systemRandom).decrypt(old, 'x')).toBe('a secret');
    expect(() => createEncryption(['new'], systemRandom).decrypt(old, 'x')).toThrow('None of the keys');
    const fresh = createEncryption(['new', 'old'], systemRandom).encrypt('a secret', 'x');
    expect(createEncryption(['new'], systemRandom).decrypt(fresh, 'x')).toBe('a secret');
  });

  test('SE-03 what earlier versions encrypted, without a mark, opens and is encrypted again', () => {
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
