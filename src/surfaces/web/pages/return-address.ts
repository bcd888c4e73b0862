import type { FastifyReply, FastifyRequest } from 'fastify';
import { leavesTheApp, safeReturnTo } from '../../../features/people/login/return-to.ts';
import { cookieValue } from '../../../platform/cookies.ts';
import { hostCookie, sendPage } from './forms.ts';
import { continuePage } from './messages.ts';

/**
 * Where the last sign-in of this browser returns to. The sign-in itself forgets it when it ends, but the browser's Back
 * button can still open one of its pages. The cookie is only a hint: `safeReturnTo` reads it as it reads a link.
 */
export const returnCookie = '__Host-postern_return';

/** A longer address is left out, because browsers send the cookie with every request. */
const maxCookieLength = 1_000;

export function returnCookieFor(returnTo: string | undefined, uiOrigin: string, seconds: number): string {
  const value = encodeURIComponent(safeReturnTo(returnTo, uiOrigin));
  return hostCookie(returnCookie, value.length > maxCookieLength ? '' : value, seconds);
}

export function returnAddress(request: FastifyRequest, uiOrigin: string): string {
  return safeReturnTo(decoded(cookieValue(request.headers.cookie, returnCookie) ?? ''), uiOrigin);
}

export function signInAgainLink(request: FastifyRequest, uiOrigin: string): string {
  return `/auth/login?returnTo=${encodeURIComponent(returnAddress(request, uiOrigin))}`;
}

/** Ends a sign-in: a page that leaves the app must not follow its form directly. */
export function returnTo(reply: FastifyReply, path: string): FastifyReply {
  return leavesTheApp(path)
    ? sendPage(reply, continuePage({ title: 'You are signed in', to: path }))
    : reply.redirect(path, 303);
}

function decoded(value: string): string | undefined {
  try {
    return decodeURIComponent(value);
  } catch {
    return undefined;
  }
}
