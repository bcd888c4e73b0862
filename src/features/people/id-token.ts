// Reads the claims of an ID token that say how the person signed in. The provider chose them, so they are bounded here.

/** Provider and server may differ by this much. */
const maxClockSkewMs = 60_000;

/** @throws Error when the time lies in the future, because such a proof would stay fresh for too long */
export function authenticatedAt(authTime: unknown, now: number): number | null {
  if (typeof authTime !== 'number') return null;
  const at = Math.round(authTime * 1_000);
  if (at > now + maxClockSkewMs)
    throw Object.assign(new Error('The auth_time of the ID token lies in the future.'), {
      code: 'auth_time_in_future',
    });
  return Math.min(at, now);
}

/** @returns a claim of at most 200 characters */
export function textIn(claim: unknown): string | null {
  return typeof claim === 'string' && claim !== '' && claim.length <= 200 ? claim : null;
}

/** @returns at most ten methods (`amr`, RFC 8176) */
export function methodsIn(amr: unknown): string[] | null {
  if (!Array.isArray(amr)) return null;
  return amr.filter((method) => typeof method === 'string' && /^[\w.-]{1,40}$/.test(method)).slice(0, 10);
}
