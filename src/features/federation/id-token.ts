import { compactVerify, importJWK } from 'jose';
import { minute, second } from '../../core/clock.ts';
import {
  audienceOf,
  type ExchangeRefusal,
  failedClaims,
  type SigningKey,
  tokenIdOf,
  type TrustedIssuer,
  type TrustRule,
} from '../keys/keys.ts';

/**
 * Verifies the ID token of a pipeline (OpenID Connect Core section 3.1.3.7, RFC 8725), in the order of the steps below. It
 * trusts nothing in the token that the signature does not cover, and takes no key, and no address of one, from the token.
 * It reads no store: the caller finds the key, and decides whether the token was used before.
 */
export type VerifiedIdToken = {
  readonly kind: 'verified';
  readonly issuer: TrustedIssuer;
  readonly claims: Claims;
  /** From the claims `iat` and `exp`, in milliseconds. */
  readonly issuedAt: number;
  readonly expiresAt: number;
};

type Claims = Readonly<Record<string, unknown>>;

export type RefusedIdToken = { readonly kind: 'refused'; readonly reason: ExchangeRefusal };

/** The key of an issuer with this id. `unavailable`: it cannot be known now whether there is one. */
export type FindSigningKey = (
  issuer: TrustedIssuer,
  kid: string,
) => Promise<SigningKey | undefined | 'unavailable'>;

/** How far the clock of an issuer may differ. */
export const clockSkewMs = 30 * second;
const maxCharacters = 16_384;
/** The last second of the year 9999: a time beyond it cannot be stored. */
const latestSecond = 253_402_300_799;
const keyTypes = { RS256: 'RSA', PS256: 'RSA', ES256: 'EC', EdDSA: 'OKP' } as const;

export async function verifyIdToken(
  token: string,
  given: {
    readonly issuers: readonly TrustedIssuer[];
    readonly findKey: FindSigningKey;
    /** The only audience that a token may have. */
    readonly audience: string;
    readonly now: number;
  },
): Promise<VerifiedIdToken | RefusedIdToken | { readonly kind: 'unavailable' }> {
  const { issuers, findKey, audience, now } = given;
  const unverified = readToken(token);
  if (unverified === undefined) return refused('bad_signature');
  const { alg, kid, iss } = unverified;
  const issuer = issuers.find(({ url }) => url === iss);
  if (issuer === undefined) return refused('unknown_issuer');
  if (!isAlgorithm(alg)) return refused('bad_signature');
  const key = await findKey(issuer, kid);
  if (key === 'unavailable') return { kind: 'unavailable' };
  const claims = key === undefined ? undefined : await verifiedClaims(token, key, alg);
  if (claims === undefined) return refused('bad_signature');
  if (audienceOf(claims) !== audience) return refused('audience');
  const issuedAt = timeIn(claims['iat']);
  const expiresAt = timeIn(claims['exp']);
  if (issuedAt === undefined || expiresAt === undefined) return refused('stale');
  const isCurrent =
    issuedAt <= now + clockSkewMs &&
    now < expiresAt + clockSkewMs &&
    (claims['nbf'] === undefined || (timeIn(claims['nbf']) ?? Infinity) <= now + clockSkewMs);
  return isCurrent ? { kind: 'verified', issuer, claims, issuedAt, expiresAt } : refused('stale');
}

/** The first rule of the token's issuer that accepts it. For a single use, `jti` is what the caller must not have seen. */
export function acceptingRule(
  { issuer, claims, issuedAt }: VerifiedIdToken,
  rules: readonly TrustRule[],
  now: number,
): { readonly kind: 'accepted'; readonly rule: TrustRule; readonly jti: string | null } | RefusedIdToken {
  const jti = tokenIdOf(claims);
  let reason: ExchangeRefusal = 'claim';
  for (const rule of rules) {
    if (rule.issuer !== issuer.url || failedClaims(issuer.preset, rule, claims).length > 0) continue;
    // Without an id, a second use cannot be detected.
    if (rule.singleUse && jti === null) continue;
    if (now - issuedAt <= rule.maxAgeMinutes * minute)
      return { kind: 'accepted', rule, jti: rule.singleUse ? jti : null };
    reason = 'stale';
  }
  return refused(reason);
}

const refused = (reason: ExchangeRefusal): RefusedIdToken => ({ kind: 'refused', reason });

/** The algorithm, key id and issuer that the token names, not verified yet. Undefined: it is no signed JWT. */
function readToken(token: string): { alg: unknown; kid: string; iss: unknown } | undefined {
  if (token.length > maxCharacters || !/^[\w-]+\.[\w-]+\.[\w-]+$/.test(token)) return undefined;
  const [head = '', body = ''] = token.split('.');
  const header = objectIn(Buffer.from(head, 'base64url'));
  const claims = objectIn(Buffer.from(body, 'base64url'));
  const kid = header?.['kid'];
  if (header === undefined || claims === undefined || typeof kid !== 'string') return undefined;
  return { alg: header['alg'], kid, iss: claims['iss'] };
}

/** Undefined: the key did not sign the token, or is for another algorithm. */
async function verifiedClaims(
  token: string,
  { kty, crv, n, e, x, y, alg: only }: SigningKey,
  alg: keyof typeof keyTypes,
): Promise<Claims | undefined> {
  if (kty !== keyTypes[alg] || (only !== undefined && only !== alg)) return undefined;
  try {
    // Only the members that are the key: a JWK can also have addresses and certificates.
    const members = { kty, crv, n, e, x, y };
    const key = await importJWK(JSON.parse(JSON.stringify(members)), alg);
    const { payload } = await compactVerify(token, key, { algorithms: [alg] });
    return objectIn(payload);
  } catch {
    // jose throws for every kind of mismatch. Whatever the cause, nothing was proved.
    return undefined;
  }
}

function isAlgorithm(alg: unknown): alg is keyof typeof keyTypes {
  return typeof alg === 'string' && Object.hasOwn(keyTypes, alg);
}

/** A NumericDate (RFC 7519 section 2), in milliseconds. */
function timeIn(claim: unknown): number | undefined {
  const isTime = typeof claim === 'number' && claim > 0 && claim <= latestSecond;
  return isTime ? claim * second : undefined;
}

function objectIn(bytes: Uint8Array): Claims | undefined {
  try {
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    return isObject ? (value as Claims) : undefined;
  } catch {
    return undefined;
  }
}
