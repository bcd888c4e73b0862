import { isIP } from 'node:net';
import type { AuthenticationResponseJSON, RegistrationResponseJSON } from '@simplewebauthn/server';
import { z } from 'zod';

/**
 * The two ceremonies of WebAuthn Level 3 (sections 7.1 and 7.2) with `@simplewebauthn/server`: discoverable credentials, user
 * verification required, no attestation. The library is loaded at the first use, because most processes never need it.
 */
export type RelyingParty = {
  /** The host of the web app. */
  readonly id: string;
  readonly origin: string;
};

/** Null where the address of the web app is an IP address: browsers have no passkeys there. */
export function relyingPartyOf(uiOrigin: string): RelyingParty | null {
  const { hostname } = new URL(uiOrigin);
  return isIP(hostname.replace(/^\[|\]$/g, '')) === 0 ? { id: hostname, origin: uiOrigin } : null;
}

/** What an error says there. */
export const noPasskeysHere = {
  message: 'Browsers have no passkeys at an IP address.',
  hint: 'Ask the operator to give the web app a host name (SERVICE_UI_URL).',
};

/** COSE algorithms: ES256, EdDSA, RS256. */
const algorithms = [-7, -8, -257];

const text = z.string().max(16_384);
/** A credential id in base64url: at most 1,023 bytes (WebAuthn Level 3 section 7.1, step 25). */
const idForm = /^[\w-]{1,1364}$/;
const id = z.string().regex(idForm);

/** What `PublicKeyCredential.toJSON()` returns; other fields are ignored. */
export const registrationSchema = z
  .object({
    id,
    rawId: id,
    type: z.literal('public-key'),
    response: z.object({
      clientDataJSON: text,
      attestationObject: text,
      transports: z
        .array(z.string().regex(/^[a-z-]{1,20}$/))
        .max(10)
        .default([]),
    }),
  })
  .meta({ id: 'PasskeyRegistration' });

export const assertionSchema = z.object({
  id,
  rawId: id,
  type: z.literal('public-key'),
  response: z.object({
    clientDataJSON: text,
    authenticatorData: text,
    signature: text,
    userHandle: text.optional(),
  }),
});

/** The answer of a browser in a form; undefined when it is none. */
export function assertionIn(sent: string): z.infer<typeof assertionSchema> | undefined {
  return assertionSchema.safeParse(parsedOr(sent)).data;
}

/** A registration of a browser in a form; undefined when it is none. */
export function registrationIn(sent: string): z.infer<typeof registrationSchema> | undefined {
  return registrationSchema.safeParse(parsedOr(sent)).data;
}

const load = () => import('@simplewebauthn/server');

export type CreationOptions = Awaited<ReturnType<typeof creationOptions>>;
export type RequestOptions = Awaited<ReturnType<typeof requestOptions>>;

export async function creationOptions(
  party: RelyingParty,
  person: {
    readonly handle: string;
    readonly email: string;
    readonly name: string;
    readonly known: readonly { readonly credentialId: string; readonly transports: readonly string[] }[];
  },
) {
  const { generateRegistrationOptions } = await load();
  return await generateRegistrationOptions({
    rpID: party.id,
    rpName: 'Postern',
    userID: Buffer.from(person.handle, 'base64url'),
    userName: person.email,
    userDisplayName: person.name,
    attestationType: 'none',
    authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
    supportedAlgorithmIDs: algorithms,
    excludeCredentials: person.known.map(({ credentialId }) => ({ id: credentialId })),
    timeout: 300_000,
  });
}

/** Names no account: the authenticator offers what it has. */
export async function requestOptions(party: RelyingParty) {
  const { generateAuthenticationOptions } = await load();
  return await generateAuthenticationOptions({
    rpID: party.id,
    userVerification: 'required',
    timeout: 300_000,
  });
}

export type NewCredential = {
  readonly credentialId: string;
  readonly publicKey: Uint8Array;
  readonly transports: readonly string[];
  readonly counter: number;
  readonly isSynced: boolean;
};

/** @returns undefined when it is not valid */
export async function verifyRegistration(
  party: RelyingParty,
  sent: z.infer<typeof registrationSchema>,
  challenge: string,
): Promise<NewCredential | undefined> {
  const { verifyRegistrationResponse } = await load();
  const found = await verifyRegistrationResponse({
    response: { ...sent, clientExtensionResults: {} } as RegistrationResponseJSON,
    expectedChallenge: challenge,
    expectedOrigin: party.origin,
    expectedRPID: party.id,
    requireUserVerification: true,
    supportedAlgorithmIDs: algorithms,
  }).catch(() => undefined);
  if (found?.verified !== true) return undefined;
  const { credential, credentialBackedUp } = found.registrationInfo;
  // The authenticator's own data names it too.
  if (!idForm.test(credential.id)) return undefined;
  return {
    credentialId: credential.id,
    publicKey: credential.publicKey,
    counter: credential.counter,
    transports: sent.response.transports,
    isSynced: credentialBackedUp,
  };
}

/**
 * Verifies a signature and returns the counter in it. The library refuses a counter that goes back with the same error as
 * everything else, so it gets 0, and the store compares. @returns undefined when it is not valid
 */
export async function verifyAssertion(
  party: RelyingParty,
  sent: z.infer<typeof assertionSchema>,
  {
    credentialId,
    publicKey,
    handle,
  }: { readonly credentialId: string; readonly publicKey: Uint8Array; readonly handle: string },
  challenge: string,
): Promise<{ readonly counter: number; readonly isSynced: boolean } | undefined> {
  if (sent.response.userHandle !== handle) return undefined;
  const { verifyAuthenticationResponse } = await load();
  const found = await verifyAuthenticationResponse({
    response: { ...sent, clientExtensionResults: {} } as AuthenticationResponseJSON,
    expectedChallenge: challenge,
    expectedOrigin: party.origin,
    expectedRPID: party.id,
    requireUserVerification: true,
    credential: { id: credentialId, publicKey: Uint8Array.from(publicKey), counter: 0 },
  }).catch(() => undefined);
  if (found?.verified !== true) return undefined;
  return {
    counter: found.authenticationInfo.newCounter,
    isSynced: found.authenticationInfo.credentialBackedUp,
  };
}

/**
 * The challenge that a browser answers. Undefined when it is missing, and for a page of another origin that shows ours in a
 * frame, which the library accepts.
 */
export function challengeIn(clientData: string): string | undefined {
  const parsed = clientDataSchema.safeParse(parsedOr(Buffer.from(clientData, 'base64url').toString()));
  return parsed.success && parsed.data.crossOrigin !== true ? parsed.data.challenge : undefined;
}

const clientDataSchema = z.object({ challenge: z.string().max(200), crossOrigin: z.boolean().optional() });

function parsedOr(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}
