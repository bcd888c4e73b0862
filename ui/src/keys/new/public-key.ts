import type { Schemas } from '../../api/contract.ts';

export type SealTo = NonNullable<Schemas['CreateKeyRequest']['sealTo']>;

/** Parses a pasted public key into the form of the API, or says what is wrong with it. The server checks the rest. */
export function publicKeyIn(pasted: string): { readonly sealTo: SealTo } | { readonly mistake: string } {
  const text = pasted.trim();
  if (text === '') return { mistake: 'Paste the public key of the program that will use the key.' };
  if (/^age1\w+$/.test(text)) return { sealTo: { kind: 'age', recipient: text } };
  if (/^[A-Za-z0-9+/]{43}=$/.test(text)) return { sealTo: { kind: 'libsodium', publicKey: text } };
  const json = objectIn(text);
  if (text.includes('AGE-SECRET-KEY-') || json?.['d'] !== undefined)
    return { mistake: 'This is the private key. It must stay where it is; paste the public key.' };
  const { key, key_id: keyId } = json ?? {};
  // As GitHub returns the public key of a repository.
  if (typeof key === 'string' && typeof keyId === 'string')
    return { sealTo: { kind: 'libsodium', publicKey: key, keyId } };
  // A JWK is any JSON here: the server names each member that is wrong.
  if (json !== undefined) return { sealTo: { kind: 'jwk', key: json as Schemas['PublicJwk'] } };
  return { mistake: 'Paste a recipient of age (age1…), a JWK, or 32 bytes in base64.' };
}

function objectIn(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}
