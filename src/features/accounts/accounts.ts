import type { AuditContext, Role } from '../../core/caller.ts';
import { type Clock, timestamp } from '../../core/clock.ts';
import { AppError } from '../../core/errors.ts';
import { newId, randomBase62, type Random } from '../../core/ids.ts';
import { isUniqueViolation, type Tx } from '../../platform/database/database.ts';
import type { AccountsStores, AccountsTx } from './stores.ts';
import type { Account } from './account-store.ts';
import { keepingAnAdministrator } from './administrators.ts';
import { effectiveRoles } from './effective-roles.ts';
import type { PasswordCheck } from './password-check.ts';
import type { Passwords } from './passwords.ts';

/**
 * The accounts of the built-in identity provider. Administrators manage them through the API, and people change their own
 * password. Every change writes its audit event in the same transaction and notifies every process, whose caches drop the
 * person. No change removes the last enabled administrator. No function returns a stored password.
 */
export type AccountView = Account & { readonly effectiveRoles: readonly Role[] };

export type AccountInput = {
  email: string;
  name: string;
  roles: readonly Role[];
  groups: readonly string[];
  enabled: boolean;
};

export type Accounts = {
  list(page: { search?: string | undefined; offset: number; limit: number }): Promise<{
    accounts: AccountView[];
    total: number;
  }>;
  /** Throws `not_found`. */
  get(userId: string): Promise<AccountView>;
  /** The account that signs in with this address; upper and lower case are equal. */
  findByEmail(email: string): Promise<Account | undefined>;
  /** Without a password, generates one and returns it once. */
  create(
    auditContext: AuditContext,
    input: AccountInput & { password?: string | undefined },
  ): Promise<{ account: AccountView; generatedPassword: string | null }>;
  change(auditContext: AuditContext, userId: string, change: Partial<AccountInput>): Promise<AccountView>;
  remove(auditContext: AuditContext, userId: string): Promise<void>;
  /** Ends every browser session, provider session and offline grant. */
  signOut(auditContext: AuditContext, userId: string): Promise<void>;
  /** Sets the given or a generated password, and signs the account out everywhere. */
  resetPassword(
    auditContext: AuditContext,
    userId: string,
    password?: string,
  ): Promise<{ generatedPassword: string | null }>;
  /**
   * Removes the passkeys and recovery codes, and signs the account out everywhere, with a notice to the person. The password
   * stays.
   */
  resetPasskeys(auditContext: AuditContext, userId: string): Promise<AccountView>;
  /**
   * Changes the person's own password. Requires the current one, and signs the account out everywhere as a reset does. Wrong
   * guesses count as failed sign-ins. Throws `invalid_body` that names the field, `rate_limited`.
   */
  changePassword(
    auditContext: AuditContext,
    userId: string,
    passwords: { current: string; wanted: string },
  ): Promise<void>;
};

export type AccountsDeps = {
  issuer: string;
  read: AccountsStores;
  tx: Tx<AccountsTx>;
  passwords: Passwords;
  checkPassword: PasswordCheck;
  clock: Clock;
  random: Random;
};

export function createAccounts(deps: AccountsDeps): Accounts {
  const { read, tx, passwords, checkPassword, clock, random } = deps;

  const changing = <T>(work: (stores: AccountsTx) => Promise<T>) =>
    tx((stores) => keepingAnAdministrator(stores, () => work(stores)));

  /** One change of an existing account, audited with what `work` returns. Every process drops the person from its caches. */
  async function changingOne(
    auditContext: AuditContext,
    userId: string,
    event: `user.${'deleted' | 'signed_out' | 'password_reset' | 'password_changed' | 'passkeys_reset'}`,
    work: (stores: AccountsTx, account: Account) => Promise<{ before: object } | { passkeys: number } | void>,
  ): Promise<void> {
    await changing(async (stores) => {
      const account = await locked(stores, userId);
      const details = await work(stores, account);
      await stores.changes.publish({ topic: 'principal', subject: account.subject });
      await stores.audit.append({
        event,
        auditContext,
        target: { kind: 'user', id: userId },
        outcome: 'success',
        ...(details === undefined ? {} : { details }),
      });
    });
  }

  const password = async (given: string | undefined) => {
    const generated = given === undefined ? randomBase62(random, 20) : null;
    return { generated, hash: await passwords.hash(given ?? (generated as string)) };
  };

  return {
    async list(page) {
      const { accounts, total } = await read.accounts.list(page);
      const tree = await read.groups.tree();
      return {
        accounts: accounts.map((account) => ({
          ...account,
          effectiveRoles: effectiveRoles(account.roles, account.groupIds, tree),
        })),
        total,
      };
    },
    get: (userId) => view(read, userId),
    async findByEmail(email) {
      const login = await read.accounts.findLogin(email);
      return login && (await read.accounts.findBySubject(login.subject));
    },
    async create(auditContext, input) {
      const { generated, hash } = await password(input.password);
      const account = await changing(async (stores) => {
        await checkGroups(stores, input.groups);
        const userId = await insertAccount(stores, { ...input, passwordHash: hash }, deps.issuer, random);
        const created = await view(stores, userId);
        await stores.changes.publish({ topic: 'principal', subject: created.subject });
        await stores.audit.append({
          event: 'user.created',
          auditContext,
          target: { kind: 'user', id: userId },
          outcome: 'success',
          details: { after: auditable(created) },
        });
        return created;
      });
      return { account, generatedPassword: generated };
    },
    async change(auditContext, userId, change) {
      return await changing(async (stores) => {
        const before = await locked(stores, userId);
        if (change.groups !== undefined) {
          await checkGroups(stores, change.groups);
          await stores.groups.setMembership(before.subject, change.groups);
        }
        const next = {
          email: change.email ?? before.email,
          name: change.name ?? before.name,
          isEnabled: change.enabled ?? before.isEnabled,
          roles: change.roles ?? before.roles,
        };
        await unlessTaken(() => stores.accounts.update(before.subject, next));
        await stores.users.upsert({
          newId: userId,
          issuer: deps.issuer,
          subject: before.subject,
          name: next.name,
          email: next.email,
          isLogin: false,
        });
        if (!next.isEnabled) await endSessions(stores, before);
        const after = await view(stores, userId);
        await stores.changes.publish({ topic: 'principal', subject: before.subject });
        await stores.audit.append({
          event: 'user.changed',
          auditContext,
          target: { kind: 'user', id: userId },
          outcome: 'success',
          details: { before: auditable(before), after: auditable(after) },
        });
        return after;
      });
    },
    remove: (auditContext, userId) =>
      changingOne(auditContext, userId, 'user.deleted', async (stores, account) => {
        await endEverything(stores, account);
        await stores.accounts.remove(account.subject);
        return { before: auditable(account) };
      }),
    signOut: (auditContext, userId) => changingOne(auditContext, userId, 'user.signed_out', endEverything),
    async resetPassword(auditContext, userId, given) {
      const { generated, hash } = await password(given);
      await setPassword('user.password_reset', auditContext, userId, hash);
      return { generatedPassword: generated };
    },
    async resetPasskeys(auditContext, userId) {
      await changingOne(auditContext, userId, 'user.passkeys_reset', async (stores, account) => {
        const passkeys = await stores.passkeys.removeAllOf(account.subject);
        await endEverything(stores, account);
        await stores.notices.add({
          recipient: { kind: 'user', userId },
          kind: 'passkeys_reset',
          userId,
          occasion: timestamp(clock.now()),
          fields: {},
        });
        return { passkeys };
      });
      return await view(read, userId);
    },
    async changePassword(auditContext, userId, { current, wanted }) {
      const { email } = await view(read, userId);
      const begun = clock.now();
      const answer = await checkPassword(email, current, auditContext.origin);
      if (answer.kind === 'throttled')
        throw new AppError('rate_limited', { retryAfterSeconds: answer.retryAfterSeconds });
      if (answer.kind !== 'right') throw wrongField('currentPassword', 'is not your password');
      if (wanted === current)
        throw wrongField('newPassword', 'is the password that you have now; choose another one');
      await setPassword('user.password_changed', auditContext, userId, await passwords.hash(wanted), begun);
    },
  };

  async function setPassword(
    event: 'user.password_reset' | 'user.password_changed',
    auditContext: AuditContext,
    userId: string,
    hash: string,
    provedAt = Infinity,
  ): Promise<void> {
    await changingOne(auditContext, userId, event, async (stores, account) => {
      // An administrator set another password while the old one was checked.
      if (((await stores.accounts.signedOutAt(account.subject)) ?? 0) > provedAt)
        throw new AppError('authentication_required');
      await stores.accounts.setPassword(account.subject, hash);
      await endEverything(stores, account);
    });
  }
}

function wrongField(field: string, problem: string): AppError {
  return new AppError('invalid_body', {
    message: `${field}: ${problem}`,
    details: { fields: [{ field, problem }] },
  });
}

/** Inserts the account and its row in `users`; returns the user's id. Throws `name_conflict` on a taken e-mail. */
export async function insertAccount(
  stores: AccountsStores,
  input: AccountInput & { passwordHash: string },
  issuer: string,
  random: Random,
): Promise<string> {
  const subject = randomBase62(random, 20);
  const user = await stores.users.upsert({
    newId: newId(random, 'usr'),
    issuer,
    subject,
    name: input.name,
    email: input.email,
    isLogin: false,
  });
  await unlessTaken(() =>
    stores.accounts.insert({
      userId: user.id,
      subject,
      email: input.email,
      name: input.name,
      passwordHash: input.passwordHash,
      isEnabled: input.enabled,
      roles: input.roles,
    }),
  );
  await stores.groups.setMembership(subject, input.groups);
  return user.id;
}

async function view(stores: AccountsStores, userId: string): Promise<AccountView> {
  const account = await stores.accounts.findByUserId(userId);
  if (account === undefined) throw new AppError('not_found');
  const roles = effectiveRoles(account.roles, account.groupIds, await stores.groups.tree());
  return { ...account, effectiveRoles: roles };
}

async function locked(stores: AccountsStores, userId: string): Promise<Account> {
  const account = await stores.accounts.findByUserId(userId, { forUpdate: true });
  if (account === undefined) throw new AppError('not_found');
  return account;
}

async function checkGroups(stores: AccountsStores, ids: readonly string[]): Promise<void> {
  const known = await stores.groups.existing(ids);
  const unknown = ids.filter((id) => !known.includes(id));
  if (unknown.length === 0) return;
  throw new AppError('invalid_body', {
    message: `groups: no group has the id ${unknown[0]}`,
    hint: 'List the groups to see their ids.',
    details: { fields: unknown.map((id) => ({ field: 'groups', problem: `no group has the id ${id}` })) },
  });
}

async function endSessions(stores: AccountsTx, account: Account): Promise<void> {
  // Must come first: a concurrent sign-in waits for this row, and then finds that it is no longer valid.
  await stores.accounts.signOut(account.subject);
  await stores.passkeys.removeChallengesOf(account.subject);
  const ended = await stores.sessions.endAllOf(account.userId);
  for (const id of ended) await stores.changes.publish({ topic: 'session', subject: id });
  await stores.records.removeSessionsOf(account.subject);
}

async function endEverything(stores: AccountsTx, account: Account): Promise<void> {
  await endSessions(stores, account);
  await stores.records.removeAllOf(account.subject);
}

async function unlessTaken(write: () => Promise<void>): Promise<void> {
  try {
    await write();
  } catch (error) {
    if (!isUniqueViolation(error)) throw error;
    throw new AppError('name_conflict', {
      message: 'Another account has this e-mail address.',
      hint: 'Use another address, or change the other account first.',
    });
  }
}

/** What an audit event records about an account: never a password or its hash. */
function auditable({ email, name, isEnabled, roles, groupIds }: Account) {
  return { email, name, enabled: isEnabled, roles, groups: groupIds };
}

export type { PasswordAnswer } from './password-check.ts';
