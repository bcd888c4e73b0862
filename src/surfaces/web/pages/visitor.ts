import type { FastifyReply, FastifyRequest } from 'fastify';
import type { UserRef } from '../../../core/caller.ts';
import { AppError } from '../../../core/errors.ts';
import type { People } from '../../../features/people/people.ts';
import { findCredential } from '../credential.ts';
import type { Authentication } from '../authentication.ts';
import type { RequestLimits } from '../request-limits.ts';

/** The person at a page of Sites, and how a page sends them to sign in. */
export type Person = { readonly user: UserRef; readonly sessionId: string; readonly expiresAt: number };

/** Reads the person at the browser, if any. Keys and tokens open no site: they are checked, counted and refused. */
export function visitorReader({
  sessions,
  authentication,
  limits,
}: {
  sessions: People['sessions'];
  authentication: Pick<Authentication, 'authenticate'>;
  limits: Pick<RequestLimits, 'limitKey'>;
}): (request: FastifyRequest, reply: FastifyReply) => Promise<Person | null> {
  return async (request, reply) => {
    const credential = findCredential(request.raw);
    if (credential.kind === 'none') return null;
    if (credential.kind === 'session') {
      const found = await sessions.authenticate(credential.value);
      if (found.kind !== 'active') return null;
      const { id: sessionId, ...session } = found.session;
      request.caller = { kind: 'session', sessionId, ...session };
      return { user: session.user, sessionId, expiresAt: session.expiresAt };
    }
    const found = await authentication.authenticate(request);
    if (found instanceof AppError) throw found;
    request.caller = found;
    limits.limitKey(request, reply);
    throw new AppError('interactive_auth_required');
  };
}

export function signIn(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  return reply.redirect(signInLink(request), 303);
}

/** Returns to this page after the sign-in; a form returns to the page that contained it. */
export function signInLink(request: FastifyRequest): string {
  return `/auth/login?returnTo=${encodeURIComponent(request.url)}`;
}
