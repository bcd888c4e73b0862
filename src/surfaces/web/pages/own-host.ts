import { cookieValue } from '../../../platform/cookies.ts';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { hostCookie } from './forms.ts';

/**
 * Cookies and the sign-in's redirects belong to SERVICE_UI_URL. A page opened under another name of this machine, such
 * as 127.0.0.1, would fail late. So the browser is redirected immediately to the same page under the right name.
 */
const movedCookie = '__Host-postern_moved';
const movedCookieSeconds = 5;

export function moveToOwnHost(scope: FastifyInstance, uiOrigin: string): void {
  scope.addHook('onRequest', (request, reply, done) => {
    if (!movesToOwnHost(request, reply, uiOrigin)) done();
  });
}

/** True when it sent a redirect. Pages only: a form or an API call is never redirected to another address. */
export function movesToOwnHost(request: FastifyRequest, reply: FastifyReply, uiOrigin: string): boolean {
  if (request.method !== 'GET' && request.method !== 'HEAD') return false;
  if (isOwnHost(request, uiOrigin) || !request.url.startsWith('/')) return false;
  // A proxy that hides the browser's Host makes the right address look wrong. The browser then sends back the cookie
  // that came with the redirect, and is served instead of being redirected forever.
  if (cookieValue(request.headers.cookie, movedCookie) !== undefined) return false;
  reply
    .header('set-cookie', hostCookie(movedCookie, '1', movedCookieSeconds))
    // Puts our origin in front of the unchanged path, so that no path can name another host.
    .redirect(new URL(uiOrigin + request.url).href, 302);
  return true;
}

function isOwnHost(request: FastifyRequest, uiOrigin: string): boolean {
  const { protocol, host } = new URL(uiOrigin);
  const asked = `${protocol}//${request.host}`;
  // HTTP/1.0 may come without a Host header, and an invalid host is not worth a redirect.
  return !URL.canParse(asked) || new URL(asked).host === host;
}
