import { randomBytes, randomInt } from 'node:crypto';

/** Cryptographic randomness, injected so that tests can repeat a run. */
export type Random = { bytes(count: number): Uint8Array; int(exclusiveMax: number): number };

export const systemRandom: Random = { bytes: (count) => randomBytes(count), int: (max) => randomInt(max) };

export const base62Alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** `length` characters of base62, uniform: every character carries log2(62) ≈ 5.95 bits. */
export function randomBase62(random: Random, length: number): string {
  return randomFrom(random, base62Alphabet, length);
}

/** `length` characters of `alphabet` (at most 256 characters), uniform. */
export function randomFrom(random: Random, alphabet: string, length: number): string {
  // Bytes at or above the largest multiple would favour the first letters, so they are discarded.
  const even = 256 - (256 % alphabet.length);
  let text = '';
  while (text.length < length) {
    for (const byte of random.bytes(length)) {
      if (byte < even && text.length < length) text += alphabet[byte % alphabet.length];
    }
  }
  return text;
}

export type IdPrefix =
  | 'usr'
  | 'grp'
  | 'repo'
  | 'rul'
  | 'evt'
  | 'psk'
  | 'ses'
  | 'agd'
  | 'agp'
  | 'mcn'
  | 'ags'
  | 'ntc'
  | 'req'
  | 'upl'
  | 'grt'
  | 'mdl'
  | 'env'
  | 'bld'
  | 'job'
  | 'art';

/** An opaque id such as `usr_4fK…`: 20 characters of base62, 119 bits. */
export function newId(random: Random, prefix: IdPrefix): string {
  return `${prefix}_${randomBase62(random, 20)}`;
}
