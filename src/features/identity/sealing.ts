import { createHmac } from 'node:crypto';
import type { Random } from '../../core/ids.ts';
import { equalInConstantTime, openText, sealingKey, sealText } from '../../platform/sealed-text.ts';

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
  const ciphers = keys.map((key) => sealingKey('postern-seal', key));
  const [first] = ciphers;
  if (first === undefined) throw new Error('ENCRYPTION_KEY holds no key.');
  return {
    seal: (text, context) => `v1.${sealText(first, text, context, random.bytes(12)).toString('base64url')}`,
    open(sealed, context) {
      const opened = openText(ciphers, Buffer.from(sealed.slice(3), 'base64url'), context);
      if (opened === undefined)
        throw new Error('A sealed value opens under none of the keys in ENCRYPTION_KEY.');
      return opened;
    },
  };
}

/** HMAC-SHA-256, base64url. `label` separates the uses of one secret. */
export function mac(secret: string, label: string, text: string): string {
  return createHmac('sha256', secret).update(`${label}\0${text}`).digest('base64url');
}

/** True when any secret of the list signed `text`. Constant time for each secret. */
export function isMacOfAny(secrets: readonly string[], label: string, text: string, given: string): boolean {
  return secrets.some((secret) => equalInConstantTime(mac(secret, label, text), given));
}
