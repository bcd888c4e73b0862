import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { hostCookie, readCookie } from './forms.ts';

/**
 * Cookies and the sign-in's redirects belong to SERVICE_UI_URL. A page opened under another name of this machine,
 * such as 127.0.0.1, would fail late; so the browser is sent to the same page under the right name at once.
 */
const movedCookie = '__Host-postern_moved';
const movedCookieSeconds = 5;

export function moveToOwnHost(scope: FastifyInstance, uiOrigin: string): void {
  scope.addHook('onRequest', (request, reply, done) => {
    if (!movesToOwnHost(request, reply, uiOrigin)) done();
  });
}

/** True when it answered. Pages and nothing else: a form or an API call is never carried to another address. */
export function movesToOwnHost(request: FastifyRequest, reply: FastifyReply, uiOrigin: string): boolean {
  if (request.method !== 'GET' && request.method !== 'HEAD') return false;
  if (isOwnHost(request, uiOrigin) || !request.url.startsWith('/')) return false;
  // A proxy that hides the browser's Host makes the right address look wrong. The browser then brings back the
  // cookie it was sent away with, and is served instead of being sent around for ever.
  if (readCookie(request, movedCookie) !== undefined) return false;
  reply
    .header('set-cookie', hostCookie(movedCookie, '1', movedCookieSeconds))
    // Our origin before the path as it came, so that no path can name another host.
    .redirect(new URL(uiOrigin + request.url).href, 302);
  return true;
}

function isOwnHost(request: FastifyRequest, uiOrigin: string): boolean {
  const { protocol, host } = new URL(uiOrigin);
  const asked = `${protocol}//${request.host}`;
  // HTTP/1.0 may come without a Host; what is no host at all is not worth a redirect.
  return !URL.canParse(asked) || new URL(asked).host === host;
}
