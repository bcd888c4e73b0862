/** Why an ID token is not exchanged, and what to do. The pipeline gets one text for all; administrators read these. */
export const exchangeRefusals = {
  unknown_issuer: [
    'The key policy has no issuer with the address in the claim iss of the ID token.',
    'Add the issuer to the key policy, with exactly this address.',
  ],
  bad_signature: [
    'No published key of the issuer verifies the signature of the ID token.',
    'If the key policy has the keys of the issuer, replace them by its current ones.',
  ],
  stale: [
    'The ID token has expired, is not valid yet, or is older than the rule allows.',
    'Send a new ID token, or add a rule with a higher maximum age. If the token is new, compare the clocks.',
  ],
  audience: [
    'The audience of the ID token is not exactly SERVICE_UI_URL.',
    'Request the ID token for SERVICE_UI_URL, without a slash at the end.',
  ],
  claim: [
    'No rule of the key accepts the claims of the ID token.',
    'Try the claims of the ID token with the rules of the key.',
  ],
  replayed: [
    'The ID token was exchanged before, and the rule allows one exchange.',
    'Get a new ID token for each exchange, or add a rule that allows more than one.',
  ],
  key_inactive: [
    'There is no active service key with this id, or the key policy disables service keys.',
    'Compare the id, the state of the key, and the switch of service keys in the key policy.',
  ],
} as const;

export type ExchangeRefusal = keyof typeof exchangeRefusals;

/** The error code of the response (RFC 6749 section 5.2). */
export const exchangeCode = 'invalid_grant';
