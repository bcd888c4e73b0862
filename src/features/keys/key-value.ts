import { hash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { KeyType } from '../../core/caller.ts';
import { base62Alphabet, type Random, randomBase62 } from '../../core/ids.ts';

/**
 * The value of a key (contract 4): `app_pat_` or `app_svc_`, 12 characters of public id, 32 of secret
 * (190 bits) and 6 of checksum: CRC-32 (IEEE 802.3) over the ASCII of all before it, in base62, padded with 0.
 */
const idLength = 12;
const secretLength = 32;
const checksumLength = 6;
const bodyLength = idLength + secretLength + checksumLength;

export type KeyFormat = {
  prefixOf(type: KeyType): string;
  mint(type: KeyType, random: Random): { value: string; id: string };
  /** What stands where a value has its public id; nothing is judged. */
  idIn(value: string): string;
  /** Judges a value without any I/O. `older` matches the pattern of imported records, which have no checksum. */
  parse(value: string): ParsedKey;
  /** Every key-shaped text in `text`, for refusing keys in URLs and cookies. */
  findAll(text: string): string[];
};

export type ParsedKey =
  | { readonly kind: 'key'; readonly type: KeyType; readonly id: string }
  | { readonly kind: 'older'; readonly type: KeyType }
  | { readonly kind: 'malformed' };

/** Characters behind the prefix, at the least, of what looks like a key. */
export const shortestBody = 20;

/** `product` is the product word in the prefix: `app` unless KEY_PREFIX says otherwise. */
export function keyFormat(product: string): KeyFormat {
  const prefixes = { personal: `${product}_pat_`, service: `${product}_svc_` };
  // A look-ahead, so that one that begins inside another is found too.
  const anywhere = new RegExp(`(?=(${product}_(?:pat|svc)_[0-9A-Za-z]{${shortestBody},}))`, 'g');

  function typeOf(value: string): KeyType | undefined {
    if (value.startsWith(prefixes.personal)) return 'personal';
    return value.startsWith(prefixes.service) ? 'service' : undefined;
  }

  return {
    prefixOf: (type) => prefixes[type],
    mint(type, random) {
      const id = randomBase62(random, idLength);
      const head = prefixes[type] + id + randomBase62(random, secretLength);
      return { value: head + checksum(head), id };
    },
    // Both prefixes are of one length.
    idIn: (value) => value.slice(prefixes.personal.length, prefixes.personal.length + idLength),
    parse(value) {
      const type = typeOf(value);
      if (type === undefined) return { kind: 'malformed' };
      const start = prefixes[type].length;
      const body = value.slice(start);
      if (isOlderBody(body)) return { kind: 'older', type };
      if (body.length !== bodyLength || !isBase62(body)) return { kind: 'malformed' };
      const head = value.slice(0, -checksumLength);
      if (checksum(head) !== value.slice(-checksumLength)) return { kind: 'malformed' };
      return { kind: 'key', type, id: body.slice(0, idLength) };
    },
    findAll: (text) => [...text.matchAll(anywhere)].map(([, found = '']) => found),
  };
}

/** SHA-256 of the whole value, the only thing that is stored and looked up. */
export function digestOf(value: string): string {
  return hash('sha256', value, 'hex');
}

/** Six base62 characters over the ASCII bytes of `head`. 62^6 > 2^32, so every CRC fits. */
export function checksum(head: string): string {
  let rest = crc32(head);
  let text = '';
  for (let at = 0; at < checksumLength; at++) {
    text = base62Alphabet.charAt(rest % 62) + text;
    rest = Math.floor(rest / 62);
  }
  return text;
}

/** Older deployments minted 40 lower-case hexadecimal characters. */
function isOlderBody(body: string): boolean {
  return body.length === 40 && /^[0-9a-f]{40}$/.test(body);
}

function isBase62(text: string): boolean {
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    const isDigit = code >= 48 && code <= 57;
    const isUpper = code >= 65 && code <= 90;
    const isLower = code >= 97 && code <= 122;
    if (!isDigit && !isUpper && !isLower) return false;
  }
  return true;
}
