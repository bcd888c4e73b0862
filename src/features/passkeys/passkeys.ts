import type { z } from 'zod';
import { actorOf, anonymous, type AuditContext, type RequestOrigin } from '../../core/caller.ts';
import { type Clock, minute, timestamp } from '../../core/clock.ts';
import { AppError } from '../../core/errors.ts';
import { newId, type Random } from '../../core/ids.ts';
import { isUniqueViolation, type Tx } from '../../platform/database/database.ts';
import { secretDigest } from '../../platform/encrypted-text.ts';
import type { Accounts } from '../accounts/accounts.ts';
import type { AuditWriter } from '../audit/audit.ts';
import type { NewAccountNotice, NoticeWriter } from '../notices/notices.ts';
import type { Credential, Passkey, PasskeyStore } from './passkey-store.ts';
import type { RecoveryCodeStore } from './recovery-code-store.ts';
import {
  assertionIn,
  challengeIn,
  type CreationOptions,
  type NewCredential,
  noPasskeysHere,
  creationOptions,
  type registrationSchema,
  type RelyingParty,
  type RequestOptions,
  requestOptions,
  verifyAssertion,
  verifyRegistration,
} from './webauthn.ts';

/** Passkeys of the accounts of the built-in provider: created in Settings, and accepted instead of a password. */
export type Passkeys = {
  /** What the browser needs to create one. @throws `state_conflict` where the address of the web app is an IP address */
  beginRegistration(person: Owner, boundTo: Binding): Promise<CreationOptions>;
  /**
   * `isFirst`: refuses an account that has a passkey or a recovery code.
   * @throws `invalid_passkey`, `quota_exceeded`, `state_conflict`
   */
  register(
    auditContext: AuditContext,
    person: Owner,
    boundTo: Binding,
    input: { name: string; response: z.infer<typeof registrationSchema>; isFirst?: boolean },
  ): Promise<Passkey>;
  list(subject: string): Promise<Passkey[]>;
  /** @throws `not_found` */
  rename(auditContext: AuditContext, person: Owner, id: string, name: string): Promise<Passkey>;
  /** @throws `not_found`; `state_conflict` for the last one while the account must have a second factor */
  remove(auditContext: AuditContext, person: Owner, id: string): Promise<void>;
  /** Null where there are no passkeys. `interaction`: the sign-in that the answer must belong to. */
  beginSignIn(interaction: string): Promise<RequestOptions | null>;
  /**
   * `answer`: `PublicKeyCredential.toJSON()` of the browser as text. `only`: the account that the passkey must belong to, whose
   * password was right. Undefined when it proves nothing.
   */
  signIn(
    interaction: string,
    answer: string,
    origin: RequestOrigin,
    only?: Owner,
  ): Promise<PasskeySignIn | undefined>;
};

/** The session or the sign-in in which a registration begins and ends. */
export type Binding = `session:${string}` | `interaction:${string}`;

export type Owner = { readonly userId: string; readonly subject: string };

export type PasskeySignIn = { readonly subject: string; readonly isSynced: boolean };

export const maxPasskeys = 10;
const challengeMs = 5 * minute;

export type PasskeysDeps = {
  /** Null: browsers have no passkeys at the address of the web app. */
  readonly party: RelyingParty | null;
  readonly read: { readonly passkeys: PasskeyStore };
  readonly tx: Tx<PasskeysTx>;
  readonly accounts: Pick<Accounts, 'get'>;
  readonly isSecondFactorRequired: (subject: string) => Promise<boolean>;
  readonly clock: Clock;
  readonly random: Random;
  /** Counts a refused sign-in for the audit log, with the account when the passkey is known; must not block. */
  readonly refused: (
    reason: 'passkey_refused' | 'account_disabled',
    origin: RequestOrigin,
    userId: string | null,
  ) => void;
};

type PasskeysTx = {
  readonly passkeys: PasskeyStore;
  readonly recoveryCodes: Pick<RecoveryCodeStore, 'countUnused'>;
  readonly accounts: {
    findByUserId(userId: string, options: { readonly forUpdate: true }): Promise<object | undefined>;
  };
  readonly audit: AuditWriter;
  readonly notices: NoticeWriter;
};

export function createPasskeys(deps: PasskeysDeps): Passkeys {
  const { read, tx, accounts, clock, random } = deps;

  function requireParty(): RelyingParty {
    if (deps.party !== null) return deps.party;
    throw new AppError('state_conflict', noPasskeysHere);
  }

  const open = (challenge: string, boundTo: string, subject: string | null) =>
    read.passkeys.addChallenge({
      digest: secretDigest(challenge),
      boundTo,
      subject,
      expiresAt: clock.now() + challengeMs,
    });

  async function add(
    { passkeys, audit, notices }: PasskeysTx,
    auditContext: AuditContext,
    { userId, subject }: Owner,
    { name, isSynced, ...found }: NewCredential & { readonly name: string },
  ): Promise<Passkey> {
    const id = newId(random, 'psk');
    const added = await passkeys.insert({ id, subject, name, isSynced, ...found }).catch((error: unknown) => {
      throw isUniqueViolation(error) ? new AppError('invalid_passkey', alreadyKnown) : error;
    });
    await audit.append(changeOf('user.passkey_added', auditContext, userId, { passkeyId: id, isSynced }));
    await notices.add(noticeOf('passkey_added', userId, { id, name }));
    return added;
  }

  /** Uses up the challenge. `not_open`: it was not open for this sign-in, or the passkey was removed meanwhile. */
  async function use(
    challenge: string,
    interaction: string,
    { id, name, userId }: Credential,
    proved: { readonly counter: number; readonly isSynced: boolean },
    origin: RequestOrigin,
  ): Promise<'used' | 'went_back' | 'not_open'> {
    return await tx(async ({ passkeys, audit, notices }) => {
      if (!(await passkeys.takeChallenge(secretDigest(challenge), `interaction:${interaction}`)))
        return 'not_open';
      const outcome = await passkeys.use(id, proved);
      if (outcome !== 'went_back') return outcome === 'used' ? 'used' : 'not_open';
      await audit.append({
        event: 'user.passkey_refused',
        auditContext: { actor: actorOf(anonymous), origin },
        target: { kind: 'user', id: userId },
        outcome: 'denied',
        reason: 'counter_went_back',
        details: { passkeyId: id },
      });
      const today = timestamp(clock.now()).slice(0, 10);
      await notices.add(noticeOf('passkey_copied', userId, { id, name }, today));
      return outcome;
    });
  }

  return {
    async beginRegistration({ userId, subject }, boundTo) {
      const party = requireParty();
      const { email, name } = await accounts.get(userId);
      const fresh = Buffer.from(random.bytes(32)).toString('base64url');
      const [handle, known] = await Promise.all([
        read.passkeys.handleOf(subject, fresh),
        read.passkeys.credentialsOf(subject),
      ]);
      const options = await creationOptions(party, { handle, email, name, known });
      await open(options.challenge, boundTo, subject);
      return options;
    },
    async register(auditContext, person, boundTo, { name, response, isFirst = false }) {
      const party = requireParty();
      const challenge = challengeIn(response.response.clientDataJSON);
      const found =
        challenge === undefined ? undefined : await verifyRegistration(party, response, challenge);
      if (challenge === undefined || found === undefined) throw new AppError('invalid_passkey');
      return await tx(async (stores) => {
        // Locks the account, so that parallel requests do not exceed the maximum, and a reset removes what they add.
        const account = await stores.accounts.findByUserId(person.userId, { forUpdate: true });
        if (account === undefined) throw new AppError('not_found');
        if (!(await stores.passkeys.takeChallenge(secretDigest(challenge), boundTo)))
          throw new AppError('invalid_passkey', tooLate);
        const { length } = await stores.passkeys.listOf(person.subject);
        // What the account got while the page was open must be used.
        if (isFirst && (length > 0 || (await stores.recoveryCodes.countUnused(person.subject)) > 0))
          throw new AppError('state_conflict', notFirst);
        if (length >= maxPasskeys)
          throw new AppError('quota_exceeded', {
            message: `An account has at most ${maxPasskeys} passkeys.`,
            hint: 'Remove one that you no longer use.',
          });
        return await add(stores, auditContext, person, { name, ...found });
      });
    },
    list: read.passkeys.listOf,
    async rename(auditContext, { userId, subject }, id, name) {
      return await tx(async (stores) => {
        const renamed = await stores.passkeys.rename(subject, id, name);
        if (renamed === undefined) throw new AppError('not_found', noSuchPasskey);
        await stores.audit.append(changeOf('user.passkey_renamed', auditContext, userId, { passkeyId: id }));
        return renamed;
      });
    },
    async remove(auditContext, { userId, subject }, id) {
      const keepsOne = await deps.isSecondFactorRequired(subject);
      await tx(async (stores) => {
        // Locks the account, so that parallel requests do not remove the last two.
        await stores.accounts.findByUserId(userId, { forUpdate: true });
        const own = await stores.passkeys.listOf(subject);
        if (keepsOne && own.length === 1 && own[0]?.id === id) throw new AppError('state_conflict', lastOne);
        const name = await stores.passkeys.remove(subject, id);
        if (name === undefined) throw new AppError('not_found', noSuchPasskey);
        await stores.audit.append(changeOf('user.passkey_removed', auditContext, userId, { passkeyId: id }));
        await stores.notices.add(noticeOf('passkey_removed', userId, { id, name }));
      });
    },
    async beginSignIn(interaction) {
      if (deps.party === null) return null;
      const options = await requestOptions(deps.party);
      await open(options.challenge, `interaction:${interaction}`, null);
      return options;
    },
    async signIn(interaction, answer, origin, only) {
      const response = assertionIn(answer);
      const credential = response === undefined ? undefined : await read.passkeys.findCredential(response.id);
      const isForeign = only !== undefined && credential?.subject !== only.subject;
      if (deps.party === null || response === undefined || credential === undefined || isForeign) {
        deps.refused('passkey_refused', origin, only?.userId ?? null);
        return undefined;
      }
      const { subject, userId, isEnabled } = credential;
      const challenge = challengeIn(response.response.clientDataJSON);
      const found =
        challenge === undefined
          ? undefined
          : await verifyAssertion(deps.party, response, credential, challenge);
      const outcome =
        challenge === undefined || found === undefined
          ? 'not_verified'
          : await use(challenge, interaction, credential, found, origin);
      if (found === undefined || outcome !== 'used') {
        // The store has recorded the other refusal.
        if (outcome !== 'went_back') deps.refused('passkey_refused', origin, userId);
        return undefined;
      }
      // The answer reveals the state of the account only to its owner.
      if (!isEnabled) deps.refused('account_disabled', origin, userId);
      return { subject, isSynced: found.isSynced };
    },
  };
}

/** The audit event of a change to a person's passkeys. */
function changeOf(
  event: 'user.passkey_added' | 'user.passkey_renamed' | 'user.passkey_removed',
  auditContext: AuditContext,
  userId: string,
  details: { readonly passkeyId: string; readonly isSynced?: boolean },
) {
  return { event, auditContext, target: { kind: 'user', id: userId }, outcome: 'success', details } as const;
}

/** A passkey has one notice of each kind, or one for each `day`. */
function noticeOf(
  kind: 'passkey_added' | 'passkey_removed' | 'passkey_copied',
  userId: string,
  { id, name }: Pick<Passkey, 'id' | 'name'>,
  day = '',
): NewAccountNotice {
  return {
    recipient: { kind: 'user', userId },
    kind,
    userId,
    occasion: `${id} ${day}`.trim(),
    fields: { passkeyName: name },
  };
}

/** Where another provider keeps the accounts, it keeps their passkeys too. */
export function externalPasskeys(issuer: string): Passkeys {
  const refuse = (): Promise<never> =>
    Promise.reject(
      new AppError('state_conflict', {
        message: 'The identity provider of this installation manages passkeys.',
        hint: `Manage them there: ${issuer}`,
      }),
    );
  return {
    beginRegistration: refuse,
    register: refuse,
    list: refuse,
    rename: refuse,
    remove: refuse,
    beginSignIn: refuse,
    signIn: refuse,
  };
}

const tooLate = {
  message: 'This passkey answers a request that has expired or was used.',
  hint: 'Start again on the page.',
};
const alreadyKnown = { message: 'This passkey is already registered.' };
const notFirst = {
  message: 'Your account already has a second factor.',
  hint: 'Use it, or ask an administrator to reset your passkeys.',
};
const lastOne = {
  message: 'Your account must have a passkey.',
  hint: 'Add another passkey before you remove this one.',
};
const noSuchPasskey = { message: 'There is no such passkey.' };

export {
  methodsOf,
  type SecondFactor,
  type SecondFactorAnswer,
  type SecondFactorQuestion,
  type SecondFactorResult,
} from './second-factor.ts';
export { type CreationOptions, relyingPartyOf, type RequestOptions } from './webauthn.ts';
