import type { IncomingMessage, ServerResponse } from 'node:http';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { AuditContext, Actor, UserRef } from '../../../core/caller.ts';
import type { Clock } from '../../../core/clock.ts';
import { maxPasswordLength, minPasswordLength } from '../../../features/accounts/passwords.ts';
import type { FirstAdministrator } from '../../../features/accounts/first-administrator.ts';
import type { People } from '../../../features/people/people.ts';
import { cookieNames } from '../../../features/oidc-provider/cookies.ts';
import { emailSchema, nameSchema } from '../../../features/accounts/schemas.ts';
import { cookieValue } from '../../../platform/cookies.ts';
import { findCredential, sessionCookie } from '../credential.ts';
import type { RequestRecords } from '../request-records.ts';
import { checkOwnOrigin } from '../request-steps.ts';
import { field, hostCookie, preparePages, sendPage } from './forms.ts';
import { errorPage, notSetUpPage, signedOutPage, signInIsGone } from './messages.ts';
import { moveToOwnHost } from './own-host.ts';
import { returnAddress, returnCookie, returnCookieFor, returnTo, signInAgainLink } from './return-address.ts';
import { html } from '../html.ts';
import { setupPage } from './setup.ts';
import { isSignedIn } from './signed-in.ts';

/** Sign-in and sign-out of the web app, and the first administrator's page. */
const loginCookie = '__Host-postern_login';

const access = { access: { callers: 'anyone', identity: 'none' } } as const;
const loginCookieSeconds = 15 * 60;

export function authPages(deps: {
  identity: Pick<People, 'login' | 'sessions' | 'limitSignIn'> & {
    firstAdministrator: Pick<FirstAdministrator, 'hasAdministrator' | 'setUp'>;
    /** Ends the session, if there is one, and the browser's session at the provider. */
    signOut(
      auditContext: AuditContext,
      sessionId: string | undefined,
      at: { request: IncomingMessage; response: ServerResponse },
    ): Promise<void>;
  };
  uiOrigin: string;
  clock: Clock;
  records: Pick<RequestRecords, 'denied'>;
}): (scope: FastifyInstance) => void {
  const { identity, uiOrigin, clock } = deps;

  return (scope) => {
    preparePages(scope, deps.records);
    moveToOwnHost(scope, uiOrigin);
    // An installation never loses its last administrator, so the check runs only until there is one.
    let isSetUp = false;

    async function personAt(request: FastifyRequest): Promise<UserRef | null> {
      const value = sessionOf(request);
      const found = value === undefined ? undefined : await identity.sessions.authenticate(value);
      return found?.kind === 'active' ? found.session.user : null;
    }

    scope.get('/auth/login', { config: access }, async (request, reply) => {
      identity.limitSignIn('login', request.ip);
      isSetUp ||= await identity.firstAdministrator.hasAdministrator();
      if (!isSetUp) return sendPage(reply.code(409), notSetUpPage());
      const wanted = queryValue(request, 'returnTo');
      const { redirect, browserSecret } = await identity.login.start({
        returnTo: wanted,
        browserSecret: cookieValue(request.headers.cookie, loginCookie),
        fresh: queryValue(request, 'fresh') === 'true' ? { person: await personAt(request) } : null,
      });
      return reply
        .header('set-cookie', [
          hostCookie(loginCookie, browserSecret, loginCookieSeconds),
          returnCookieFor(wanted, uiOrigin, loginCookieSeconds),
        ])
        .redirect(redirect.href, 303);
    });

    scope.get('/auth/callback', { config: access }, async (request, reply) => {
      const outcome = await identity.login.finish(auditContextOf(request), {
        callback: new URL(request.url, uiOrigin),
        browserSecret: cookieValue(request.headers.cookie, loginCookie),
        previousSession: sessionOf(request),
      });
      if (outcome.kind === 'prove_again') return reply.redirect(outcome.redirect.href, 303);
      if (outcome.kind === 'refused') {
        // The Back button opens the answer of a finished sign-in.
        if (outcome.reason === 'no_attempt' && (await isSignedIn(request, identity.sessions)))
          return returnTo(reply, returnAddress(request, uiOrigin));
        return refuseSignIn(request, reply, outcome.reason, signInAgainLink(request, uiOrigin));
      }
      const seconds = (outcome.expiresAt - clock.now()) / 1000;
      reply.header('set-cookie', hostCookie(sessionCookie, outcome.cookieValue, seconds));
      return returnTo(reply, outcome.returnTo);
    });

    scope.post('/auth/logout', { config: access }, async (request, reply) => {
      checkOwnOrigin(request, uiOrigin);
      const value = sessionOf(request);
      const found =
        value === undefined ? { kind: 'none' as const } : await identity.sessions.authenticate(value);
      // Also ends the provider's session, so that the next person at this browser, or with a copy of its cookies, must
      // sign in.
      const session = found.kind === 'active' ? found.session : undefined;
      const auditContext =
        session === undefined
          ? auditContextOf(request)
          : { actor: actorOfSession(session), origin: request.origin };
      await identity.signOut(auditContext, session?.id, { request: request.raw, response: reply.raw });
      const gone = [
        sessionCookie,
        loginCookie,
        returnCookie,
        cookieNames.session,
        `${cookieNames.session}.sig`,
      ] as const;
      reply.header(
        'set-cookie',
        gone.map((name) => hostCookie(name as `__Host-${string}`, '', 0)),
      );
      if (!(request.headers.accept ?? '').includes('text/html')) return reply.code(204).send();
      return reply.redirect('/auth/signed-out', 303);
    });

    scope.get('/auth/signed-out', { config: access }, async (_request, reply) =>
      sendPage(reply, signedOutPage()),
    );

    scope.get('/setup', { config: access }, async (request, reply) => {
      if (await identity.firstAdministrator.hasAdministrator()) return setupIsDone(request, reply);
      return sendPage(reply, setupPage({ email: '', name: '', token: '', minPasswordLength }));
    });

    scope.post('/auth/setup', { config: access }, async (request, reply) => {
      checkOwnOrigin(request, uiOrigin);
      const token = field(request, 'token', 200);
      const email = emailSchema.safeParse(field(request, 'email', 320));
      const name = nameSchema.safeParse(field(request, 'name', 200));
      const password = field(request, 'password', maxPasswordLength);
      const problem = setupProblem(email.success, name.success, password);
      if (problem !== undefined || !email.success || !name.success) {
        const view = {
          email: field(request, 'email', 320),
          name: field(request, 'name', 200),
          token,
          minPasswordLength,
          problem,
        };
        return sendPage(reply.code(400), setupPage(view));
      }
      const outcome = await identity.firstAdministrator.setUp(auditContextOf(request), {
        token,
        email: email.data,
        name: name.data,
        password,
      });
      if (outcome.kind === 'refused') return setupIsShut(request, reply);
      return reply.redirect('/auth/login', 303);
    });
  };
}

function setupProblem(isEmail: boolean, isName: boolean, password: string): string | undefined {
  if (!isName) return 'Please enter your name.';
  if (!isEmail) return 'Please enter a valid e-mail address.';
  if (password.length < minPasswordLength)
    return `The password needs at least ${minPasswordLength} characters.`;
  return undefined;
}

/**
 * Shown to everyone who opens the page. The link has not been checked yet, so the page says only that it is no longer
 * valid.
 */
function setupIsDone(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  return sendPage(
    reply.code(403),
    errorPage({
      title: 'This link does not work',
      message: 'This installation already has an administrator. The link creates only the first one.',
      hint: 'Sign in with your account, or ask an administrator for an account.',
      requestId: request.id,
      retry: { href: '/auth/login', label: 'Sign in' },
    }),
  );
}

/** The same response for wrong, expired and used links, and for an installation that already has its administrator. */
function setupIsShut(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  return sendPage(
    reply.code(403),
    errorPage({
      title: 'This link does not work',
      message: 'The link was used, it has expired, or this installation already has an administrator.',
      hint: html`As long as there is no administrator, the operator of the server can print a new link: <code>npm start -- admin login-link</code>`,
      requestId: request.id,
      retry: { href: '/auth/login', label: 'Sign in' },
    }),
  );
}

function refuseSignIn(
  request: FastifyRequest,
  reply: FastifyReply,
  reason: 'no_attempt' | 'denied' | 'failed',
  signInAgain: string,
): FastifyReply {
  const message = {
    no_attempt: signInIsGone,
    denied: 'The sign-in was cancelled.',
    failed: 'Postern could not accept the response of the identity provider.',
  }[reason];
  return sendPage(
    reply.code(400),
    errorPage({
      title: 'You are not signed in',
      message,
      requestId: request.id,
      retry: { href: signInAgain, label: 'Sign in again' },
    }),
  );
}

function sessionOf(request: FastifyRequest): string | undefined {
  const credential = findCredential(request.raw);
  return credential.kind === 'session' ? credential.value : undefined;
}

function queryValue(request: FastifyRequest, name: string): string | undefined {
  const values = new URL(request.url, 'http://localhost').searchParams.getAll(name);
  return values.length === 1 ? values[0] : undefined;
}

function actorOfSession({ id, user }: { id: string; user: UserRef }): Actor {
  return { kind: 'user', id: user.id, name: user.name, credential: id };
}

function auditContextOf(request: FastifyRequest): AuditContext {
  return {
    actor: { kind: 'anonymous', id: null, name: null, credential: null },
    origin: request.origin,
  };
}
