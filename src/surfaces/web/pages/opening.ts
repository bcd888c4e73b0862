import type { FastifyReply, FastifyRequest } from 'fastify';
import { actorOf } from '../../../core/caller.ts';
import { AppError } from '../../../core/errors.ts';
import type { Grants, Opening } from '../../../features/grants/grants.ts';
import { sendPage } from './forms.ts';
import type { Page } from './layout.ts';
import { handOverPage, type Noun, signedOutPage, tooManyPage, unavailablePage } from './site-pages.ts';
import { type Person, signIn, signInLink } from './visitor.ts';

/**
 * The step on the way to private content that needs to know the person (private-access.md 2.2, steps 3 and 4), for sites
 * and for Environments.
 */
export type OpeningPages = {
  readonly noun: Noun;
  /** The status and the page of a refusal, whatever the reason was. */
  readonly refused: (requestId: string) => { readonly status: 403 | 404; readonly page: Page };
  readonly gone: (requestId: string) => Page;
};

export async function openContent(
  request: FastifyRequest,
  reply: FastifyReply,
  person: Person | null,
  { open, pages }: { open: Grants['open']; pages: OpeningPages },
): Promise<FastifyReply> {
  if (person === null) return signIn(request, reply);
  // Only a page that a person opens passes on a code; a prefetched, framed or embedded one would leave an unused
  // code behind.
  if (!isNavigation(request)) return refuse(request, reply, pages);
  const { user, sessionId } = person;
  const opening = await orUnavailable(
    open({
      label: textOf(request, 'label'),
      binding: textOf(request, 'binding'),
      ticket: textOf(request, 'ticket'),
      user,
      sessionId,
      auditContext: { actor: actorOf(request.caller), origin: request.origin },
    }),
  );
  return show(request, reply, opening, pages);
}

type Shown = Opening | { readonly kind: 'unavailable'; readonly what: 'store' };

async function orUnavailable(opening: Promise<Opening>): Promise<Shown> {
  try {
    return await opening;
  } catch (error) {
    if (error instanceof AppError && error.code === 'store_unavailable')
      return { kind: 'unavailable', what: 'store' };
    throw error;
  }
}

function show(
  request: FastifyRequest,
  reply: FastifyReply,
  opening: Shown,
  pages: OpeningPages,
): FastifyReply {
  switch (opening.kind) {
    case 'opened':
      // With no-referrer the browser would send `Origin: null` with the form; strict-origin keeps this page's path
      // private.
      reply.header('referrer-policy', 'strict-origin');
      return sendPage(reply, handOverPage(pages.noun, opening));
    case 'refused':
      return refuse(request, reply, pages);
    case 'gone':
      return sendPage(reply.code(410), pages.gone(request.id));
    case 'signed_out':
      return sendPage(reply.code(401), signedOutPage(signInLink(request), request.id));
    case 'limited':
      reply.header('retry-after', String(opening.retryAfterSeconds));
      return sendPage(reply.code(429), tooManyPage(pages.noun, opening.retryAfterSeconds, request.id));
    case 'unavailable':
      reply.header('retry-after', '5');
      return sendPage(reply.code(503), unavailablePage(pages.noun, opening.what, request.url, request.id));
  }
}

function refuse(request: FastifyRequest, reply: FastifyReply, pages: OpeningPages): FastifyReply {
  const { status, page } = pages.refused(request.id);
  return sendPage(reply.code(status), page);
}

/** By the browser's headers; a GET without them counts as a navigation (threats T27, T28). */
function isNavigation({ method, headers }: FastifyRequest): boolean {
  const { 'sec-fetch-mode': mode = 'navigate', 'sec-fetch-dest': dest = 'document' } = headers;
  const isAhead = ['sec-purpose', 'purpose', 'x-moz'].some((name) => headers[name] !== undefined);
  return method === 'GET' && mode === 'navigate' && dest === 'document' && !isAhead;
}

/** A parameter that is sent twice or is not text counts as missing. */
function textOf(request: FastifyRequest, name: string): string {
  const { query } = request;
  const value: unknown = typeof query === 'object' && query !== null ? Reflect.get(query, name) : undefined;
  return typeof value === 'string' ? value : '';
}
