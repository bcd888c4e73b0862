import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';

/**
 * An authenticator with one passkey (WebAuthn Level 3, sections 6 and 7), in the forms that browsers send. Each option
 * makes it misbehave in one way.
 */
export type AuthenticatorOptions = {
  readonly origin?: string;
  readonly rpId?: string;
  readonly isVerified?: boolean;
  readonly crossOrigin?: boolean;
  readonly counter?: number;
  readonly challenge?: string;
  readonly type?: string;
};

const sha256 = (bytes: Buffer | string) => createHash('sha256').update(bytes).digest();

export function createAuthenticator(origin: string) {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const id = randomBytes(16);
  let userHandle = '';
  let counter = 0;

  function clientData(type: string, challenge: string, options: AuthenticatorOptions): Buffer {
    return Buffer.from(
      JSON.stringify({
        type: options.type ?? type,
        challenge: options.challenge ?? challenge,
        origin: options.origin ?? origin,
        crossOrigin: options.crossOrigin ?? false,
      }),
    );
  }

  function authenticatorData(options: AuthenticatorOptions, attested: Buffer = Buffer.alloc(0)): Buffer {
    counter = options.counter ?? counter + 1;
    const flags = 0x01 | (options.isVerified === false ? 0 : 0x04) | (attested.length > 0 ? 0x40 : 0);
    const count = Buffer.alloc(4);
    count.writeUInt32BE(counter);
    return Buffer.concat([
      sha256(options.rpId ?? new URL(origin).hostname),
      Buffer.from([flags]),
      count,
      attested,
    ]);
  }

  const credential = (response: object) => ({
    id: id.toString('base64url'),
    rawId: id.toString('base64url'),
    type: 'public-key',
    clientExtensionResults: {},
    response,
  });

  return {
    /** `navigator.credentials.create()` */
    create(
      { challenge, user }: { challenge: string; user: { id: string } },
      options: AuthenticatorOptions = {},
    ) {
      userHandle = user.id;
      const length = Buffer.alloc(2);
      length.writeUInt16BE(id.length);
      const attested = Buffer.concat([Buffer.alloc(16), length, id, coseKey(publicKey)]);
      const attestation = cborMap([
        [cborText('fmt'), cborText('none')],
        [cborText('attStmt'), cborMap([])],
        [cborText('authData'), cborBytes(authenticatorData(options, attested))],
      ]);
      return credential({
        clientDataJSON: clientData('webauthn.create', challenge, options).toString('base64url'),
        attestationObject: attestation.toString('base64url'),
        transports: ['internal'],
      });
    },
    /** `navigator.credentials.get()` */
    get({ challenge }: { challenge: string }, options: AuthenticatorOptions = {}) {
      const data = authenticatorData(options);
      const client = clientData('webauthn.get', challenge, options);
      const signature = sign('sha256', Buffer.concat([data, sha256(client)]), privateKey);
      return credential({
        clientDataJSON: client.toString('base64url'),
        authenticatorData: data.toString('base64url'),
        signature: signature.toString('base64url'),
        userHandle,
      });
    },
  };
}

/** ES256 as COSE_Key (RFC 9053 section 2.1). */
function coseKey(key: KeyObject): Buffer {
  const { x = '', y = '' } = key.export({ format: 'jwk' });
  return cborMap([
    [cborInt(1), cborInt(2)],
    [cborInt(3), cborInt(-7)],
    [cborInt(-1), cborInt(1)],
    [cborInt(-2), cborBytes(Buffer.from(x, 'base64url'))],
    [cborInt(-3), cborBytes(Buffer.from(y, 'base64url'))],
  ]);
}

/** CBOR (RFC 8949) of the few types above. */
function head(major: number, value: number): Buffer {
  if (value < 24) return Buffer.from([(major << 5) | value]);
  if (value < 256) return Buffer.from([(major << 5) | 24, value]);
  return Buffer.from([(major << 5) | 25, value >> 8, value & 0xff]);
}
const cborInt = (value: number) => (value < 0 ? head(1, -1 - value) : head(0, value));
const cborBytes = (bytes: Buffer) => Buffer.concat([head(2, bytes.length), bytes]);
const cborText = (text: string) => Buffer.concat([head(3, Buffer.byteLength(text)), Buffer.from(text)]);
const cborMap = (entries: readonly (readonly [Buffer, Buffer])[]) =>
  Buffer.concat([head(5, entries.length), ...entries.flat()]);
