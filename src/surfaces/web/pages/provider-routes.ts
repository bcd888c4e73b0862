import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { AppError } from '../../../core/errors.ts';
import { deviceSeconds, type KnownDevices } from '../../../features/accounts/known-devices.ts';
import type { People } from '../../../features/people/people.ts';
import type { OidcProvider } from '../../../features/oidc-provider/oidc-provider.ts';
import type { AnonymousStep } from '../../../features/people/login/sign-in-limit.ts';
import type { SignInOrigin } from '../../../features/accounts/password-check.ts';
import { isRefusal } from '../../../features/oidc-provider/failures.ts';
import type { Interaction } from '../../../features/oidc-provider/interactions.ts';
import type { SecondFactorAnswer } from '../../../features/passkeys/passkeys.ts';
import { cookieValue } from '../../../platform/cookies.ts';
import type { RequestRecords } from '../request-records.ts';
import { consentPage } from './consent.ts';
import { checkOwnOrigin } from '../request-steps.ts';
import { field, hostCookie, leaveForm, preparePages, sendPage } from './forms.ts';
import { type Page, policyFor } from './layout.ts';
import { errorPage, signInIsGone } from './messages.ts';
import { moveToOwnHost, movesToOwnHost } from './own-host.ts';
import { returnAddress, signInAgainLink } from './return-address.ts';
import { secondFactorPage } from './second-factor.ts';
import { signInPage } from './sign-in.ts';
import { isSignedIn } from './signed-in.ts';

/** The built-in provider: its protocol endpoints unchanged, and its sign-in and consent pages in our own layout. */
const access = { access: { callers: 'anyone', identity: 'none' } } as const;

type Deps = {
  identity: Pick<OidcProvider, 'interactions' | 'serveProvider'> &
    Pick<People, 'limitSignIn' | 'sessions'> & { knownDevices: Pick<KnownDevices, 'issue'> };
  uiOrigin: string;
  records: Pick<RequestRecords, 'denied'>;
};

const deviceCookie = '__Host-postern_device';

/**
 * `/identity/interaction/{uid}`: sign-in, then a second factor where the account must have one, then consent when the client is
 * not our own.
 */
export function interactionPages({ identity, uiOrigin, records }: Deps): (scope: FastifyInstance) => void {
  const { interactions } = identity;
  const showGone = (request: FastifyRequest, reply: FastifyReply) =>
    sendPage(
      reply.code(400),
      errorPage({
        title: 'This page has expired',
        message: signInIsGone,
        requestId: request.id,
        retry: { href: signInAgainLink(request, uiOrigin), label: 'Sign in again' },
      }),
    );
  const show = (request: FastifyRequest, reply: FastifyReply, interaction: Interaction, retry?: Retry) =>
    interaction.kind === 'gone'
      ? showGone(request, reply)
      : sendPage(reply, interactionPage(interaction, retry));
  return (scope) => {
    preparePages(scope, records);
    moveToOwnHost(scope, uiOrigin);

    scope.get('/identity/interaction/:uid', { config: access }, async (request, reply) => {
      const interaction = await interactions.read(request.raw, reply.raw);
      // The Back button opens the form of a finished sign-in.
      if (interaction.kind === 'gone' && (await isSignedIn(request, identity.sessions)))
        return reply.redirect(returnAddress(request, uiOrigin), 303);
      return show(request, reply, interaction);
    });

    async function signInByPasskey(request: FastifyRequest, reply: FastifyReply) {
      const { origin } = request;
      const answer = field(request, 'passkey', 12_000);
      const outcome = await interactions.signInByPasskey(request.raw, reply.raw, { answer, origin });
      if (outcome.kind === 'gone') return showGone(request, reply);
      if (outcome.kind === 'continue') return reply.redirect(outcome.location, 303);
      const interaction = await interactions.read(request.raw, reply.raw);
      const isDisabled = outcome.kind === 'disabled';
      return show(request, reply.code(isDisabled ? 403 : 401), interaction, {
        email: '',
        problem: isDisabled
          ? accountDisabled
          : 'Postern did not accept this passkey. Try again, or use your password.',
        needsHelp: false,
      });
    }

    async function answerSecondFactor(
      request: FastifyRequest,
      reply: FastifyReply,
      kind: SecondFactorAnswer['kind'],
    ) {
      const { origin } = request;
      const text = kind === 'recovery_code' ? field(request, 'code', 40) : field(request, 'passkey', 12_000);
      const answer = { kind, text };
      const outcome = await interactions.answerSecondFactor(request.raw, reply.raw, { answer, origin });
      if (outcome.kind === 'gone') return showGone(request, reply);
      if (outcome.kind === 'continue') return reply.redirect(outcome.location, 303);
      const interaction = await interactions.read(request.raw, reply.raw);
      if (outcome.kind === 'throttled') return showThrottled(request, reply, interaction, outcome);
      const problem = outcome.kind === 'refused' ? outcome.problem : wrongFactor[kind];
      return show(request, reply.code(401), interaction, { email: '', problem, needsHelp: false });
    }

    function showThrottled(
      request: FastifyRequest,
      reply: FastifyReply,
      interaction: Interaction,
      { retryAfterSeconds, email = '' }: { retryAfterSeconds: number; email?: string },
    ) {
      const minutes = Math.ceil(retryAfterSeconds / 60);
      reply.code(429).header('retry-after', String(retryAfterSeconds));
      const wait = minutes === 1 ? 'a minute' : `${minutes} minutes`;
      const problem = `Too many attempts. Wait ${wait}, then try again.`;
      return show(request, reply, interaction, { email, problem, needsHelp: true });
    }

    scope.post('/identity/interaction/:uid', { config: access }, async (request, reply) => {
      checkOwnOrigin(request, uiOrigin);
      const decision = field(request, 'decision', 20);
      if (decision === 'allow' || decision === 'deny') {
        const outcome = await interactions.decide(request.raw, reply.raw, {
          decision,
          definitionId: field(request, 'definition', 60),
          origin: request.origin,
        });
        if (outcome.kind === 'gone') return showGone(request, reply);
        return leaveForm(request, reply, { title: 'Your answer was sent', to: outcome.location });
      }
      const factor = secondFactors.get(decision);
      if (decision === 'passkey' || factor !== undefined) {
        const counted = identity.limitSignIn('credential', request.ip);
        await (factor === undefined
          ? signInByPasskey(request, reply)
          : answerSecondFactor(request, reply, factor));
        if (reply.statusCode === 303) counted.succeed();
        return reply;
      }
      const email = field(request, 'email', 320).trim();
      const origin: SignInOrigin = {
        ...request.origin,
        deviceCookie: cookieValue(request.headers.cookie, deviceCookie),
      };
      const outcome = await interactions.signIn(request.raw, reply.raw, {
        email,
        password: field(request, 'password', 200),
        origin,
      });
      if (outcome.kind === 'gone') return showGone(request, reply);
      if (outcome.kind === 'continue') {
        const device = hostCookie(deviceCookie, identity.knownDevices.issue(email), deviceSeconds);
        // Appended to the provider's own cookies of this response, which a header set through Fastify would replace.
        reply.raw.appendHeader('set-cookie', device);
        return reply.redirect(outcome.location, 303);
      }
      const interaction = await interactions.read(request.raw, reply.raw);
      if (outcome.kind === 'throttled')
        return showThrottled(request, reply, interaction, { ...outcome, email });
      const problem =
        outcome.kind === 'disabled' ? accountDisabled : 'The e-mail and password do not match an account.';
      return show(request, reply.code(outcome.kind === 'disabled' ? 403 : 401), interaction, {
        email,
        problem,
        needsHelp: outcome.kind !== 'disabled',
      });
    });
  };
}

/** The kinds of answers by the form's `decision`. */
const secondFactors = new Map<string, SecondFactorAnswer['kind']>([
  ['second_passkey', 'passkey'],
  ['new_passkey', 'new_passkey'],
  ['recovery_code', 'recovery_code'],
]);

const wrongFactor: Readonly<Record<SecondFactorAnswer['kind'], string>> = {
  passkey: 'This is not a passkey of your account. Use another one, or a recovery code.',
  new_passkey: 'The browser created no passkey that Postern can use. Try again.',
  recovery_code: 'This is not a recovery code of your account, or it was already used.',
};

const accountDisabled = 'This account is disabled. Ask an administrator to enable it.';

type Retry = { readonly email: string; readonly problem: string; readonly needsHelp: boolean };

function interactionPage(interaction: Exclude<Interaction, { kind: 'gone' }>, retry?: Retry): Page {
  const action = `/identity/interaction/${interaction.uid}`;
  if (interaction.kind === 'consent') return consentPage({ ...interaction, action });
  if (interaction.kind === 'second_factor')
    return secondFactorPage({ ...interaction, action, problem: retry?.problem });
  return signInPage({
    action,
    clientName: interaction.clientName,
    email: retry?.email ?? interaction.emailHint,
    passkey: interaction.passkey,
    problem: retry?.problem,
    needsHelp: retry?.needsHelp ?? false,
    formTarget: interaction.formTarget,
  });
}

/** People post to these through our pages. Every other endpoint is for programs, which send no Origin. */
const formPaths = new Set(['/device', '/session/end/confirm']);

/** People open these; under another host their cookies would be missing. Every other endpoint is for programs. */
const pagePaths = new Set(['/auth', '/device', '/session/end']);

/** Requests that are throttled by address: those that store a row without a credential, or try one. */
function stepOf(method: string, path: string): AnonymousStep | undefined {
  if (path === '/auth') return 'authorization';
  if (path === '/device/auth' && method === 'POST') return 'device';
  if (path === '/device' && method === 'POST') return 'device_code';
  if (sessionPath.test(path)) return 'page';
  return path === '/me' || /^\/token(?:\/|$)/.test(path) ? 'credential' : undefined;
}

/** Pages and the paths that resume them: each creates a provider session for a browser that has none. */
const sessionPath = /^\/(?:auth|device|session\/end)(?:\/|$)/;

/** Characters of one parameter: the provider stores the parameters of a sign-in, a device or a sign-out. */
const maxParameterLength = 1_024;
/** An ID token contains names and a signature. */
const maxIdTokenLength = 4_096;
/** Bytes of a form, all its parameters together. */
const maxFormBytes = 8_192;

/** @throws AppError `invalid_query`, `invalid_body`, `body_too_large` */
function checkSize(request: FastifyRequest, path: string): void {
  const [, query = ''] = path.split('?', 2);
  for (const [name, value] of new URLSearchParams(query)) {
    const longest = name === 'id_token_hint' ? maxIdTokenLength : maxParameterLength;
    if (value.length <= longest) continue;
    const which = /^[a-z_]{1,40}$/.test(name) ? ` "${name}"` : '';
    throw new AppError('invalid_query', {
      message: `The parameter${which} is longer than ${longest} characters.`,
      hint: 'Send a shorter value. An application keeps a long value itself and sends a reference to it.',
    });
  }
  const { 'content-length': length, 'transfer-encoding': encoding } = request.headers;
  if (Number(length ?? 0) > maxFormBytes) {
    throw new AppError('body_too_large', { hint: `Send at most ${maxFormBytes} bytes.` });
  }
  // The provider reads the body itself, so its length must be known before.
  if (encoding !== undefined) {
    throw new AppError('invalid_body', {
      message: 'The request does not state the length of its body.',
      hint: 'Send Content-Length instead of Transfer-Encoding.',
    });
  }
}

/**
 * The provider's router accepts several spellings of a path. The checks here are by path, so only one spelling is
 * allowed: lower case, no empty or trailing segment, nothing percent-encoded.
 */
const canonicalPath = /^(?:\/[a-z0-9._-]+)+$/;
/**
 * `/auth/{uid}` and `/device/{uid}` resume an interrupted interaction, `/reg/{id}` names a client: their ids have
 * capitals.
 */
const resumePath = /^\/(?:auth|device|reg)\/[A-Za-z0-9_-]{43}$/;

function isCanonical(path: string): boolean {
  const plain = path.split('?', 1)[0] ?? '';
  return canonicalPath.test(plain) || resumePath.test(plain);
}

/** MCP clients of revisions before 2025-06-18 know only the address without the issuer's path. */
const metadataPaths = [
  'oauth-authorization-server/identity',
  'openid-configuration/identity',
  'oauth-authorization-server',
];

/** Everything else below `/identity`, and the discovery paths of RFC 8414 section 3.1. */
export function providerEndpoints({ identity, uiOrigin, records }: Deps): (scope: FastifyInstance) => void {
  return (scope) => {
    preparePages(scope, records);
    scope.removeAllContentTypeParsers();
    // The provider reads the body itself.
    scope.addContentTypeParser('*', (_request, _body, done) => done(null));

    const serve = (request: FastifyRequest, reply: FastifyReply, path: string) => {
      if (!isCanonical(path)) throw new AppError('not_found');
      const plain = path.split('?', 1)[0] ?? '';
      if (pagePaths.has(plain) && movesToOwnHost(request, reply, uiOrigin)) return;
      if (request.method === 'POST' && formPaths.has(plain)) checkOwnOrigin(request, uiOrigin);
      checkSize(request, path);
      const step = stepOf(request.method, plain);
      const counted = step === undefined ? undefined : identity.limitSignIn(step, request.ip);
      if (counted !== undefined && step === 'credential') {
        reply.raw.once('close', () => {
          if (!isRefusal(reply.raw)) counted.succeed();
        });
      }
      // The library submits some forms with its own script, and adds that script's hash to this policy.
      reply.header('content-security-policy', policyFor({}));
      reply.hijack();
      for (const [name, value] of Object.entries(reply.getHeaders())) {
        if (value !== undefined) reply.raw.setHeader(name, value);
      }
      identity.serveProvider(request.raw, reply.raw, { path, address: request.ip });
    };

    scope.route({
      method: ['GET', 'POST', 'PUT', 'DELETE', 'OPTIONS'],
      url: '/identity/*',
      config: access,
      handler: (request, reply) => serve(request, reply, request.url.slice('/identity'.length)),
    });
    for (const path of metadataPaths) {
      scope.get(`/.well-known/${path}`, { config: access }, (request, reply) =>
        serve(request, reply, `/.well-known/${path.split('/', 1)[0]}`),
      );
    }
  };
}

/** Replaces all of this when another provider manages the accounts. */
export function providerElsewhere({
  issuer,
  records,
}: {
  issuer: string;
  records: Pick<RequestRecords, 'denied'>;
}): (scope: FastifyInstance) => void {
  return (scope) => {
    preparePages(scope, records);
    const refuse = () => {
      throw new AppError('not_found', {
        message: 'This installation does not run its own identity provider.',
        hint: `People and programs sign in at ${issuer}`,
      });
    };
    for (const url of [
      '/identity/*',
      '/.well-known/oauth-authorization-server/identity',
      '/.well-known/oauth-authorization-server',
    ])
      scope.route({ method: ['GET', 'POST'], url, config: access, handler: refuse });
  };
}
