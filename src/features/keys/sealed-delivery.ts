import { createPublicKey, diffieHellman, generateKeyPairSync } from 'node:crypto';
import { hsalsa, xsalsa20poly1305 } from '@noble/ciphers/salsa.js';
import { blake2b } from '@noble/hashes/blake2.js';
import { calculateJwkThumbprint, CompactEncrypt, importJWK, type JWK } from 'jose';
import { AppError } from '../../core/errors.ts';

/**
 * Sealed delivery (decision 0063): encrypts the value of a new key to the public key of the program that will use it, so
 * that the person who creates the key never sees its value. Only the holder of the private key can decrypt it.
 */
export type SealTo =
  /** EC on P-256, P-384 or P-521, or OKP on X25519. */
  | { readonly kind: 'jwk'; readonly key: PublicJwk }
  | { readonly kind: 'age'; readonly recipient: string }
  /** 32 bytes in base64. `keyId` is returned as it is: the secrets API of GitHub asks for both. */
  | { readonly kind: 'libsodium'; readonly publicKey: string; readonly keyId?: string | undefined };

type PublicJwk = {
  readonly kty: 'EC' | 'OKP';
  readonly crv: string;
  readonly x: string;
  readonly y?: string | undefined;
  readonly kid?: string | undefined;
};

export type Sealed = {
  readonly kind: SealTo['kind'];
  /** A compact JWE, an armored age file, or a sealed box of libsodium in base64. */
  readonly value: string;
  readonly keyId?: string;
};

/** @throws AppError invalid_body when nothing can be encrypted to the public key */
export async function seal(value: string, to: SealTo): Promise<Sealed> {
  try {
    return { kind: to.kind, value: await encrypted(value, to), ...keyIdOf(to) };
  } catch (cause) {
    const [field, hint] = publicKeys[to.kind];
    const problem = 'cannot encrypt a value: it is mistyped, or no point of its curve';
    throw new AppError('invalid_body', {
      message: `${field}: ${problem}`,
      hint,
      details: { fields: [{ field, problem }] },
      cause,
    });
  }
}

/** Which public key it was, for the audit log. */
export async function publicKeyOf(to: SealTo): Promise<string> {
  switch (to.kind) {
    case 'jwk':
      return await calculateJwkThumbprint(pointOf(to.key), 'sha256');
    case 'age':
      return to.recipient;
    case 'libsodium':
      return to.publicKey;
  }
}

const publicKeys = {
  jwk: ['sealTo.key', 'Send the public key as the program that generated it exports it.'],
  age: ['sealTo.recipient', 'Send the recipient that age-keygen prints as the public key.'],
  libsodium: ['sealTo.publicKey', 'Send the public key as crypto_box_keypair or GitHub returns it.'],
} as const;

function keyIdOf(to: SealTo): { keyId?: string } {
  return to.kind === 'libsodium' && to.keyId !== undefined ? { keyId: to.keyId } : {};
}

async function encrypted(value: string, to: SealTo): Promise<string> {
  const bytes = Buffer.from(value);
  switch (to.kind) {
    case 'jwk':
      return await jweOf(bytes, to.key);
    case 'age': {
      // Larger than the rest of this feature, and needed for few keys.
      const { armor, Encrypter } = await import('age-encryption');
      const encrypter = new Encrypter();
      encrypter.addRecipient(to.recipient);
      return armor.encode(await encrypter.encrypt(bytes));
    }
    case 'libsodium':
      return sealedBoxOf(bytes, Buffer.from(to.publicKey, 'base64')).toString('base64');
  }
}

const keyManagement = 'ECDH-ES+A256KW';

async function jweOf(bytes: Uint8Array, key: PublicJwk): Promise<string> {
  const { kid } = key;
  return await new CompactEncrypt(bytes)
    .setProtectedHeader({ alg: keyManagement, enc: 'A256GCM', ...(kid === undefined ? {} : { kid }) })
    .encrypt(await importJWK(pointOf(key), keyManagement));
}

/** Without other members, which could ask for another algorithm. */
function pointOf({ kty, crv, x, y }: PublicJwk): JWK {
  return { kty, crv, x, ...(y === undefined ? {} : { y }) };
}

/**
 * crypto_box_seal of libsodium: an ephemeral X25519 key, then XSalsa20-Poly1305. https://doc.libsodium.org/public-key_cryptography/sealed_boxes
 * Node's diffieHellman refuses points of small order.
 */
function sealedBoxOf(bytes: Uint8Array, recipient: Buffer): Buffer {
  const { publicKey, privateKey } = generateKeyPairSync('x25519');
  const ephemeral = Buffer.from(String(publicKey.export({ format: 'jwk' }).x), 'base64url');
  const shared = diffieHellman({
    privateKey,
    publicKey: createPublicKey({
      key: { kty: 'OKP', crv: 'X25519', x: recipient.toString('base64url') },
      format: 'jwk',
    }),
  });
  const nonce = blake2b(Buffer.concat([ephemeral, recipient]), { dkLen: 24 });
  const box = xsalsa20poly1305(boxKeyOf(shared), nonce).encrypt(bytes);
  return Buffer.concat([ephemeral, box]);
}

/** HSalsa20 of the shared secret and 16 zero bytes, as crypto_box derives its key. */
function boxKeyOf(shared: Buffer): Uint8Array {
  const key = new Uint32Array(8);
  hsalsa(wordsOf(Buffer.from('expand 32-byte k')), wordsOf(shared), new Uint32Array(4), key);
  return new Uint8Array(key.buffer);
}

/** Copies the bytes into little-endian words. */
function wordsOf(bytes: Buffer): Uint32Array {
  return new Uint32Array(Uint8Array.from(bytes).buffer);
}
