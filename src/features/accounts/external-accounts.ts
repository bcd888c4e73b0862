import { AppError } from '../../core/errors.ts';
import type { Accounts } from './accounts.ts';
import type { FirstAdministrator } from './first-administrator.ts';
import type { Groups } from './groups.ts';

/**
 * Accounts, groups and the first administrator when an external provider manages them: every read and every change is
 * refused, with the address of the provider that can do it.
 */
export function externalAccounts(issuer: string): {
  accounts: Accounts;
  groups: Groups;
  firstAdministrator: FirstAdministrator;
} {
  const refuse = (): Promise<never> =>
    Promise.reject(
      new AppError('state_conflict', {
        message: 'The identity provider of this installation manages its accounts and groups.',
        hint: `Manage them there: ${issuer}`,
      }),
    );
  return {
    accounts: {
      list: refuse,
      get: refuse,
      findByEmail: refuse,
      create: refuse,
      change: refuse,
      remove: refuse,
      signOut: refuse,
      resetPassword: refuse,
      resetPasskeys: refuse,
      changePassword: refuse,
    },
    groups: { list: refuse, get: refuse, create: refuse, change: refuse, remove: refuse },
    firstAdministrator: {
      // The administrators' role at the provider decides, so no administrator is created by a link.
      hasAdministrator: () => Promise.resolve(true),
      setUp: () => Promise.resolve({ kind: 'refused' }),
      ensure: () => Promise.resolve('ignored'),
    },
  };
}
