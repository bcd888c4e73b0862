import { describe, expect, test } from 'vitest';
import { type AuthenticatorOptions, createAuthenticator } from '../../../test/fakes/authenticator.ts';
import {
  assertionSchema,
  challengeIn,
  creationOptions,
  registrationSchema,
  relyingPartyOf,
  requestOptions,
  verifyAssertion,
  verifyRegistration,
} from './webauthn.ts';

const origin = 'https://postern.example';
const party = { id: 'postern.example', origin };
const handle = Buffer.alloc(32, 7).toString('base64url');
const person = { handle, email: 'ada@example.com', name: 'Ada', known: [] };

/** Wrong in one way each. */
const wrongs: readonly [string, AuthenticatorOptions][] = [
  ['another origin', { origin: 'https://evil.example' }],
  ['the origin with another port', { origin: 'https://postern.example:8443' }],
  ['a subdomain', { origin: 'https://sites.postern.example' }],
  ['another relying party', { rpId: 'example' }],
  ['no verified user', { isVerified: false }],
  ['another challenge', { challenge: 'b3RoZXI' }],
  ['the other ceremony', { type: 'webauthn.other' }],
];

async function registered() {
  const authenticator = createAuthenticator(origin);
  const options = await creationOptions(party, person);
  const sent = registrationSchema.parse(authenticator.create(options));
  const credential = await verifyRegistration(party, sent, options.challenge);
  if (credential === undefined) throw new Error('The registration was refused.');
  return { authenticator, credential: { ...credential, handle } };
}

test('an IP address has no passkeys', () => {
  expect(relyingPartyOf('http://127.0.0.1:3000')).toBeNull();
  expect(relyingPartyOf('http://[::1]:3000')).toBeNull();
  expect(relyingPartyOf('http://localhost:3000')).toEqual({
    id: 'localhost',
    origin: 'http://localhost:3000',
  });
});

describe('a registration', () => {
  test('asks for a discoverable credential with a verified user, and names no authenticator', async () => {
    expect(await creationOptions(party, person)).toMatchObject({
      attestation: 'none',
      authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
      user: { id: handle, name: 'ada@example.com' },
      pubKeyCredParams: [{ alg: -7 }, { alg: -8 }, { alg: -257 }],
    });
  });

  test('of a passkey is verified', async () => {
    const { credential } = await registered();
    expect(credential).toMatchObject({ isSynced: false, transports: ['internal'] });
  });

  test.each(wrongs)('with %s is refused', async (_what, wrong) => {
    const options = await creationOptions(party, person);
    const sent = registrationSchema.parse(createAuthenticator(origin).create(options, wrong));
    expect(await verifyRegistration(party, sent, options.challenge)).toBeUndefined();
  });
});

describe('a sign-in', () => {
  test('names no account, and is verified with the counter of its signature', async () => {
    const { authenticator, credential } = await registered();
    const options = await requestOptions(party);
    expect(options.allowCredentials ?? []).toEqual([]);
    const sent = assertionSchema.parse(authenticator.get(options, { counter: 41 }));
    expect(await verifyAssertion(party, sent, credential, options.challenge)).toEqual({
      counter: 41,
      isSynced: false,
    });
  });

  test.each(wrongs)('with %s is refused', async (_what, wrong) => {
    const { authenticator, credential } = await registered();
    const options = await requestOptions(party);
    const sent = assertionSchema.parse(authenticator.get(options, wrong));
    expect(await verifyAssertion(party, sent, credential, options.challenge)).toBeUndefined();
  });

  test('with the passkey or the handle of another account is refused', async () => {
    const [one, other] = [await registered(), await registered()];
    const options = await requestOptions(party);
    const sent = assertionSchema.parse(one.authenticator.get(options));
    expect(await verifyAssertion(party, sent, other.credential, options.challenge)).toBeUndefined();
    const elsewhere = { ...one.credential, handle: 'b3RoZXI' };
    expect(await verifyAssertion(party, sent, elsewhere, options.challenge)).toBeUndefined();
  });

  test.each(['', 'x', 'bnVsbA', Buffer.from('{"challenge":1}').toString('base64url'), '{'])(
    'whose client data is %j answers no challenge',
    (clientData) => {
      expect(challengeIn(clientData)).toBeUndefined();
    },
  );

  test('in a frame of another origin answers no challenge', async () => {
    const { authenticator } = await registered();
    const { response } = assertionSchema.parse(
      authenticator.get(await requestOptions(party), { crossOrigin: true }),
    );
    expect(challengeIn(response.clientDataJSON)).toBeUndefined();
  });
});
