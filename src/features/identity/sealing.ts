import { createHmac } from 'node:crypto';
import type { Random } from '../../core/ids.ts';
import {
  equalInConstantTime,
  openText,
  sealingKey,
  sealText,
  secretDigest,
} from '../../platform/sealed-text.ts';

/**
 * Secrets at rest: AES-256-GCM under the ENCRYPTION_KEY list. The first key encrypts, all decrypt, so a key is
 * rotated by putting a new one in front (contract 1). Sealed text begins with a mark of its key, so that what waits to
 * be sealed anew is found without opening everything (decision 0026).
 */
export type Sealer = {
  /** How everything begins that is sealed under the first key. */
  readonly mark: string;
  /** `context` names what is sealed; a sealed text opens only under the same context, so rows cannot be swapped. */
  seal(text: string, context: string): string;
  /** Throws when no key opens it. */
  open(sealed: string, context: string): string;
};

export function createSealer(keys: readonly string[], random: Random): Sealer {
  const ciphers = keys.map((key) => sealingKey('postern-seal', key));
  const [first] = ciphers;
  if (first === undefined) throw new Error('ENCRYPTION_KEY holds no key.');
  // 48 bits of a hash of a key that nobody can guess: they tell keys apart and say nothing of them.
  const mark = `v2.${secretDigest(`postern-seal-mark:${first.toString('hex')}`).slice(0, 8)}.`;
  return {
    mark,
    seal: (text, context) =>
      `${mark}${sealText(first, text, context, random.bytes(12)).toString('base64url')}`,
    open(sealed, context) {
      const body = shape.exec(sealed)?.[1] ?? '';
      const opened = openText(ciphers, Buffer.from(body, 'base64url'), context);
      if (opened === undefined) throw new SealedOtherwise();
      return opened;
    },
  };
}

/** `v1.` had no mark. */
const shape = /^(?:v1|v2\.[A-Za-z0-9_-]{8})\.([A-Za-z0-9_-]+)$/;

/** The key it was sealed under is not in the list: not yet, or not any more. */
export class SealedOtherwise extends Error {
  constructor() {
    super('A sealed value opens under none of the keys in ENCRYPTION_KEY.');
    this.name = 'SealedOtherwise';
  }
}

/** What `open` answers; undefined for what no key opens. */
export function openedOrNot<T>(open: () => T): T | undefined {
  try {
    return open();
  } catch (error) {
    if (error instanceof SealedOtherwise) return undefined;
    throw error;
  }
}

/** What `sealer` sealed under an older key, sealed under the first; undefined for what no key opens, which stays as it is. */
export function sealAnew(sealer: Sealer, sealed: string, context: string): string | undefined {
  return openedOrNot(() => sealer.seal(sealer.open(sealed, context), context));
}

/** HMAC-SHA-256, base64url. `label` separates the uses of one secret. */
export function mac(secret: string, label: string, text: string): string {
  return createHmac('sha256', secret).update(`${label}\0${text}`).digest('base64url');
}

/** True when any secret of the list signed `text`. Constant time for each secret. */
export function isMacOfAny(secrets: readonly string[], label: string, text: string, given: string): boolean {
  return secrets.some((secret) => equalInConstantTime(mac(secret, label, text), given));
}
