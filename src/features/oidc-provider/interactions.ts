import type { IncomingMessage, ServerResponse } from 'node:http';
import type { RequestOrigin } from '../../core/caller.ts';
import type { Clock } from '../../core/clock.ts';
import type Provider from 'oidc-provider';
import { errors } from 'oidc-provider';
import type { PasswordAnswer } from '../accounts/accounts.ts';
import { isMcpClient, isUnverified, webClientId } from './clients.ts';
import { grantName } from './connected-clients.ts';
import { cookieNames } from './cookies.ts';
import {
  methodsOf,
  type Passkeys,
  type RequestOptions,
  type SecondFactor,
  type SecondFactorAnswer,
  type SecondFactorQuestion,
  type SecondFactorResult,
} from '../passkeys/passkeys.ts';
import {
  type DefinitionOffer,
  type FindEnabledAccount,
  type McpResource,
  secondFactorStep,
} from './hardened-provider.ts';

/**
 * What a sign-in or consent page shows and does. An interaction belongs to the browser that has its cookie. `gone`
 * covers all other cases: expired, finished, or belonging to another browser.
 */
export type Interaction =
  | {
      readonly kind: 'sign_in';
      readonly uid: string;
      readonly clientName: string | null;
      readonly emailHint: string;
      /** What the browser needs for a sign-in with a passkey. Null: there are no passkeys at this address. */
      readonly passkey: RequestOptions | null;
      /** Where the form may redirect besides this origin, for the page's form-action (contract 10.11). */
      readonly formTarget: string | null;
    }
  | {
      readonly kind: 'second_factor';
      readonly uid: string;
      readonly clientName: string | null;
      /** E-mail of the account whose password was right. */
      readonly account: string;
      readonly question: SecondFactorQuestion;
      readonly formTarget: string | null;
    }
  | {
      readonly kind: 'consent';
      readonly uid: string;
      readonly clientName: string;
      /** False: the client registered itself or has its own metadata document, and chose its name. */
      readonly isKnown: boolean;
      /** E-mail of the account that is signed in, for which the client would act. */
      readonly account: string;
      readonly redirectHost: string | null;
      readonly scopes: readonly string[];
      /** Definitions that the person can choose for its agents. Null: the client is no MCP client. */
      readonly definitions: DefinitionOffer | null;
      readonly formTarget: string | null;
    }
  | { readonly kind: 'gone' };

export type Interactions = {
  read(request: IncomingMessage, response: ServerResponse): Promise<Interaction>;
  /** On success, where to send the browser. */
  signIn(
    request: IncomingMessage,
    response: ServerResponse,
    input: { email: string; password: string; origin: RequestOrigin },
  ): Promise<
    Exclude<PasswordAnswer, { kind: 'right' }> | { kind: 'continue'; location: string } | { kind: 'gone' }
  >;
  /** `response`: the JSON of the browser's answer. */
  signInByPasskey(
    request: IncomingMessage,
    response: ServerResponse,
    input: { answer: string; origin: RequestOrigin },
  ): Promise<{ kind: 'wrong' | 'disabled' | 'gone' } | { kind: 'continue'; location: string }>;
  /** The step after the password. Counts only for the account whose password was right. */
  answerSecondFactor(
    request: IncomingMessage,
    response: ServerResponse,
    input: { answer: SecondFactorAnswer; origin: RequestOrigin },
  ): Promise<
    Exclude<SecondFactorResult, { kind: 'right' }> | { kind: 'continue'; location: string } | { kind: 'gone' }
  >;
  decide(
    request: IncomingMessage,
    response: ServerResponse,
    answer: ConsentAnswer,
  ): Promise<{ kind: 'continue'; location: string } | { kind: 'gone' }>;
};

export type ConsentAnswer = {
  readonly decision: 'allow' | 'deny';
  /** The agent definition that the person chose; empty: none. */
  readonly definitionId: string;
  readonly origin: RequestOrigin;
};

export type InteractionsDeps = {
  provider: () => Provider;
  passkeys: Pick<Passkeys, 'beginSignIn' | 'signIn'>;
  secondFactor: Pick<SecondFactor, 'ask' | 'answer'>;
  findEnabledAccount: FindEnabledAccount;
  checkPassword: (email: string, password: string, origin: RequestOrigin) => Promise<PasswordAnswer>;
  /** Empty when there is no such account. */
  emailOf: (subject: string | undefined) => Promise<string>;
  /** A person allows a client something, so its registration stays. */
  keepClient: (clientId: string) => Promise<void>;
  mcp: Pick<McpResource, 'definitionsFor' | 'chosen'>;
  clock: Clock;
};

export function createInteractions(deps: InteractionsDeps): Interactions {
  const { provider, checkPassword, emailOf, clock } = deps;

  async function details(request: IncomingMessage, response: ServerResponse) {
    try {
      return await provider().interactionDetails(request, response);
    } catch (error) {
      if (error instanceof errors.SessionNotFound) return undefined;
      throw error;
    }
  }

  /** Also undefined for a client that may no longer be used: its interaction ends with an error of the provider. */
  async function findClient(clientId: string) {
    try {
      return await provider().Client.find(clientId);
    } catch (error) {
      if (error instanceof errors.InvalidClient || error instanceof errors.InvalidClientMetadata)
        return undefined;
      throw error;
    }
  }

  /** Finishes the step and removes its cookie, which the browser would otherwise send with every request. */
  async function finish(
    request: IncomingMessage,
    response: ServerResponse,
    uid: string,
    result: Parameters<Provider['interactionResult']>[2],
    mergeWithLastSubmission = false,
  ) {
    const location = await provider().interactionResult(request, response, result, {
      mergeWithLastSubmission,
    });
    const { cookies } = provider().createContext(request, response);
    cookies.set(cookieNames.interaction, null, { path: `/${uid}` });
    return { kind: 'continue', location } as const;
  }

  return {
    async read(request, response) {
      const interaction = await details(request, response);
      if (interaction === undefined) return { kind: 'gone' };
      const clientId = text(interaction.params['client_id']);
      const client = await findClient(clientId);
      const isOurs = clientId === webClientId;
      const redirectUri =
        interaction.deviceCode === undefined ? text(interaction.params['redirect_uri']) : '';
      const formTarget = isOurs ? null : targetOf(redirectUri);
      const clientName = client?.clientName ?? clientId;
      if (interaction.prompt.name === 'login') {
        return {
          kind: 'sign_in',
          uid: interaction.uid,
          clientName: isOurs ? null : clientName,
          emailHint: text(interaction.params['login_hint']).slice(0, 320),
          passkey: await deps.passkeys.beginSignIn(interaction.uid),
          formTarget,
        };
      }
      const subject = interaction.session?.accountId;
      if (interaction.prompt.name === secondFactorStep) {
        if (subject === undefined) return { kind: 'gone' };
        return {
          kind: 'second_factor',
          uid: interaction.uid,
          clientName: isOurs ? null : clientName,
          account: await emailOf(subject),
          question: await deps.secondFactor.ask(interaction.uid, subject),
          formTarget,
        };
      }
      return {
        kind: 'consent',
        uid: interaction.uid,
        clientName,
        isKnown: !isUnverified(clientId),
        account: await emailOf(subject),
        redirectHost: redirectUri === '' ? null : (URL.parse(redirectUri)?.host ?? null),
        scopes: scopesFor(clientId, text(interaction.params['scope'])),
        definitions: isMcpClient(clientId) ? await deps.mcp.definitionsFor(clientId) : null,
        formTarget,
      };
    },
    async signIn(request, response, { email, password, origin }) {
      const interaction = await details(request, response);
      if (interaction?.prompt.name !== 'login') return { kind: 'gone' };
      // Before the check, so that a new password meanwhile is later than the sign-in, and stored, because the browser may
      // continue much later. In milliseconds, to distinguish it from a sign-out in the same second (a NumericDate may have a
      // fraction, RFC 7519 section 2).
      const ts = clock.now() / 1_000;
      const answer = await checkPassword(email, password, origin);
      if (answer.kind !== 'right') return answer;
      const login = { accountId: answer.subject, amr: ['pwd'], ts };
      return await finish(request, response, interaction.uid, { login });
    },
    async signInByPasskey(request, response, { answer, origin }) {
      const interaction = await details(request, response);
      if (interaction?.prompt.name !== 'login') return { kind: 'gone' };
      // Before the check, so that a reset of the passkeys meanwhile is later than the sign-in.
      const ts = clock.now() / 1_000;
      const signedIn = await deps.passkeys.signIn(interaction.uid, answer, origin);
      if (signedIn === undefined) return { kind: 'wrong' };
      const { subject, isSynced } = signedIn;
      if ((await deps.findEnabledAccount(subject)) === undefined) return { kind: 'disabled' };
      const login = { accountId: subject, amr: methodsOf({ isSynced }), ts };
      return await finish(request, response, interaction.uid, { login });
    },
    async answerSecondFactor(request, response, { answer, origin }) {
      const interaction = await details(request, response);
      const subject = interaction?.session?.accountId;
      if (interaction?.prompt.name !== secondFactorStep || subject === undefined) return { kind: 'gone' };
      if ((await deps.findEnabledAccount(subject)) === undefined) return { kind: 'gone' };
      // Before the check, so that a reset of the passkeys meanwhile is later than the sign-in.
      const ts = clock.now() / 1_000;
      const result = await deps.secondFactor.answer(interaction.uid, subject, answer, origin);
      if (result.kind !== 'right') return result;
      // The consent, if any, comes after this step.
      const login = { accountId: subject, amr: ['pwd', ...result.amr], ts };
      return await finish(request, response, interaction.uid, { login });
    },
    async decide(request, response, { decision, definitionId, origin }) {
      const interaction = await details(request, response);
      if (interaction === undefined) return { kind: 'gone' };
      const accountId = interaction.session?.accountId;
      if (decision === 'deny' || interaction.prompt.name !== 'consent' || accountId === undefined) {
        return await finish(request, response, interaction.uid, {
          error: 'access_denied',
          error_description: 'The person declined the request.',
        });
      }
      const clientId = text(interaction.params['client_id']);
      const grant = new (provider().Grant)({ accountId, clientId });
      grant.addOIDCScope(text(interaction.params['scope']));
      for (const [resource, scopes] of Object.entries(missingScopes(interaction.prompt.details)))
        grant.addResourceScope(resource, scopes);
      await deps.keepClient(clientId);
      const consent = { grantId: await grant.save() };
      // If this fails, the client gets nothing of the grant.
      if (definitionId !== '' && isMcpClient(clientId))
        await deps.mcp.chosen(
          origin,
          { subject: accountId, clientId, grantId: grantName(consent.grantId) },
          definitionId,
        );
      return await finish(request, response, interaction.uid, { consent }, true);
    },
  };
}

/** The scopes of each resource that the client asks for (RFC 8707). The provider wrote and encrypted these details. */
function missingScopes(details: Readonly<Record<string, unknown>>): Record<string, string[]> {
  return (details['missingResourceScopes'] ?? {}) as Record<string, string[]>;
}

/** What the person allows. MCP clients stay connected, whether or not they ask for it. */
function scopesFor(clientId: string, requested: string): string[] {
  const scopes = requested.split(' ').filter(Boolean);
  return [...new Set(isMcpClient(clientId) ? [...scopes, 'offline_access'] : scopes)];
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** `https://client.example` for web redirects, `com.example.app:` for native ones; CSP cannot express `[::1]`. */
function targetOf(redirectUri: string): string | null {
  const url = URL.parse(redirectUri);
  if (url === null) return null;
  return url.origin === 'null' || url.hostname.startsWith('[') ? url.protocol : url.origin;
}
