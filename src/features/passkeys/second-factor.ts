import type { z } from 'zod';
import type { AuditContext, RequestOrigin, Role } from '../../core/caller.ts';
import { AppError } from '../../core/errors.ts';
import type { SecondFactorLevel } from '../people/people.ts';
import type { CodeOwner, RecoveryCodes } from './recovery-codes.ts';
import type { PasskeyStore } from './passkey-store.ts';
import type { RecoveryCodeStore } from './recovery-code-store.ts';
import {
  type CreationOptions,
  noPasskeysHere,
  registrationIn,
  type registrationSchema,
  type RelyingParty,
  type RequestOptions,
} from './webauthn.ts';

/** The step after the password: a passkey or a recovery code of the same account. */
export type SecondFactor = {
  /** Whether the account must sign in with two factors. Rejects while that cannot be read. */
  isRequired(subject: string): Promise<boolean>;
  /** What the person is asked for. `interaction`: the sign-in that the answer must belong to. */
  ask(interaction: string, subject: string): Promise<SecondFactorQuestion>;
  answer(
    interaction: string,
    subject: string,
    sent: SecondFactorAnswer,
    origin: RequestOrigin,
  ): Promise<SecondFactorResult>;
  /** Why this person cannot require a second factor; null = can. */
  refusalFor(subject: string): Promise<AppError | null>;
};

/** Null: browsers have no passkeys at the address of the web app, or the account has only recovery codes. */
export type SecondFactorQuestion =
  | { readonly kind: 'use'; readonly options: RequestOptions | null }
  /** The account has no second factor, and gets its first passkey here. */
  | { readonly kind: 'add'; readonly options: CreationOptions | null };

/** `text`: the code, or `PublicKeyCredential.toJSON()` of the browser as text. */
export type SecondFactorAnswer = {
  readonly kind: 'passkey' | 'new_passkey' | 'recovery_code';
  readonly text: string;
};

export type SecondFactorResult =
  /** `amr`: authentication methods of RFC 8176. */
  | { readonly kind: 'right'; readonly amr: readonly string[] }
  | { readonly kind: 'wrong' }
  | { readonly kind: 'refused'; readonly problem: string }
  | { readonly kind: 'throttled'; readonly retryAfterSeconds: number };

/** A key in hardware or in software, with a verified user: two factors (RFC 8176). */
export const methodsOf = ({ isSynced }: { readonly isSynced: boolean }) => [
  isSynced ? 'swk' : 'hwk',
  'user',
  'mfa',
];

export type SecondFactorDeps = {
  /** Null: browsers have no passkeys at the address of the web app. */
  readonly party: RelyingParty | null;
  readonly read: {
    readonly passkeys: Pick<PasskeyStore, 'listOf'>;
    readonly recoveryCodes: Pick<RecoveryCodeStore, 'countUnused'>;
    readonly accounts: { findBySubject(subject: string): Promise<CodeOwner | undefined> };
  };
  readonly isRequired: SecondFactor['isRequired'];
  readonly passkeys: {
    beginRegistration(person: CodeOwner, boundTo: Binding): Promise<CreationOptions>;
    register(
      auditContext: AuditContext,
      person: CodeOwner,
      boundTo: Binding,
      input: { name: string; response: z.infer<typeof registrationSchema>; isFirst: true },
    ): Promise<{ readonly isSynced: boolean }>;
    beginSignIn(interaction: string): Promise<RequestOptions | null>;
    signIn(
      interaction: string,
      answer: string,
      origin: RequestOrigin,
      only: CodeOwner,
    ): Promise<{ readonly isSynced: boolean } | undefined>;
  };
  readonly recoveryCodes: Pick<RecoveryCodes, 'use'>;
};

/** The rule of `/config/access`. `level`: as stored now; rejects while it cannot be read, because an old answer could let people in. */
export function createSecondFactorRule({
  level,
  rolesOf,
}: {
  readonly level: () => Promise<SecondFactorLevel>;
  readonly rolesOf: (subject: string) => Promise<readonly Role[]>;
}): SecondFactor['isRequired'] {
  return async (subject) => {
    const whom = await level();
    if (whom === 'optional') return false;
    return whom === 'everyone' || (await rolesOf(subject)).includes('admin');
  };
}

export function createSecondFactor(deps: SecondFactorDeps): SecondFactor {
  const { party, read, passkeys, recoveryCodes } = deps;

  async function accountOf(subject: string): Promise<CodeOwner> {
    const account = await read.accounts.findBySubject(subject);
    if (account === undefined) throw new AppError('not_found');
    return account;
  }

  return {
    isRequired: deps.isRequired,
    async ask(interaction, subject) {
      const [own, codes] = await Promise.all([
        read.passkeys.listOf(subject),
        read.recoveryCodes.countUnused(subject),
      ]);
      if (own.length > 0) return { kind: 'use', options: await passkeys.beginSignIn(interaction) };
      // A password alone adds no passkey beside an earlier factor.
      if (codes > 0) return { kind: 'use', options: null };
      if (party === null) return { kind: 'add', options: null };
      const person = await accountOf(subject);
      return { kind: 'add', options: await passkeys.beginRegistration(person, bindingOf(interaction)) };
    },
    async answer(interaction, subject, { kind, text }, origin) {
      const account = await accountOf(subject);
      if (kind === 'passkey') {
        const signedIn = await passkeys.signIn(interaction, text, origin, account);
        return signedIn === undefined ? { kind: 'wrong' } : { kind: 'right', amr: methodsOf(signedIn) };
      }
      if (kind === 'recovery_code') {
        const used = await recoveryCodes.use(account, text, origin);
        return used.kind === 'right' ? { kind: 'right', amr: ['otp', 'mfa'] } : used;
      }
      const response = registrationIn(text);
      if (response === undefined) return { kind: 'wrong' };
      const { userId, name } = account;
      const auditContext = { actor: { kind: 'user', id: userId, name, credential: null }, origin } as const;
      const input = { name: 'Created at sign-in', response, isFirst: true } as const;
      try {
        const added = await passkeys.register(auditContext, account, bindingOf(interaction), input);
        return { kind: 'right', amr: methodsOf(added) };
      } catch (error) {
        // The person can try again on the page. What Postern could not do at all is an error of the request.
        if (error instanceof AppError && error.status < 500)
          return { kind: 'refused', problem: `${error.message} ${error.hint}` };
        throw error;
      }
    },
    async refusalFor(subject) {
      if (party === null) return refusal(noPasskeysHere);
      const own = await read.passkeys.listOf(subject);
      return own.length > 0 ? null : refusal(noOwnPasskey);
    },
  };
}

type Binding = `interaction:${string}`;
const bindingOf = (interaction: string): Binding => `interaction:${interaction}`;

/** With another provider, its sign-in decides about second factors. */
export function externalSecondFactor(issuer: string): Pick<SecondFactor, 'refusalFor'> {
  return {
    refusalFor: async () =>
      refusal({
        message: 'The identity provider of this installation decides about second factors.',
        hint: `Require one there: ${issuer}`,
      }),
  };
}

const noOwnPasskey = {
  message: 'You have no passkey, so you could not sign in again.',
  hint: 'Add a passkey in Settings, Passkeys, then try again.',
};

function refusal(words: { readonly message: string; readonly hint: string }): AppError {
  const problem = `${words.message} ${words.hint}`;
  return new AppError('config_invalid', {
    ...words,
    details: { fields: [{ field: 'secondFactor', problem }] },
  });
}
