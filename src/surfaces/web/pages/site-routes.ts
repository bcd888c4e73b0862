import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { AppError } from '../../../core/errors.ts';
import { actorOf } from '../../../core/caller.ts';
import type { Grants, Opening } from '../../../features/grants/grants.ts';
import type { People } from '../../../features/people/people.ts';
import type { Authentication } from '../authentication.ts';
import type { RequestLimits } from '../request-limits.ts';
import type { RequestRecords } from '../request-records.ts';
import { preparePages, sendPage } from './forms.ts';
import { moveToOwnHost } from './own-host.ts';
import {
  closedPage,
  handOverPage,
  noSuchSitePage,
  refusedPage,
  signedOutPage,
  sitesOffPage,
  tooManyPage,
  unavailablePage,
} from './site-pages.ts';
import { signIn, signInLink, visitorReader } from './visitor.ts';

/**
 * The way to a site in a browser. It begins at the permanent link (`/s/{id}`). The step of opening a private site that
 * needs to know the person is here too (private-access.md 2.2, steps 3 and 4). A person without access to a site learns
 * nothing about it.
 */
const access = { access: { callers: 'anyone', identity: 'none' } } as const;

export function sitePages(deps: {
  grants: Pick<Grants, 'open' | 'linkTarget'>;
  sessions: People['sessions'];
  isEnabled: () => Promise<boolean>;
  /** The content host of a label, ending in a slash. */
  urlOf: (label: string) => string;
  uiOrigin: string;
  authentication: Pick<Authentication, 'authenticate'>;
  limits: Pick<RequestLimits, 'limitKey'>;
  records: Pick<RequestRecords, 'denied'>;
}): (scope: FastifyInstance) => void {
  const { grants, urlOf, uiOrigin } = deps;
  const personOf = visitorReader(deps);

  return (scope) => {
    preparePages(scope, deps.records);
    moveToOwnHost(scope, uiOrigin);

    scope.get('/s/:id', { config: access }, async (request, reply) => {
      const person = await personOf(request, reply);
      if (!(await deps.isEnabled())) return sendPage(reply.code(403), sitesOffPage(request.id));
      const { id } = request.params as { id: string };
      const target = await grants.linkTarget(id, person?.user ?? null);
      if (target.kind === 'content') return reply.redirect(urlOf(target.label), 302);
      if (target.kind === 'closed')
        return sendPage(reply.code(410), closedPage(id, target.status, request.id));
      // The person may change the response, so everyone must sign in first, for private and for missing sites alike.
      if (person === null) return signIn(request, reply);
      return sendPage(reply.code(404), noSuchSitePage(request.id));
    });

    scope.get('/sites/open', { config: access }, async (request, reply) => {
      const person = await personOf(request, reply);
      if (person === null) return signIn(request, reply);
      // Only a page that a person opens passes on a code; a prefetched, framed or embedded one would leave an unused
      // code behind.
      if (!isNavigation(request)) return sendPage(reply.code(403), refusedPage(request.id));
      const { user, sessionId } = person;
      const opening = await orUnavailable(
        grants.open({
          label: textOf(request, 'label'),
          binding: textOf(request, 'binding'),
          ticket: textOf(request, 'ticket'),
          user,
          sessionId,
          auditContext: { actor: actorOf(request.caller), origin: request.origin },
        }),
      );
      return show(request, reply, opening);
    });
  };
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

function show(request: FastifyRequest, reply: FastifyReply, opening: Shown): FastifyReply {
  switch (opening.kind) {
    case 'opened':
      // With no-referrer the browser would send `Origin: null` with the form; strict-origin keeps this page's path
      // private.
      reply.header('referrer-policy', 'strict-origin');
      return sendPage(reply, handOverPage(opening));
    case 'refused':
      return sendPage(reply.code(403), refusedPage(request.id));
    case 'signed_out':
      return sendPage(reply.code(401), signedOutPage(signInLink(request), request.id));
    case 'limited':
      reply.header('retry-after', String(opening.retryAfterSeconds));
      return sendPage(reply.code(429), tooManyPage(opening.retryAfterSeconds, request.id));
    case 'unavailable':
      reply.header('retry-after', '5');
      return sendPage(reply.code(503), unavailablePage(opening.what, request.url, request.id));
  }
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
