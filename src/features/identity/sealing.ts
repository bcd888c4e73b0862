import { createCipheriv, createDecipheriv, createHash, createHmac, timingSafeEqual } from 'node:crypto';
import type { Random } from '../../core/ids.ts';

/**
 * Secrets at rest: AES-256-GCM under the ENCRYPTION_KEY list. The first key encrypts, all decrypt, so a key is
 * rotated by putting a new one in front (contract 1).
 */
export type Sealer = {
  /** `context` names what is sealed; a sealed text opens only under the same context, so rows cannot be swapped. */
  seal(text: string, context: string): string;
  /** Throws when no key opens it. */
  open(sealed: string, context: string): string;
};

export function createSealer(keys: readonly string[], random: Random): Sealer {
  if (keys.length === 0) throw new Error('ENCRYPTION_KEY holds no key.');
  // Hashed, so that a key of any form gives the 32 bytes AES-256 wants.
  const ciphers = keys.map((key) => createHash('sha256').update(`postern-seal:${key}`).digest());
  return {
    seal(text, context) {
      const nonce = random.bytes(12);
      // A list with at least one entry, checked above.
      const cipher = createCipheriv('aes-256-gcm', ciphers[0] as Buffer, nonce).setAAD(Buffer.from(context));
      const body = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
      return `v1.${Buffer.concat([nonce, cipher.getAuthTag(), body]).toString('base64url')}`;
    },
    open(sealed, context) {
      const bytes = Buffer.from(sealed.slice(3), 'base64url');
      for (const key of ciphers) {
        const opened = tryOpen(key, bytes, context);
        if (opened !== undefined) return opened;
      }
      throw new Error('A sealed value opens under none of the keys in ENCRYPTION_KEY.');
    },
  };
}

function tryOpen(key: Buffer, bytes: Buffer, context: string): string | undefined {
  try {
    const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, 12))
      .setAAD(Buffer.from(context))
      .setAuthTag(bytes.subarray(12, 28));
    return decipher.update(bytes.subarray(28), undefined, 'utf8') + decipher.final('utf8');
  } catch {
    // Another key of the list may be the right one; the caller fails when none is.
    return undefined;
  }
}

/** HMAC-SHA-256, base64url. `label` separates the uses of one secret. */
export function mac(secret: string, label: string, text: string): string {
  return createHmac('sha256', secret).update(`${label}\0${text}`).digest('base64url');
}

/** True when any secret of the list signed `text`. Constant time for each secret. */
export function isMacOfAny(secrets: readonly string[], label: string, text: string, given: string): boolean {
  return secrets.some((secret) => equalInConstantTime(mac(secret, label, text), given));
}

function equalInConstantTime(left: string, right: string): boolean {
  const a = Buffer.from(left);
  const b = Buffer.from(right);
  return a.length === b.length && timingSafeEqual(a, b);
}

/** SHA-256, base64url: how a secret of ours is looked up without being kept. */
export function digestOf(secret: string): string {
  return createHash('sha256').update(secret).digest('base64url');
}
