import fc from 'fast-check';
import { expect, test } from 'vitest';
import { systemRandom } from '../../core/ids.ts';
import { checksum, digestOf, keyFormat } from './key-value.ts';

const format = keyFormat('app');

test('KF-01 a thousand keys of each type share prefix and length and never repeat', () => {
  for (const type of ['personal', 'service'] as const) {
    const values = Array.from({ length: 1_000 }, () => format.generate(type, systemRandom).value);
    expect(new Set(values).size).toBe(1_000);
    for (const value of values) {
      expect(value).toMatch(type === 'personal' ? /^app_pat_[0-9A-Za-z]{50}$/ : /^app_svc_[0-9A-Za-z]{50}$/);
      expect(format.parse(value)).toEqual({ kind: 'key', type, id: value.slice(8, 20) });
    }
  }
});

test('the checksum is CRC-32 (IEEE) in base62, padded with 0', () => {
  // 0xCBF43926 is the published check value of CRC-32 over "123456789".
  const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
  const decoded = checksum('123456789')
    .split('')
    .reduce((sum, letter) => sum * 62 + digits.indexOf(letter), 0);
  expect(decoded).toBe(0xcbf43926);
  expect(checksum('')).toBe('000000');
});

test('KF-02 a flipped character, a cut or another prefix makes a value malformed', () => {
  const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
  fc.assert(
    fc.property(fc.nat(57), fc.nat(61), fc.boolean(), (position, letter, isPersonal) => {
      const { value } = format.generate(isPersonal ? 'personal' : 'service', systemRandom);
      const flipped = value.slice(0, position) + alphabet.charAt(letter) + value.slice(position + 1);
      expect(format.parse(flipped).kind).toBe(flipped === value ? 'key' : 'malformed');
      expect(format.parse(value.slice(0, position)).kind).toBe('malformed');
      const swapped = isPersonal ? value.replace('pat', 'svc') : value.replace('svc', 'pat');
      expect(format.parse(swapped).kind).toBe('malformed');
    }),
    { numRuns: 500 },
  );
});

test('KF-07 random text is malformed and never throws', () => {
  fc.assert(
    fc.property(
      fc.oneof(fc.string({ maxLength: 200 }), fc.string({ unit: 'binary', maxLength: 80 })),
      (text) => {
        expect(format.parse(text).kind).toBe('malformed');
        expect(format.parse(`app_pat_${text}`).kind).toBe('malformed');
      },
    ),
    { numRuns: 10_000 },
  );
});

test('values of an older deployment are recognised without a checksum', () => {
  expect(format.parse(`app_svc_${'0af3'.repeat(10)}`)).toEqual({ kind: 'older', type: 'service' });
  expect(format.parse(`app_svc_${'0AF3'.repeat(10)}`).kind).toBe('malformed');
});

test('another product word makes another prefix', () => {
  const other = keyFormat('acme');
  const { value } = other.generate('service', systemRandom);
  expect(value.startsWith('acme_svc_')).toBe(true);
  expect(format.parse(value).kind).toBe('malformed');
});

test('key-shaped text is found inside other text', () => {
  const { value } = format.generate('personal', systemRandom);
  expect(format.findAll(`/x?token=${value}&y=1`)).toEqual([value]);
  expect(format.findAll('/app_pat_short')).toEqual([]);
  // Also where what looks like another one ends in its first letters.
  expect(format.findAll(`app_pat_${'x'.repeat(20)}${value}`)).toContain(value);
});

test('values that may be keys are found in prose, without the letters that follow them', () => {
  const { value } = format.generate('personal', systemRandom);
  const older = `app_svc_${'0af3'.repeat(10)}`;
  expect(format.valuesIn(`a ${value}abc and ${older}xyz, not app_pat_${'X'.repeat(50)}`)).toEqual([
    value,
    older,
  ]);
  expect(format.valuesIn(`app_svc_${'0af3'.repeat(10).slice(1)} ${older.toUpperCase()}`)).toEqual([]);
});

test('the digest is SHA-256 of the whole value', () => {
  expect(digestOf('abc')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
});
