import { describe, expect, test } from 'vitest';
import { systemRandom } from '../../../core/ids.ts';
import { nameFor, namePattern, requireName } from './names.ts';

describe('a name that is made up', () => {
  test.each(['main', 'feature/Search_2', 'ünïcode', '---', 'a', 'x'.repeat(250), `${'a'.repeat(39)}-b`])(
    'of the branch %s is a DNS label',
    (branch) => {
      expect(nameFor(branch, systemRandom)).toMatch(namePattern);
    },
  );

  test('begins with the branch', () => {
    expect(nameFor('feature/Search_2', systemRandom)).toMatch(/^feature-search-2-[a-z2-9]{6}$/);
  });
});

describe('a chosen name', () => {
  test.each(['abc', 'shop-1', 'a'.repeat(50)])('%s is taken', (name) => {
    expect(requireName(name)).toBe(name);
  });
  test.each([
    'ab',
    'a'.repeat(51),
    'Shop',
    '-shop',
    'shop-',
    'a.b',
    'env_123',
    'policy',
    'branches',
    'config-preview',
    'new',
  ])('%s is refused with the fix', (name) => {
    expect(() => requireName(name)).toThrow(expect.objectContaining({ code: 'invalid_name' }));
  });
});
