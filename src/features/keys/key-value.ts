import { hash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { KeyType } from '../../core/caller.ts';
import { mayHoldKey } from '../../core/key-shape.ts';
import { base62Alphabet, type Random, randomBase62 } from '../../core/ids.ts';

/**
 * The value of a key (contract 4): `app_pat_` or `app_svc_`, 12 characters of public id, 32 of secret
 * (190 bits) and 6 of checksum: CRC-32 (IEEE 802.3) over the ASCII of all before it, in base62, padded with 0. The token of
 * an upload of an agent, `app_upl_`, has the same form, so that everything that finds keys finds it. It is no key. An exchanged
 * token, `app_fed_`, has the form too. It acts as a service key for some minutes; its id is not that of the key.
 */
const idLength = 12;
const secretLength = 32;
const checksumLength = 6;
const bodyLength = idLength + secretLength + checksumLength;
const olderBodyLength = 40;

export type KeyFormat = {
  prefixOf(type: KeyType): string;
  generate(type: KeyType, random: Random): { value: string; id: string };
  /** A token of a service key that an ID token was exchanged for. */
  generateExchangedToken(random: Random): { value: string; id: string };
  /** The one-time token of an upload. */
  generateUploadToken(random: Random): { value: string; id: string };
  /** The public id of the token of an upload. Undefined: the value is none. */
  uploadIdIn(value: string): string | undefined;
  /** The characters at the position of the public id, without validating the value. */
  idIn(value: string): string;
  /** Validates the form of a value without any I/O. `older` is the form of imported keys, which have no checksum. */
  parse(value: string): ParsedKey;
  /** Every key-shaped text in `text`, for refusing keys in URLs and cookies. */
  findAll(text: string): string[];
  /**
   * Every value in `text` that parse() accepts, and every token of an upload, without the letters that follow it.
   * All places that must let prose and examples pass use this rule: content of sites, names in uploads, digests to look up.
   */
  valuesIn(text: string): string[];
};

export type ParsedKey =
  | { readonly kind: 'key'; readonly type: KeyType; readonly id: string }
  | { readonly kind: 'older'; readonly type: KeyType }
  | { readonly kind: 'exchanged' }
  | { readonly kind: 'malformed' };

/** Minimum number of characters after the prefix for a text to look like a key. */
export const minBodyLength = 20;

/** `product` is the product word in the prefix: `app` unless KEY_PREFIX says otherwise. */
export function keyFormat(product: string): KeyFormat {
  const prefixes = { personal: `${product}_pat_`, service: `${product}_svc_` };
  const exchangedPrefix = `${product}_fed_`;
  const uploadPrefix = `${product}_upl_`;
  // A look-ahead also finds a key that begins inside another match.
  const anywhere = new RegExp(`(?=(${product}_(?:pat|svc|fed|upl)_[0-9A-Za-z]{${minBodyLength},}))`, 'g');

  function typeOf(value: string): KeyType | undefined {
    if (value.startsWith(prefixes.personal)) return 'personal';
    return value.startsWith(prefixes.service) ? 'service' : undefined;
  }

  function parse(value: string): ParsedKey {
    const type = typeOf(value);
    if (type === undefined) return { kind: isExchanged(value) ? 'exchanged' : 'malformed' };
    const start = prefixes[type].length;
    const body = value.slice(start);
    if (isOlderBody(body)) return { kind: 'older', type };
    const id = idOf(value, prefixes[type]);
    return id === undefined ? { kind: 'malformed' } : { kind: 'key', type, id };
  }

  function generate(prefix: string, random: Random) {
    const id = randomBase62(random, idLength);
    const head = prefix + id + randomBase62(random, secretLength);
    return { value: head + checksum(head), id };
  }

  function isExchanged(value: string): boolean {
    return value.startsWith(exchangedPrefix) && idOf(value, exchangedPrefix) !== undefined;
  }

  function uploadIdIn(value: string): string | undefined {
    return value.startsWith(uploadPrefix) ? idOf(value, uploadPrefix) : undefined;
  }

  const findAll = (text: string) => [...text.matchAll(anywhere)].map(([, found = '']) => found);

  return {
    prefixOf: (type) => prefixes[type],
    generate: (type, random) => generate(prefixes[type], random),
    generateExchangedToken: (random) => generate(exchangedPrefix, random),
    generateUploadToken: (random) => generate(uploadPrefix, random),
    uploadIdIn,
    // All prefixes have the same length.
    idIn: (value) => value.slice(prefixes.personal.length, prefixes.personal.length + idLength),
    parse,
    findAll,
    valuesIn(text) {
      if (!mayHoldKey(text)) return [];
      const start = prefixes.personal.length;
      const values = findAll(text)
        .flatMap((found) => [found.slice(0, start + bodyLength), found.slice(0, start + olderBodyLength)])
        .filter((value) => parse(value).kind !== 'malformed' || uploadIdIn(value) !== undefined);
      return [...new Set(values)];
    },
  };
}

/** The public id, when the form behind the prefix and the checksum are right. */
function idOf(value: string, prefix: string): string | undefined {
  const body = value.slice(prefix.length);
  if (body.length !== bodyLength || !isBase62(body)) return undefined;
  const isWhole = checksum(value.slice(0, -checksumLength)) === value.slice(-checksumLength);
  return isWhole ? body.slice(0, idLength) : undefined;
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

/** Older deployments generated 40 lower-case hexadecimal characters. */
function isOlderBody(body: string): boolean {
  return body.length === olderBodyLength && /^[0-9a-f]+$/.test(body);
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
