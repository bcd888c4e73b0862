import { createCipheriv, createDecipheriv, createHash, timingSafeEqual } from 'node:crypto';

/**
 * Text sealed by AES-256-GCM (NIST SP 800-38D) under a list of keys, so that a key can be rotated: the first seals, all
 * open. No key is made or kept here, and no use of a key is known here.
 */
const nonceBytes = 12;
const tagBytes = 16;

/** The 32 bytes AES-256 wants, of a secret of any form. `use` keeps what is sealed for one purpose from another. */
export function sealingKey(use: string, secret: string): Buffer {
  return createHash('sha256').update(`${use}:${secret}`).digest();
}

/** Nonce, tag and body. `context` names what is sealed: it opens only under the same. `nonce`: 12 fresh random bytes. */
export function sealText(key: Buffer, text: string, context: string, nonce: Uint8Array): Buffer {
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(context));
  const body = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
  return Buffer.concat([nonce, cipher.getAuthTag(), body]);
}

/** Undefined when none of the keys sealed it under this context. */
export function openText(keys: readonly Buffer[], sealed: Buffer, context: string): string | undefined {
  for (const key of keys) {
    const opened = tryOpen(key, sealed, context);
    if (opened !== undefined) return opened;
  }
  return undefined;
}

function tryOpen(key: Buffer, sealed: Buffer, context: string): string | undefined {
  // A tag that is cut short would be taken for a whole one, and be guessed.
  if (sealed.length < nonceBytes + tagBytes) return undefined;
  try {
    const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(0, nonceBytes))
      .setAAD(Buffer.from(context))
      .setAuthTag(sealed.subarray(nonceBytes, nonceBytes + tagBytes));
    return (
      decipher.update(sealed.subarray(nonceBytes + tagBytes), undefined, 'utf8') + decipher.final('utf8')
    );
  } catch {
    // Another key of the list may be the right one.
    return undefined;
  }
}

export function equalInConstantTime(left: string, right: string): boolean {
  const a = Buffer.from(left);
  const b = Buffer.from(right);
  return a.length === b.length && timingSafeEqual(a, b);
}

/** SHA-256, base64url: how a secret of ours is looked up without being kept. */
export function secretDigest(secret: string): string {
  return createHash('sha256').update(secret).digest('base64url');
}
