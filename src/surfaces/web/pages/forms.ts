import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { routeOf, toAppError } from '../to-app-error.ts';
import type { RequestRecords } from '../request-records.ts';
import type { Page } from './layout.ts';
import { continuePage, errorPage, keyInAddressPage } from './messages.ts';

/**
 * Shared parts of every page with a form: parsing of its body and pages for refusals. A refusal
 * shown as a page is audited like one of the API.
 */
export function preparePages(scope: FastifyInstance, records: Pick<RequestRecords, 'denied'>): void {
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser(
    'application/x-www-form-urlencoded',
    { parseAs: 'string', bodyLimit: 16_384 },
    (_request, body, done) => done(null, parseForm(String(body))),
  );
  scope.setErrorHandler((error, request, reply) => {
    const failure = toAppError(error, request);
    // Programs get the envelope; the one translator logs unknown errors.
    if (failure.status >= 500 && failure.code === 'internal_error') throw error;
    if (!(request.headers.accept ?? '').includes('text/html')) throw error;
    records.denied(failure, request.caller, routeOf(request), request.origin);
    reply.code(failure.status).headers(failure.headers);
    if (failure.code === 'credential_in_url') return sendPage(reply, keyInAddressPage(request.id));
    const isTemporary = failure.headers['retry-after'] !== undefined;
    // An empty reference is the address that the browser has open, for which there may be no GET after a form.
    const again = request.method === 'POST' ? '/' : '';
    return sendPage(
      reply,
      errorPage({
        title: isTemporary ? 'Try again in a moment' : 'The request failed',
        message: failure.message,
        hint: failure.hint,
        requestId: request.id,
        retry: isTemporary ? { href: again, label: 'Try again' } : { href: '/auth/login', label: 'Sign in' },
      }),
    );
  });
}

/** Fields by name. A repeated field is dropped altogether, so a required field then counts as missing. */
function parseForm(text: string): Record<string, string> {
  const fields = new URLSearchParams(text);
  const names = [...new Set(fields.keys())].filter((name) => fields.getAll(name).length === 1);
  return Object.fromEntries(names.map((name) => [name, fields.get(name) ?? '']));
}

export function field(request: FastifyRequest, name: string, maxLength: number): string {
  const { body } = request;
  if (typeof body !== 'object' || body === null || !Object.hasOwn(body, name)) return '';
  const value: unknown = Reflect.get(body, name);
  return typeof value === 'string' && value.length <= maxLength && !value.includes('\0') ? value : '';
}

export function sendPage(reply: FastifyReply, { document, contentSecurityPolicy }: Page): FastifyReply {
  return reply
    .header('content-type', 'text/html; charset=utf-8')
    .header('content-security-policy', contentSecurityPolicy)
    .send(document);
}

/**
 * Responds to a form whose redirects may lead to another host. A browser checks all of them against the form-action of
 * the page with the form. That policy cannot name a provider's address, nor `[::1]`, nor where a program redirects
 * next. So for a person who pressed the button, the chain ends with a page; a program that follows redirects gets the
 * redirect.
 */
export function leaveForm(
  request: FastifyRequest,
  reply: FastifyReply,
  next: { title: string; to: string },
): FastifyReply {
  return request.headers['sec-fetch-user'] === '?1'
    ? sendPage(reply, continuePage(next))
    : reply.redirect(next.to, 303);
}

/** Our cookies: `__Host-`, so Secure, Path=/ and no Domain, and never readable by a script (CS-03). */
export function hostCookie(name: `__Host-${string}`, value: string, maxAgeSeconds: number): string {
  return `${name}=${value}; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=${Math.max(0, Math.floor(maxAgeSeconds))}`;
}
