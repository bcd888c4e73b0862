import { type Clock, minute } from '../../core/clock.ts';
import { isMacOfAny, mac } from '../../platform/encryption.ts';

/**
 * The secret of the one-time link `{base_url}/setup#token=…`: an expiry and its MAC under SESSION_SECRET, so that
 * `npm start -- admin login-link` can generate one without the database.
 */
const label = 'postern-setup';
const setupTokenMs = 15 * minute;

export function generateSetupToken(secrets: readonly string[], clock: Clock): string {
  const [signing] = secrets;
  if (signing === undefined) throw new Error('SESSION_SECRET holds no secret.');
  const expiry = String(clock.now() + setupTokenMs);
  return `${expiry}.${mac(signing, label, expiry)}`;
}

export function isSetupTokenValid(secrets: readonly string[], clock: Clock, token: string): boolean {
  const match = /^(\d{1,15})\.([A-Za-z0-9_-]{43})$/.exec(token);
  if (match?.[1] === undefined || match[2] === undefined) return false;
  const expiry = Number(match[1]);
  if (!isMacOfAny(secrets, label, match[1], match[2])) return false;
  return clock.now() < expiry && expiry <= clock.now() + setupTokenMs;
}
