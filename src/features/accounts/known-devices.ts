import { type Clock, day } from '../../core/clock.ts';
import type { Random } from '../../core/ids.ts';
import { canonicalEmail } from './email.ts';
import { isMacOfAny, mac } from '../../platform/encryption.ts';

/**
 * Recognises browsers that signed in to an account before, so that a stranger's wrong passwords do not lock the owner
 * out (decision 0012). After a correct password the browser gets a cookie for that account: the expiry, a random name,
 * and the MAC of both and the account under SESSION_SECRET. The server stores nothing, and the cookie does not reveal
 * the account. It proves no identity and grants no access: it only decides which counter an attempt counts towards.
 */
export type KnownDevices = {
  /** The cookie value after a correct password for `account`, the e-mail that was typed. */
  issue(account: string): string;
  /** The device's random name; null when the cookie is missing, forged, expired or for another account. */
  recognise(account: string, cookie: string | undefined): string | null;
};

export const deviceSeconds = (180 * day) / 1000;

const label = 'postern-device-cookie';
const shape = /^(\d{10})\.([A-Za-z0-9_-]{22})\.([A-Za-z0-9_-]{43})$/;

export function createKnownDevices(deps: {
  clock: Clock;
  random: Random;
  /** The first signs, all verify. */
  secrets: readonly string[];
}): KnownDevices {
  const { clock, random, secrets } = deps;
  const [secret] = secrets;
  if (secret === undefined) throw new Error('SESSION_SECRET holds no secret.');
  const said = (account: string, expires: string, name: string) =>
    `${expires}.${name}.${canonicalEmail(account)}`;
  return {
    issue(account) {
      const expires = String(Math.floor(clock.now() / 1000) + deviceSeconds);
      const name = Buffer.from(random.bytes(16)).toString('base64url');
      return `${expires}.${name}.${mac(secret, label, said(account, expires, name))}`;
    },
    recognise(account, cookie) {
      const [, expires = '', name = '', signature = ''] = shape.exec(cookie ?? '') ?? [];
      if (name === '' || Number(expires) * 1000 <= clock.now()) return null;
      return isMacOfAny(secrets, label, said(account, expires, name), signature) ? name : null;
    },
  };
}
