import { createHmac } from 'node:crypto';
import { hour } from '../../core/clock.ts';
import type { Random } from '../../core/ids.ts';
import {
  equalInConstantTime,
  decryptText,
  encryptionKeyOf,
  encryptText,
  secretDigest,
} from '../../platform/encrypted-text.ts';
import { type GrantKind, siteGrants } from './grant-kind.ts';
import { memoizeRead } from './memoize-read.ts';

/**
 * What GRANT_SECRET signs and encrypts (private-access.md 2.2): tickets, the value of a grant's cookie, and all our
 * records in the key-value store. The first secret of the list signs; all of them verify. No I/O.
 */
export type GrantSigner = {
  readonly kind: GrantKind;
  /**
   * Encrypts the path to return to. The ticket is valid on one host for an hour, and is not stored anywhere (contract
   * 10.4).
   */
  encryptPath(path: string, host: string, now: number): string;
  /**
   * Undefined when the text is not a ticket of this host, or has expired. Without a ticket the browser goes to the
   * start page.
   */
  decryptPath(ticket: string, host: string, now: number): string | undefined;
  /**
   * The grant cookie for a one-time code: format version, 256 bits that only the code leads to, and their MAC. It contains
   * nothing about the person (threat T10). The process that issues the code knows the grant's key with it, and can end it.
   */
  grantOf(code: string): { readonly cookie: string; readonly key: string };
  /** The key of a one-time code in the store: its digest, so that a reader of the store cannot use the code. */
  codeKeyOf(code: string): string;
  /** The record's key for a cookie's value; undefined when we did not generate the value. */
  grantKeyOf(cookie: string): string | undefined;
  /** Signs a value for the key it is stored under. A record that is changed or moved to another key does not verify. */
  sign(key: string, text: string): string;
  /** The text, or undefined when none of the secrets signed it for this key. */
  verify(key: string, value: string): string | undefined;
};

export const ticketMs = hour;

const cookieShape = /^1\.([A-Za-z0-9_-]{43})\.([A-Za-z0-9_-]{43})$/;

export function createGrantSigner(
  secrets: readonly string[],
  random: Random,
  kind: GrantKind = siteGrants,
): GrantSigner {
  const ciphers = secrets.map((secret) => encryptionKeyOf(`${kind.secretName}-ticket`, secret));
  const signers = secrets.map((secret) => encryptionKeyOf(`${kind.secretName}-mac`, secret));
  const [firstCipher] = ciphers;
  if (firstCipher === undefined) throw new Error('GRANT_SECRET holds no secret.');
  const macs = (text: string) =>
    signers.map((key) => createHmac('sha256', key).update(text).digest('base64url'));
  const isSigned = (text: string, given: string) => macs(text).some((mac) => equalInConstantTime(mac, given));
  const knownKeyOf = memoizeRead((_name, cookie) => grantKeyOf(cookie));

  function grantKeyOf(cookie: string): string | undefined {
    const [, id, mac] = cookieShape.exec(cookie) ?? [];
    if (id === undefined || mac === undefined || !isSigned(`cookie\0${id}`, mac)) return undefined;
    return grantKey(id);
  }

  function grantKey(id: string): string {
    return `${kind.space}grant:${secretDigest(id)}`;
  }

  function verify(key: string, value: string): string | undefined {
    const text = value.slice(44);
    return value[43] === ' ' && isSigned(`record\0${key}\0${text}`, value.slice(0, 43)) ? text : undefined;
  }

  return {
    kind,
    encryptPath: (path, host, now) =>
      encryptText(firstCipher, `${now + ticketMs} ${path}`, host, random.bytes(12)).toString('base64url'),
    decryptPath(ticket, host, now) {
      const opened = decryptText(ciphers, Buffer.from(ticket, 'base64url'), host) ?? '';
      const [, endsAt, path] = /^(\d{1,15}) (.*)$/s.exec(opened) ?? [];
      return Number(endsAt) > now ? path : undefined;
    },
    grantOf(code) {
      const id = secretDigest(`grant of ${code}`);
      return { cookie: `1.${id}.${macs(`cookie\0${id}`)[0]}`, key: grantKey(id) };
    },
    codeKeyOf: (code) => `${kind.space}grant-code:${secretDigest(code)}`,
    // All parts of a page send the same cookie, and the same bytes have the same MAC, so its key is cached.
    grantKeyOf: (cookie) => knownKeyOf(cookie, cookie),
    sign: (key, text) => `${macs(`record\0${key}\0${text}`)[0]} ${text}`,
    verify,
  };
}
