import type { Introspection } from './directory.ts';

/**
 * Parses an RFC 7662 answer strictly. Active means: `active: true` of the expected issuer, with a subject, a client and an
 * expiry in the future; an access token must also be a bearer token. Anything that is neither a clear yes nor a clear no is
 * `unavailable` (ID-11).
 */
export function readIntrospection(
  answer: Readonly<Record<string, unknown>>,
  expected: { issuer: string; now: number; hint?: 'access_token' | 'refresh_token' },
): Introspection {
  const { active, iss, sub, client_id: clientId, scope, exp, token_type: type } = answer;
  if (active === false) return { kind: 'inactive' };
  if (active !== true) return garbled('active');
  if (typeof sub !== 'string' || sub === '') return garbled('sub');
  if (typeof clientId !== 'string' || clientId === '') return garbled('client_id');
  if (typeof exp !== 'number' || !Number.isFinite(exp)) return garbled('exp');
  if (scope !== undefined && typeof scope !== 'string') return garbled('scope');
  // RFC 6750; MC-02: whatever the hint, a provider may answer for a refresh token, which has no Bearer type.
  if (expected.hint !== 'refresh_token' && !isBearer(type)) return { kind: 'inactive' };
  if (iss !== expected.issuer || exp * 1000 <= expected.now) return { kind: 'inactive' };
  return {
    kind: 'active',
    issuer: iss,
    subject: sub,
    clientId,
    scopes: scope === undefined || scope === '' ? [] : scope.split(' '),
    audiences: [answer['aud']].flat().filter((one) => typeof one === 'string'),
    grantId: grantIn(answer),
    expiresAt: exp * 1000,
  };
}

/** The built-in provider names the grant of a token (hardened-provider.ts); Keycloak names the provider's session. */
function grantIn({ postern_grant: grant, sid }: Readonly<Record<string, unknown>>): string | null {
  if (typeof grant === 'string') return grant;
  return typeof sid === 'string' ? sid : null;
}

/** Token types are compared without case (RFC 6749 section 5.1). */
function isBearer(type: unknown): boolean {
  return typeof type === 'string' && type.toLowerCase() === 'bearer';
}

function garbled(field: string): Introspection {
  return { kind: 'unavailable', reason: `garbled_${field}` };
}
