import type { z } from 'zod';
import type { AuditContext, RequestOrigin } from '../../core/caller.ts';
import { type Clock, minute } from '../../core/clock.ts';
import { AppError } from '../../core/errors.ts';
import { newId, type Random } from '../../core/ids.ts';
import { isUniqueViolation, type Tx } from '../../platform/database/database.ts';
import { secretDigest } from '../../platform/encrypted-text.ts';
import type { AccountStore } from '../accounts/account-store.ts';
import type { Accounts } from '../accounts/accounts.ts';
import type { AuditWriter } from '../audit/audit.ts';
import type { Passkey, PasskeyStore } from './passkey-store.ts';
import {
  assertionIn,
  challengeIn,
  type CreationOptions,
  type NewCredential,
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
  beginRegistration(person: Owner, sessionId: string): Promise<CreationOptions>;
  /** @throws `invalid_passkey`, `quota_exceeded` */
  register(
    auditContext: AuditContext,
    person: Owner,
    sessionId: string,
    input: { name: string; response: z.infer<typeof registrationSchema> },
  ): Promise<Passkey>;
  list(subject: string): Promise<Passkey[]>;
  /** @throws `not_found` */
  rename(subject: string, id: string, name: string): Promise<Passkey>;
  /** @throws `not_found` */
  remove(auditContext: AuditContext, person: Owner, id: string): Promise<void>;
  /** Null where there are no passkeys. `interaction`: the sign-in that the answer must belong to. */
  beginSignIn(interaction: string): Promise<RequestOptions | null>;
  /** `answer`: `PublicKeyCredential.toJSON()` of the browser as text. Undefined when it proves nothing. */
  signIn(interaction: string, answer: string, origin: RequestOrigin): Promise<PasskeySignIn | undefined>;
};

export type Owner = { readonly userId: string; readonly subject: string };

export type PasskeySignIn = { readonly subject: string; readonly isSynced: boolean };

export const maxPasskeys = 10;
const challengeMs = 5 * minute;

export type PasskeysDeps = {
  /** Null: browsers have no passkeys at the address of the web app. */
  readonly party: RelyingParty | null;
  readonly read: { readonly passkeys: PasskeyStore };
  readonly tx: Tx<{
    readonly passkeys: PasskeyStore;
    readonly accounts: Pick<AccountStore, 'findByUserId'>;
    readonly audit: AuditWriter;
  }>;
  readonly accounts: Pick<Accounts, 'get'>;
  readonly clock: Clock;
  readonly random: Random;
  /** Counts a passkey that proved nothing, for the audit log; must not block. */
  readonly refused: (origin: RequestOrigin, userId: string | null) => void;
};

export function createPasskeys(deps: PasskeysDeps): Passkeys {
  const { read, tx, accounts, clock, random } = deps;

  function requireParty(): RelyingParty {
    if (deps.party !== null) return deps.party;
    throw new AppError('state_conflict', {
      message: 'Browsers have no passkeys at an IP address.',
      hint: 'Ask the operator to give the web app a host name (SERVICE_UI_URL).',
    });
  }

  const open = (challenge: string, boundTo: string) =>
    read.passkeys.addChallenge({
      digest: secretDigest(challenge),
      boundTo,
      expiresAt: clock.now() + challengeMs,
    });

  /** The challenge that the browser answers; undefined when it is not open for `boundTo`. It is used up. */
  async function take(clientData: string, boundTo: string): Promise<string | undefined> {
    const challenge = challengeIn(clientData);
    if (challenge === undefined) return undefined;
    return (await read.passkeys.takeChallenge(secretDigest(challenge), boundTo)) ? challenge : undefined;
  }

  async function add(
    auditContext: AuditContext,
    { userId, subject }: Owner,
    name: string,
    { credentialId, publicKey, counter, transports, isSynced }: NewCredential,
  ): Promise<void> {
    const id = newId(random, 'psk');
    await tx(async (stores) => {
      // Locks the account, so that parallel requests do not exceed the maximum.
      const account = await stores.accounts.findByUserId(userId, { forUpdate: true });
      if (account === undefined) throw new AppError('not_found');
      if ((await stores.passkeys.listOf(subject)).length >= maxPasskeys)
        throw new AppError('quota_exceeded', {
          message: `An account has at most ${maxPasskeys} passkeys.`,
          hint: 'Remove one that you no longer use.',
        });
      const passkey = { id, subject, credentialId, publicKey, counter, transports, name, isSynced };
      await stores.passkeys.insert(passkey).catch((error: unknown) => {
        throw isUniqueViolation(error) ? new AppError('invalid_passkey', alreadyKnown) : error;
      });
      await stores.audit.append({
        event: 'user.passkey_added',
        auditContext,
        target: { kind: 'user', id: userId },
        outcome: 'success',
        details: { passkeyId: id, isSynced },
      });
    });
  }

  return {
    async beginRegistration({ userId, subject }, sessionId) {
      const party = requireParty();
      const { email, name } = await accounts.get(userId);
      const fresh = Buffer.from(random.bytes(32)).toString('base64url');
      const [handle, known] = await Promise.all([
        read.passkeys.handleOf(subject, fresh),
        read.passkeys.credentialsOf(subject),
      ]);
      const options = await creationOptions(party, { handle, email, name, known });
      await open(options.challenge, `session:${sessionId}`);
      return options;
    },
    async register(auditContext, person, sessionId, { name, response }) {
      const party = requireParty();
      const challenge = await take(response.response.clientDataJSON, `session:${sessionId}`);
      if (challenge === undefined) throw new AppError('invalid_passkey', tooLate);
      const found = await verifyRegistration(party, response, challenge);
      if (found === undefined) throw new AppError('invalid_passkey');
      await add(auditContext, person, name, found);
      const passkeys = await read.passkeys.listOf(person.subject);
      const added = passkeys.at(-1);
      if (added === undefined) throw new AppError('not_found');
      return added;
    },
    list: read.passkeys.listOf,
    async rename(subject, id, name) {
      const renamed = await read.passkeys.rename(subject, id, name);
      if (renamed === undefined) throw new AppError('not_found', noSuchPasskey);
      return renamed;
    },
    async remove(auditContext, { userId, subject }, id) {
      await tx(async (stores) => {
        if (!(await stores.passkeys.remove(subject, id))) throw new AppError('not_found', noSuchPasskey);
        await stores.audit.append({
          event: 'user.passkey_removed',
          auditContext,
          target: { kind: 'user', id: userId },
          outcome: 'success',
          details: { passkeyId: id },
        });
      });
    },
    async beginSignIn(interaction) {
      if (deps.party === null) return null;
      const options = await requestOptions(deps.party);
      await open(options.challenge, `interaction:${interaction}`);
      return options;
    },
    async signIn(interaction, answer, origin) {
      const response = assertionIn(answer);
      if (deps.party === null || response === undefined) return undefined;
      const challenge = await take(response.response.clientDataJSON, `interaction:${interaction}`);
      const credential = await read.passkeys.findCredential(response.id);
      const found =
        challenge === undefined || credential === undefined
          ? undefined
          : await verifyAssertion(deps.party, response, credential, challenge);
      if (found === undefined || credential === undefined) {
        deps.refused(origin, null);
        return undefined;
      }
      const { id, subject } = credential;
      if (await read.passkeys.use(id, found.counter)) return { subject, isSynced: found.isSynced };
      deps.refused(origin, null);
      return undefined;
    },
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
const noSuchPasskey = { message: 'There is no such passkey.' };

export { relyingPartyOf, type RequestOptions } from './webauthn.ts';
