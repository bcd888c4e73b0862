import { calculateJwkThumbprint, exportJWK, generateKeyPair, type JWK } from 'jose';
import type { Act } from '../../../core/caller.ts';
import type { Tx } from '../../../platform/database/database.ts';
import type { AuditWriter } from '../../audit/audit.ts';
import { SealedOtherwise, type Sealer } from '../sealing.ts';
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
    await keys.insertIfAbsent(sealer.seal(JSON.stringify({ keys: [await makeKey()] }), context));
  }
  // Read back: another process may have been first.
  const sealed = await keys.find();
  if (sealed === undefined) throw new Error('The signing keys were removed while starting.');
  const opened = openKeys(sealer, sealed);
  // Under an older key: sealed anew, so that the older one can go. Whoever was faster did the same.
  if (!sealed.startsWith(sealer.mark))
    await keys.replace(sealed, sealer.seal(JSON.stringify(opened), context));
  return opened;
}

/**
 * Puts a new key in front, which signs from each process's next start on. The one before it stays and verifies, so that
 * no sign-in under way fails; the one before that is gone. The trail tells it. @throws SigningKeysSealed
 */
export async function rotateSigningKeys(
  act: Act,
  deps: {
    read: SigningKeyStore;
    tx: Tx<{ signingKeys: SigningKeyStore; audit: AuditWriter }>;
    sealer: Sealer;
  },
): Promise<number> {
  const { read, tx, sealer } = deps;
  await loadSigningKeys(read, sealer);
  const sealed = await read.find();
  if (sealed === undefined) throw new Error('The signing keys were removed meanwhile.');
  const [before] = openKeys(sealer, sealed).keys;
  const made = await makeKey();
  const next = { keys: [made, ...(before === undefined ? [] : [before])] };
  const isReplaced = await tx(async ({ signingKeys, audit }) => {
    if (!(await signingKeys.replace(sealed, sealer.seal(JSON.stringify(next), context)))) return false;
    await audit.append({
      event: 'config.signing_keys.changed',
      act,
      target: { kind: 'config', id: 'signing-keys' },
      outcome: 'success',
      details: { kid: made.kid },
    });
    return true;
  });
  if (!isReplaced)
    throw new Error('The signing keys were changed meanwhile. Nothing was changed here; try again.');
  return next.keys.length;
}

/** With these nobody can sign in, so the program does not start. */
export class SigningKeysSealed extends Error {
  constructor() {
    super('ENCRYPTION_KEY opens none of the signing keys.');
    this.name = 'SigningKeysSealed';
  }
}

function openKeys(sealer: Sealer, sealed: string): { keys: JWK[] } {
  try {
    // Written here and authenticated by the seal.
    return JSON.parse(sealer.open(sealed, context)) as { keys: JWK[] };
  } catch (error) {
    throw error instanceof SealedOtherwise ? new SigningKeysSealed() : error;
  }
}

async function makeKey(): Promise<JWK> {
  const { privateKey } = await generateKeyPair('RS256', { extractable: true });
  const jwk = await exportJWK(privateKey);
  return { ...jwk, kid: await calculateJwkThumbprint(jwk), use: 'sig', alg: 'RS256' };
}
