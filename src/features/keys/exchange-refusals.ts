/** Why an ID token is not exchanged. The pipeline gets one text for all of them; administrators read the reason. */
export const exchangeRefusals = {
  unknown_issuer: 'The key policy has no issuer with the address in the claim iss of the ID token.',
  bad_signature: 'No published key of the issuer verifies the signature of the ID token.',
  stale: 'The ID token has expired, is not valid yet, or is older than the rule allows.',
  audience: 'The audience of the ID token is not exactly SERVICE_UI_URL.',
  claim: 'No rule of the key accepts the claims of the ID token.',
  replayed: 'The ID token was exchanged before, and the rule allows one exchange.',
  key_inactive: 'There is no active service key with this id, or the key policy disables service keys.',
} as const;

export type ExchangeRefusal = keyof typeof exchangeRefusals;

/** The error code of the response (RFC 6749 section 5.2). */
export const exchangeCode = 'invalid_grant';
