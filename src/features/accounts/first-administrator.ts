import { type AuditContext, systemAuditContext } from '../../core/caller.ts';
import type { Clock } from '../../core/clock.ts';
import type { Random } from '../../core/ids.ts';
import type { Tx } from '../../platform/database/database.ts';
import { isSetupTokenValid } from './setup-token.ts';
import { secretDigest } from '../../platform/encrypted-text.ts';
import type { AccountsStores, AccountsTx } from './stores.ts';
import { insertAccount } from './accounts.ts';
import { countAdministrators } from './administrators.ts';
import type { Passwords } from './passwords.ts';

/**
 * Creates the first administrator of an installation, by the one-time link or by configuration. Both ways are closed
 * permanently once an administrator exists. Two attempts at the same moment create one administrator.
 */
export type FirstAdministrator = {
  hasAdministrator(): Promise<boolean>;
  /** Returns the same `refused` for a wrong, expired or used link and when an administrator already exists. */
  setUp(
    auditContext: AuditContext,
    input: { token: string; email: string; name: string; password: string },
  ): Promise<{ kind: 'created'; userId: string } | { kind: 'refused' }>;
  /**
   * Creates the account of BOOTSTRAP_ADMIN_EMAIL and _PASSWORD; does nothing once an administrator exists. `unchanged`: the
   * account with this e-mail address has this password.
   */
  ensure(input: { email: string; password: string }): Promise<'created' | 'unchanged' | 'ignored'>;
};

export function createFirstAdministrator(deps: {
  issuer: string;
  read: AccountsStores;
  tx: Tx<AccountsTx>;
  passwords: Passwords;
  random: Random;
  clock: Clock;
  secrets: readonly string[];
}): FirstAdministrator {
  const { issuer, read, tx, passwords, random, clock, secrets } = deps;

  async function create(
    auditContext: AuditContext,
    person: { email: string; name: string; passwordHash: string },
    mayStill: (stores: AccountsTx) => Promise<boolean>,
  ): Promise<string | undefined> {
    return await tx(async (stores) => {
      await stores.accounts.lock();
      if ((await countAdministrators(stores)) > 0 || !(await mayStill(stores))) return undefined;
      const userId = await insertAccount(
        stores,
        { ...person, roles: ['user', 'admin'], groups: [], enabled: true },
        issuer,
        random,
      );
      const account = await stores.accounts.findByUserId(userId);
      if (account === undefined) throw new Error('The account just made is not there.');
      await stores.changes.publish({ topic: 'principal', subject: account.subject });
      await stores.audit.append({
        event: 'user.created',
        auditContext,
        target: { kind: 'user', id: userId },
        outcome: 'success',
        reason: 'first_administrator',
      });
      return userId;
    });
  }

  return {
    hasAdministrator: async () => (await countAdministrators(read)) > 0,
    async setUp(auditContext, { token, email, name, password }) {
      if (!isSetupTokenValid(secrets, clock, token)) return { kind: 'refused' };
      const passwordHash = await passwords.hash(password);
      const userId = await create(auditContext, { email, name, passwordHash }, (stores) =>
        stores.setupLinks.use(secretDigest(token)),
      );
      return userId === undefined ? { kind: 'refused' } : { kind: 'created', userId };
    },
    async ensure({ email, password }) {
      if ((await countAdministrators(read)) > 0) {
        const login = await read.accounts.findLogin(email);
        const isSame = await passwords.verify(login?.passwordHash ?? null, password);
        return isSame ? 'unchanged' : 'ignored';
      }
      const name = email.split('@', 1)[0] ?? email;
      const passwordHash = await passwords.hash(password);
      const userId = await create(systemAuditContext, { email, name, passwordHash }, async () => true);
      // Another process created one meanwhile, from the same settings.
      return userId === undefined ? 'unchanged' : 'created';
    },
  };
}
