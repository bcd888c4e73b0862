import { type Issuer, platforms } from '../../keys/trust/platforms.ts';

/** Trusted issuers in the form of the key policy. While the user edits pasted public keys, `jwks` is their text. */
export type EditedIssuer = Omit<Issuer, 'jwks'> & { readonly jwks?: unknown };

export function issuersOf(value: unknown): EditedIssuer[] {
  // Edited from a list the server sent; it checks every issuer again.
  return Array.isArray(value) ? (value as EditedIssuer[]) : [];
}

/** Says which keys an issuer has, so that a change of them is visible. */
export function issuerInWords({ url, preset, jwks }: EditedIssuer): string {
  const keys = jwks === undefined ? '' : `, with the keys ${kidsIn(jwks).join(' ') || 'that were pasted'}`;
  return `${url} (${platforms[preset].label}${keys})`;
}

/** The text to edit. */
export function textOfKeys(jwks: unknown): string {
  return typeof jwks === 'string' ? jwks : JSON.stringify(jwks, null, 2);
}

export function mistakesInIssuers(path: string, value: unknown): Readonly<Record<string, string>> {
  const mistakes = issuersOf(value).map(
    ({ jwks }, at) => [`${path}.${at}.jwks`, mistakeInKeys(jwks)] as const,
  );
  return Object.fromEntries(mistakes.filter(([, mistake]) => mistake !== ''));
}

/** Finds a text that is no key set, and a private key, which must not leave the browser. */
function mistakeInKeys(jwks: unknown): string {
  if (jwks === undefined) return '';
  const keys = keysIn(jwks);
  if (keys === undefined) return 'Paste a key set: a JSON object with the list keys.';
  const isPrivate = (key: unknown) => typeof key === 'object' && key !== null && ('d' in key || 'k' in key);
  return keys.some(isPrivate)
    ? 'This has a private key. It must stay where it is; paste the public keys.'
    : '';
}

/** An issuer as the server reads it. `mistakesInIssuers` finds a text that is not JSON first. */
export function sentIssuer({ jwks, ...issuer }: EditedIssuer): EditedIssuer {
  return jwks === undefined ? issuer : { ...issuer, jwks: typeof jwks === 'string' ? parsed(jwks) : jwks };
}

function kidsIn(jwks: unknown): string[] {
  return (keysIn(jwks) ?? []).flatMap((key: unknown) =>
    typeof key === 'object' && key !== null && 'kid' in key ? [String(key.kid)] : [],
  );
}

function keysIn(jwks: unknown): readonly unknown[] | undefined {
  const set = typeof jwks === 'string' ? parsed(jwks) : jwks;
  if (typeof set !== 'object' || set === null || !('keys' in set)) return undefined;
  return Array.isArray(set.keys) ? set.keys : undefined;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
