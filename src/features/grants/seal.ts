import { createHmac } from 'node:crypto';
import { hour } from '../../core/clock.ts';
import type { Random } from '../../core/ids.ts';
import {
  equalInConstantTime,
  openText,
  sealingKey,
  sealText,
  secretDigest,
} from '../../platform/sealed-text.ts';
import { remembering } from './remembering.ts';

/**
 * What GRANT_SECRET signs and seals (private-access.md 2.2): tickets, the value of a grant's cookie, and every record of
 * ours in the key-value store. Of the list the first signs, all verify. No I/O.
 */
export type GrantSeal = {
  /** Where to return to: readable by nobody, good on one host for an hour. Not stored anywhere (contract 10.4). */
  sealPath(path: string, host: string, now: number): string;
  /** Undefined for what is no ticket of this host, or an old one: a lost ticket means the start page. */
  openPath(ticket: string, host: string, now: number): string | undefined;
  /** A grant's cookie: format version, 256 random bits, their MAC. Nothing of the person (threat T10). */
  mintGrant(): { readonly cookie: string; readonly key: string };
  /** The record's key for a cookie's value; undefined when the value is not one of ours. */
  grantKeyOf(cookie: string): string | undefined;
  /** One value and the key it belongs under: a record that is changed, or moved to another key, reads as none. */
  sign(key: string, text: string): string;
  /** The text, or undefined when none of the secrets signed it for this key. */
  verify(key: string, value: string): string | undefined;
};

export const ticketMs = hour;

const cookieShape = /^1\.([A-Za-z0-9_-]{43})\.([A-Za-z0-9_-]{43})$/;

export function createGrantSeal(secrets: readonly string[], random: Random): GrantSeal {
  const ciphers = secrets.map((secret) => sealingKey('postern-grant-ticket', secret));
  const signers = secrets.map((secret) => sealingKey('postern-grant-mac', secret));
  const [sealing] = ciphers;
  if (sealing === undefined) throw new Error('GRANT_SECRET holds no secret.');
  const macs = (text: string) =>
    signers.map((key) => createHmac('sha256', key).update(text).digest('base64url'));
  const isSigned = (text: string, given: string) => macs(text).some((mac) => equalInConstantTime(mac, given));
  const knownKeyOf = remembering((_name, cookie) => grantKeyOf(cookie));

  function grantKeyOf(cookie: string): string | undefined {
    const [, id, mac] = cookieShape.exec(cookie) ?? [];
    if (id === undefined || mac === undefined || !isSigned(`cookie\0${id}`, mac)) return undefined;
    return grantKey(id);
  }

  function verify(key: string, value: string): string | undefined {
    const text = value.slice(44);
    return value[43] === ' ' && isSigned(`record\0${key}\0${text}`, value.slice(0, 43)) ? text : undefined;
  }

  return {
    sealPath: (path, host, now) =>
      sealText(sealing, `${now + ticketMs} ${path}`, host, random.bytes(12)).toString('base64url'),
    openPath(ticket, host, now) {
      const opened = openText(ciphers, Buffer.from(ticket, 'base64url'), host) ?? '';
      const [, endsAt, path] = /^(\d{1,15}) (.*)$/s.exec(opened) ?? [];
      return Number(endsAt) > now ? path : undefined;
    },
    mintGrant() {
      const id = Buffer.from(random.bytes(32)).toString('base64url');
      return { cookie: `1.${id}.${macs(`cookie\0${id}`)[0]}`, key: grantKey(id) };
    },
    // The parts of a page all come with the same one, and the same bytes have the same MAC.
    grantKeyOf: (cookie) => knownKeyOf(cookie, cookie),
    sign: (key, text) => `${macs(`record\0${key}\0${text}`)[0]} ${text}`,
    verify,
  };
}

/** Where a one-time code is kept: its digest, so that reading the store opens nothing. */
export function codeKeyOf(code: string): string {
  return `grant-code:${secretDigest(code)}`;
}

function grantKey(id: string): string {
  return `grant:${secretDigest(id)}`;
}
