import { exportJWK, generateKeyPair, type JWK } from 'jose';
import type { Sealer } from '../sealing.ts';
import type { SigningKeyStore } from './signing-key-store.ts';

const context = 'provider-signing-keys';

/** False when there are some that `sealer` cannot open: with such a database nobody can sign in. Makes none. */
export async function signingKeysOpen(keys: SigningKeyStore, sealer: Sealer): Promise<boolean> {
  const sealed = await keys.find();
  if (sealed === undefined) return true;
  try {
    sealer.open(sealed, context);
    return true;
  } catch {
    // The only thing that can fail here, and the question.
    return false;
  }
}

/** The provider's private signing keys, made at the first start. ID tokens are RS256, as OIDC Core demands. */
export async function loadSigningKeys(keys: SigningKeyStore, sealer: Sealer): Promise<{ keys: JWK[] }> {
  if ((await keys.find()) === undefined) {
    const { privateKey } = await generateKeyPair('RS256', { extractable: true });
    const jwk = { ...(await exportJWK(privateKey)), use: 'sig', alg: 'RS256' };
    await keys.insertIfAbsent(sealer.seal(JSON.stringify({ keys: [jwk] }), context));
  }
  // Read back: another process may have been first.
  const sealed = await keys.find();
  if (sealed === undefined) throw new Error('The signing keys were removed while starting.');
  // Written above and authenticated by the seal.
  return JSON.parse(sealer.open(sealed, context)) as { keys: JWK[] };
}
