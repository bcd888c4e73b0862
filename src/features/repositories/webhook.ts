import { createHmac } from 'node:crypto';
import type { Random } from '../../core/ids.ts';
import { AppError } from '../../core/errors.ts';
import { equalInConstantTime, secretDigest } from '../../platform/encrypted-text.ts';
import { decryptedOrNot, type Encryption } from '../../platform/encryption.ts';
import type { EncryptedRows } from '../../platform/reencryption.ts';
import type { StoredWebhook, WebhookStore } from './webhook-store.ts';

/**
 * How a git server proves that a webhook is its own: GitHub signs the body with the secret of the repository, GitLab sends
 * the secret itself. Postern generates the secret and shows it once.
 */
export type Proof =
  | { readonly kind: 'signature'; readonly signature: string; readonly body: AsyncIterable<Uint8Array> }
  | { readonly kind: 'token'; readonly token: string };

/** The largest body that GitHub sends. It is hashed as it arrives, and never kept. */
export const maxDeliveryBytes = 25 * 1024 * 1024;

/** 256 bits, in characters that every git server takes. */
export function newWebhookSecret(random: Random): string {
  return Buffer.from(random.bytes(32)).toString('base64url');
}

/** @throws AppError body_too_large */
export async function isProven(proof: Proof, secret: string): Promise<boolean> {
  if (proof.kind === 'token') return equalInConstantTime(secretDigest(proof.token), secretDigest(secret));
  const hmac = createHmac('sha256', secret);
  let bytes = 0;
  for await (const chunk of proof.body) {
    bytes += chunk.length;
    if (bytes > maxDeliveryBytes) throw new AppError('body_too_large');
    hmac.update(chunk);
  }
  return equalInConstantTime(`sha256=${hmac.digest('hex')}`, proof.signature);
}

export function encryptWebhook(encryption: Encryption, repositoryId: string, secret: string): StoredWebhook {
  return { repositoryId, encrypted: encryption.encrypt(secret, contextOf(repositoryId)) };
}

/** Undefined: the repository has none, or none of the keys in ENCRYPTION_KEY decrypts it. */
export async function readWebhookSecret(
  store: Pick<WebhookStore, 'find'>,
  encryption: Encryption,
  repositoryId: string,
): Promise<string | undefined> {
  const stored = await store.find(repositoryId);
  if (stored === undefined) return undefined;
  return decryptedOrNot(() => encryption.decrypt(stored.encrypted, contextOf(repositoryId)));
}

/** The secrets of all repositories, for a new ENCRYPTION_KEY. */
export function encryptedWebhooks(
  store: Pick<WebhookStore, 'underOtherKeys' | 'replaceEncrypted'>,
): EncryptedRows {
  return async (mark, after, limit) =>
    (await store.underOtherKeys(mark, after, limit)).map(({ repositoryId, encrypted }) => ({
      id: repositoryId,
      encrypted,
      context: contextOf(repositoryId),
      replace: (fresh) => store.replaceEncrypted(repositoryId, encrypted, fresh),
    }));
}

function contextOf(repositoryId: string): string {
  return `repository-webhook:${repositoryId}`;
}
