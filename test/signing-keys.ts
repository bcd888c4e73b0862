import type { JWK } from 'jose';
import type { Encryption } from '../src/platform/encryption.ts';
import { loadSigningKeys } from '../src/features/oidc-provider/signing-keys.ts';
import type { SigningKeyStore } from '../src/features/oidc-provider/signing-key-store.ts';

let shared: Promise<{ keys: JWK[] }> | undefined;

/**
 * Gives a new database the signing keys of the first database of this test process, as from a process that started before.
 * Generating an RSA key takes as long as fifty requests.
 */
export async function shareSigningKeys(store: SigningKeyStore, encryption: Encryption): Promise<void> {
  if (shared === undefined) {
    shared = loadSigningKeys(store, encryption);
    await shared;
    return;
  }
  await store.insertIfAbsent(encryption.encrypt(JSON.stringify(await shared), 'provider-signing-keys'));
}
