import { AppError } from '../../core/errors.ts';
import type { AccountStore } from './account-store.ts';
import { effectiveRoles } from './effective-roles.ts';
import type { GroupStore } from './group-store.ts';

type Stores = { accounts: AccountStore; groups: GroupStore };

/** How many enabled accounts have the role `admin`, directly or by a group. */
export async function countAdministrators({ accounts, groups }: Stores): Promise<number> {
  const [all, tree] = [await accounts.listForRoles(), await groups.tree()];
  return all.filter(
    ({ isEnabled, roles, groupIds }) => isEnabled && effectiveRoles(roles, groupIds, tree).includes('admin'),
  ).length;
}

/**
 * Runs a change of accounts or groups. Throws, so that the transaction rolls back, when no enabled administrator would
 * be left. Changes are serialised, so that two administrators cannot demote each other at the same moment.
 */
export async function keepingAnAdministrator<T>(stores: Stores, change: () => Promise<T>): Promise<T> {
  await stores.accounts.lock();
  const before = await countAdministrators(stores);
  const result = await change();
  if (before > 0 && (await countAdministrators(stores)) === 0) {
    throw new AppError('state_conflict', {
      message: 'This would leave no enabled administrator.',
      hint: 'Make someone else an administrator first.',
    });
  }
  return result;
}
