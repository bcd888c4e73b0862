import { createPrivateKey, createPublicKey, diffieHellman } from 'node:crypto';
import { hsalsa, xsalsa20poly1305 } from '@noble/ciphers/salsa.js';
import { blake2b } from '@noble/hashes/blake2.js';
import { armor, Decrypter } from 'age-encryption';
import { compactDecrypt, importJWK } from 'jose';

/** The forms in which a server seals the value of a key: decision 0063. */
export type SealedForm = 'age' | 'jwe' | 'box';

/** Decrypts a sealed value with the text of a private key. @throws any error when it does not open it */
export async function decrypt(form: SealedForm, sealed: string, privateKey: string): Promise<Uint8Array> {
  switch (form) {
    case 'age': {
      const decrypter = new Decrypter();
      for (const identity of privateKey.match(/^AGE-SECRET-KEY-.*$/gm) ?? [])
        decrypter.addIdentity(identity.trim());
      return await decrypter.decrypt(armor.decode(sealed));
    }
    case 'jwe': {
      const key = await importJWK(JSON.parse(privateKey), 'ECDH-ES+A256KW');
      const { plaintext } = await compactDecrypt(sealed, key, {
        keyManagementAlgorithms: ['ECDH-ES+A256KW'],
        contentEncryptionAlgorithms: ['A256GCM'],
      });
      return plaintext;
    }
    case 'box':
      return openBox(Buffer.from(sealed, 'base64'), Buffer.from(privateKey, 'base64'));
  }
}

/** What comes before the 32 bytes of an X25519 private key in PKCS #8 (RFC 8410). */
const pkcs8 = Buffer.from('302e020100300506032b656e04220420', 'hex');

/** crypto_box_seal_open of libsodium: https://doc.libsodium.org/public-key_cryptography/sealed_boxes */
function openBox(sealed: Buffer, secret: Buffer): Uint8Array {
  const privateKey = createPrivateKey({ key: Buffer.concat([pkcs8, secret]), format: 'der', type: 'pkcs8' });
  const recipient = Buffer.from(String(createPublicKey(privateKey).export({ format: 'jwk' }).x), 'base64url');
  const ephemeral = sealed.subarray(0, 32);
  const publicKey = createPublicKey({
    key: { kty: 'OKP', crv: 'X25519', x: ephemeral.toString('base64url') },
    format: 'jwk',
  });
  const nonce = blake2b(Buffer.concat([ephemeral, recipient]), { dkLen: 24 });
  const key = boxKeyOf(diffieHellman({ privateKey, publicKey }));
  return xsalsa20poly1305(key, nonce).decrypt(sealed.subarray(32));
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
