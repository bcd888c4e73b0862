import { calculateJwkThumbprint, exportJWK, generateKeyPair, type JWK } from 'jose';
import type { AuditContext } from '../../core/caller.ts';
import type { Tx } from '../../platform/database/database.ts';
import type { AuditWriter } from '../audit/audit.ts';
import { UnknownEncryptionKey, type Encryption } from '../../platform/encryption.ts';
import type { SigningKeyStore } from './signing-key-store.ts';

const context = 'provider-signing-keys';

/** False when stored keys cannot be decrypted by `encryption`: then no person can sign in. Creates no keys. */
export async function canDecryptSigningKeys(keys: SigningKeyStore, encryption: Encryption): Promise<boolean> {
  const encrypted = await keys.find();
  if (encrypted === undefined) return true;
  try {
    encryption.decrypt(encrypted, context);
    return true;
  } catch {
    // Decrypting is the only step that can fail here, and its failure is the answer.
    return false;
  }
}

/** Returns the provider's private signing keys; creates them at the first start. ID tokens use RS256, as OIDC Core requires. */
export async function loadSigningKeys(
  keys: SigningKeyStore,
  encryption: Encryption,
): Promise<{ keys: JWK[] }> {
  if ((await keys.find()) === undefined) {
    await keys.insertIfAbsent(encryption.encrypt(JSON.stringify({ keys: [await makeKey()] }), context));
  }
  // Read again: another process may have inserted its keys first.
  const encrypted = await keys.find();
  if (encrypted === undefined) throw new Error('The signing keys were removed while starting.');
  const opened = decryptKeys(encryption, encrypted);
  // Encrypted under an older key: encrypt again, so that the older key can be removed. Another process may do the same.
  if (!encrypted.startsWith(encryption.keyMark))
    await keys.replace(encrypted, encryption.encrypt(JSON.stringify(opened), context));
  return opened;
}

/**
 * Adds a new first key, which each process uses for signing after its next start. The previous key stays and verifies, so
 * that no sign-in in progress fails; the key before that is removed. Writes an audit event. @throws SigningKeysUnreadable
 */
export async function rotateSigningKeys(
  auditContext: AuditContext,
  deps: {
    read: SigningKeyStore;
    tx: Tx<{ signingKeys: SigningKeyStore; audit: AuditWriter }>;
    encryption: Encryption;
  },
): Promise<number> {
  const { read, tx, encryption } = deps;
  await loadSigningKeys(read, encryption);
  const encrypted = await read.find();
  if (encrypted === undefined) throw new Error('The signing keys were removed meanwhile.');
  const [before] = decryptKeys(encryption, encrypted).keys;
  const made = await makeKey();
  const next = { keys: [made, ...(before === undefined ? [] : [before])] };
  const isReplaced = await tx(async ({ signingKeys, audit }) => {
    if (!(await signingKeys.replace(encrypted, encryption.encrypt(JSON.stringify(next), context))))
      return false;
    await audit.append({
      event: 'config.signing_keys.changed',
      auditContext,
      target: { kind: 'config', id: 'signing-keys' },
      outcome: 'success',
      details: { kid: made.kid },
    });
    return true;
  });
  if (!isReplaced)
    throw new Error(
      'Another command changed the signing keys at the same time. This command changed nothing; run it again.',
    );
  return next.keys.length;
}

/** The stored keys cannot be decrypted. No person could sign in, so the process does not start. */
export class SigningKeysUnreadable extends Error {
  constructor() {
    super('ENCRYPTION_KEY decrypts none of the signing keys.');
    this.name = 'SigningKeysUnreadable';
  }
}

function decryptKeys(encryption: Encryption, encrypted: string): { keys: JWK[] } {
  try {
    // Written here and authenticated by its encryption.
    return JSON.parse(encryption.decrypt(encrypted, context)) as { keys: JWK[] };
  } catch (error) {
    throw error instanceof UnknownEncryptionKey ? new SigningKeysUnreadable() : error;
  }
}

async function makeKey(): Promise<JWK> {
  const { privateKey } = await generateKeyPair('RS256', { extractable: true });
  const jwk = await exportJWK(privateKey);
  return { ...jwk, kid: await calculateJwkThumbprint(jwk), use: 'sig', alg: 'RS256' };
}
