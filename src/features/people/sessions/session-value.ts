import type { Random } from '../../../core/ids.ts';
import { isMacOfAny, mac } from '../../../platform/encryption.ts';
import { secretDigest } from '../../../platform/encrypted-text.ts';

/**
 * The value of a session cookie: 256 random bits, a dot, and their MAC under SESSION_SECRET. The MAC lets a forged
 * value be refused without a database read; the table holds only the SHA-256 of the random part.
 */
const label = 'postern-session';
const valueShape = /^([A-Za-z0-9_-]{43})\.([A-Za-z0-9_-]{43})$/;

export function generateSessionValue(
  secrets: readonly string[],
  random: Random,
): { value: string; digest: string } {
  const id = Buffer.from(random.bytes(32)).toString('base64url');
  const [signing] = secrets;
  if (signing === undefined) throw new Error('SESSION_SECRET holds no secret.');
  return { value: `${id}.${mac(signing, label, id)}`, digest: secretDigest(id) };
}

/** The digest to look up, or undefined when this installation did not issue the value. Does no I/O. */
export function digestOfSessionValue(secrets: readonly string[], value: string): string | undefined {
  const match = valueShape.exec(value);
  if (match?.[1] === undefined || match[2] === undefined) return undefined;
  return isMacOfAny(secrets, label, match[1], match[2]) ? secretDigest(match[1]) : undefined;
}
