import { createHmac } from 'node:crypto';
import type { Random } from '../core/ids.ts';
import {
  equalInConstantTime,
  decryptText,
  encryptionKeyOf,
  encryptText,
  secretDigest,
} from './encrypted-text.ts';

/**
 * Encrypts secrets at rest: AES-256-GCM under the ENCRYPTION_KEY list. The first key encrypts, all decrypt, so
 * administrators rotate keys by adding a new one in front (contract 1). Encrypted text begins with a mark of its key, so
 * that records under older keys are found without decrypting everything (decision 0026).
 */
export type Encryption = {
  /** The prefix of everything that is encrypted under the first key. */
  readonly keyMark: string;
  /** `context` names what is encrypted; decrypt() succeeds only with the same context, so rows cannot be swapped. */
  encrypt(text: string, context: string): string;
  /** Throws when no key decrypts it. */
  decrypt(encrypted: string, context: string): string;
};

export function createEncryption(keys: readonly string[], random: Random): Encryption {
  const first = encryptionKeyOf('postern-seal', firstKey(keys));
  const ciphers = [first, ...keys.slice(1).map((key) => encryptionKeyOf('postern-seal', key))];
  // 48 bits of a hash of a random key: they distinguish keys and reveal nothing about them.
  const mark = `v2.${secretDigest(`postern-seal-mark:${first.toString('hex')}`).slice(0, 8)}.`;
  return {
    keyMark: mark,
    encrypt: (text, context) =>
      `${mark}${encryptText(first, text, context, random.bytes(12)).toString('base64url')}`,
    decrypt(encrypted, context) {
      const body = shape.exec(encrypted)?.[1] ?? '';
      const opened = decryptText(ciphers, Buffer.from(body, 'base64url'), context);
      if (opened === undefined) throw new UnknownEncryptionKey();
      return opened;
    },
  };
}

/** The key in use; the others only decrypt. @throws Error when ENCRYPTION_KEY holds no key */
export function firstKey(keys: readonly string[]): string {
  const [first] = keys;
  if (first === undefined) throw new Error('ENCRYPTION_KEY holds no key.');
  return first;
}

/** `v1.` had no mark. */
const shape = /^(?:v1|v2\.[A-Za-z0-9_-]{8})\.([A-Za-z0-9_-]+)$/;

/** The text was encrypted under a key that is not in the list: not yet, or no longer. */
export class UnknownEncryptionKey extends Error {
  constructor() {
    super('None of the keys in ENCRYPTION_KEY decrypts a stored value.');
    this.name = 'UnknownEncryptionKey';
  }
}

/** The result of `open`; undefined when no key decrypts the text. */
export function decryptedOrNot<T>(open: () => T): T | undefined {
  try {
    return open();
  } catch (error) {
    if (error instanceof UnknownEncryptionKey) return undefined;
    throw error;
  }
}

/** Encrypts again, under the first key, a text that an older key encrypted; undefined when no key decrypts it. */
export function encryptAgain(encryption: Encryption, encrypted: string, context: string): string | undefined {
  return decryptedOrNot(() => encryption.encrypt(encryption.decrypt(encrypted, context), context));
}

/** HMAC-SHA-256, base64url. `label` separates the uses of one secret. */
export function mac(secret: string, label: string, text: string): string {
  return createHmac('sha256', secret).update(`${label}\0${text}`).digest('base64url');
}

/** True when `given` is the MAC of `text` under any secret of the list. Constant time for each secret. */
export function isMacOfAny(secrets: readonly string[], label: string, text: string, given: string): boolean {
  return secrets.some((secret) => equalInConstantTime(mac(secret, label, text), given));
}
