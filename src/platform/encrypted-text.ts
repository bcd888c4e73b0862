import { createCipheriv, createDecipheriv, createHash, timingSafeEqual } from 'node:crypto';

/**
 * Encrypts text with AES-256-GCM (NIST SP 800-38D) under a list of keys, so that keys can be rotated: the first key
 * encrypts, every key can decrypt. It leaves generating, storing and choosing keys to its callers.
 */
const nonceBytes = 12;
const tagBytes = 16;

/**
 * Derives the 32 bytes of an AES-256 key from a secret of any form. `use` separates the purposes: one cannot decrypt
 * another's text.
 */
export function encryptionKeyOf(use: string, secret: string): Buffer {
  return createHash('sha256').update(`${use}:${secret}`).digest();
}

/**
 * Nonce, tag and ciphertext. `context` names the content: the text can be decrypted only with the same context. `nonce`:
 * 12 new random bytes.
 */
export function encryptText(key: Buffer, text: string, context: string, nonce: Uint8Array): Buffer {
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(context));
  const body = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
  return Buffer.concat([nonce, cipher.getAuthTag(), body]);
}

/** Undefined when none of the keys encrypted it with this context. */
export function decryptText(keys: readonly Buffer[], encrypted: Buffer, context: string): string | undefined {
  for (const key of keys) {
    const opened = tryOpen(key, encrypted, context);
    if (opened !== undefined) return opened;
  }
  return undefined;
}

function tryOpen(key: Buffer, encrypted: Buffer, context: string): string | undefined {
  // A truncated tag would be accepted as a whole one, and could be guessed.
  if (encrypted.length < nonceBytes + tagBytes) return undefined;
  try {
    const decipher = createDecipheriv('aes-256-gcm', key, encrypted.subarray(0, nonceBytes))
      .setAAD(Buffer.from(context))
      .setAuthTag(encrypted.subarray(nonceBytes, nonceBytes + tagBytes));
    return (
      decipher.update(encrypted.subarray(nonceBytes + tagBytes), undefined, 'utf8') + decipher.final('utf8')
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

/** SHA-256, base64url: for the lookup of a secret that is not stored itself. */
export function secretDigest(secret: string): string {
  return createHash('sha256').update(secret).digest('base64url');
}
