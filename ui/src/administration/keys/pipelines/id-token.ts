/** Reads the claims of a pasted ID token here, so that the token itself stays in the browser. */
export type Claims = Readonly<Record<string, unknown>>;

/** The server refuses longer ones. */
const maxCharacters = 16_384;

/** The claims of an ID token, or those that a job has already decoded. */
export function claimsIn(pasted: string): { readonly claims: Claims } | { readonly mistake: string } {
  const decoded = objectIn(pasted);
  if (decoded !== undefined) {
    // Such as the response in which GitHub sends it to a job.
    const hasToken = /eyJ[\w-]+\.[\w-]+\.[\w-]+/.test(pasted);
    return hasToken
      ? { mistake: 'This JSON has a token in it. Paste the token alone.' }
      : { claims: decoded };
  }
  // A token from a log or a terminal may have line breaks.
  const token = pasted.replaceAll(/\s/g, '');
  if (token === '') return { mistake: 'Paste an ID token, or its claims as JSON.' };
  if (token.length > maxCharacters) return { mistake: 'An ID token has at most 16,384 characters.' };
  const parts = token.split('.');
  if (parts.length === 5) return { mistake: 'This token is encrypted. Paste the signed ID token.' };
  if (parts.length !== 3)
    return { mistake: 'An ID token has three parts with dots between them. Claims are a JSON object.' };
  const claims = objectIn(textIn(parts[1] ?? ''));
  return claims === undefined ? { mistake: 'The middle part of this token has no claims.' } : { claims };
}

/** The text in a part of a JWT (RFC 7519): UTF-8 in base64url. Empty if it is something else. */
function textIn(part: string): string {
  try {
    const binary = atob(part.replaceAll('-', '+').replaceAll('_', '/'));
    const bytes = Uint8Array.from(binary, (character) => character.charCodeAt(0));
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return '';
  }
}

function objectIn(json: string): Claims | undefined {
  try {
    const value: unknown = JSON.parse(json);
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    // Just found to be an object, whose members are the claims.
    return isObject ? (value as Claims) : undefined;
  } catch {
    return undefined;
  }
}
