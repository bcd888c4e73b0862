import { type Clock, day } from '../../../core/clock.ts';
import type { Random } from '../../../core/ids.ts';
import { isMacOfAny, mac } from '../sealing.ts';

/**
 * Knows the browsers that somebody signed in from before, so that a stranger's wrong passwords do not keep the owner
 * out (decision 0012). A right password gives the browser a cookie that says so, for one account: the expiry, a random
 * name and their MAC together with the account, under SESSION_SECRET. Nothing is stored, and the account cannot be
 * read from it. It proves no identity and opens nothing: it only changes where tries are counted.
 */
export type KnownDevices = {
  /** What the browser keeps after a right password for `account`, the e-mail that was typed. */
  issue(account: string): string;
  /** The device's random name; null when the cookie is missing, made up, expired or of another account. */
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
    `${expires}.${name}.${account.toLowerCase()}`;
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
