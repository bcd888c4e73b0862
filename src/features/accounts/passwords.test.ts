import { describe, expect, test } from 'vitest';
import { createPasswords } from './passwords.ts';

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
