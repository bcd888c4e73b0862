import type { IncomingMessage } from 'node:http';
import { AppError } from '../../core/errors.ts';
import { mayHoldKey } from '../../core/key-shape.ts';
import { cookiesIn } from '../../platform/cookies.ts';

/**
 * Finds the one credential of a request (contract 3) without judging it. Two credentials of any kind are refused:
 * Postern never picks the better one (matrix SO-02).
 */
export type Credential =
  | { readonly kind: 'none' }
  | { readonly kind: 'session'; readonly value: string }
  | { readonly kind: 'bearer'; readonly value: string }
  /** An Authorization header that is not `Bearer <one token>`. */
  | { readonly kind: 'malformed' };

export const sessionCookie = '__Host-postern_session';
const maxCredentialLength = 4_096;

export function findCredential(request: IncomingMessage): Credential {
  let authorization: string | undefined;
  let cookie: string | undefined;
  const raw = request.rawHeaders;
  // rawHeaders, because Node silently keeps only the first Authorization header (KF-06).
  for (let at = 0; at < raw.length; at += 2) {
    const name = raw[at] as string;
    if (name.length === 13 && name.toLowerCase() === 'authorization') {
      if (authorization !== undefined) throw new AppError('ambiguous_credential');
      authorization = raw[at + 1];
    } else if (name.length === 6 && name.toLowerCase() === 'cookie') {
      cookie = cookie === undefined ? raw[at + 1] : `${cookie}; ${raw[at + 1]}`;
    }
  }
  const session = cookie === undefined ? undefined : findSessionCookie(cookie);
  if (authorization === undefined)
    return session === undefined ? { kind: 'none' } : { kind: 'session', value: session };
  if (session !== undefined) throw new AppError('ambiguous_credential');
  return parseAuthorization(authorization);
}

function parseAuthorization(header: string): Credential {
  if (header.length > maxCredentialLength) return { kind: 'malformed' };
  // The usual spelling. Only for keys: the digest covers every character, so it decides whether the key is complete.
  if (header.startsWith('Bearer ') && mayHoldKey(header) && !header.includes(' ', 7))
    return { kind: 'bearer', value: header.slice(7) };
  // RFC 6750: the scheme is case-insensitive, the token is b64token and nothing follows it.
  const match = /^bearer +([A-Za-z0-9\-._~+/]+=*) *$/i.exec(header);
  return match?.[1] === undefined ? { kind: 'malformed' } : { kind: 'bearer', value: match[1] };
}

function findSessionCookie(header: string): string | undefined {
  const found = cookiesIn(header).filter(({ name }) => name === sessionCookie);
  if (found.length > 1)
    throw new AppError('ambiguous_credential', { message: 'The request carries the session cookie twice.' });
  return found[0]?.value;
}
