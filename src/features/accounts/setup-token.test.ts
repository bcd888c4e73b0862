import { describe, expect, test } from 'vitest';
import { FakeClock } from '../../../test/clock.ts';
import { minute } from '../../core/clock.ts';
import { generateSetupToken, isSetupTokenValid } from './setup-token.ts';

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
