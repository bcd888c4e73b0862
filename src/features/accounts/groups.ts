import type { AuditContext, Role } from '../../core/caller.ts';
import { AppError } from '../../core/errors.ts';
import { newId, type Random } from '../../core/ids.ts';
import { anything, publishing } from '../../platform/database/change-feed.ts';
import { isUniqueViolation, type Tx } from '../../platform/database/database.ts';
import type { AccountsStores, AccountsTx } from './stores.ts';
import { keepingAnAdministrator } from './administrators.ts';
import { wouldBeCircular } from './effective-roles.ts';
import type { Group } from './group-store.ts';

/** The built-in provider's groups: a tree in which accounts inherit the roles of all groups above them. */
export type GroupInput = { name: string; parentId: string | null; roles: readonly Role[] };

export type Groups = {
  list(page: { offset: number; limit: number }): Promise<{ groups: Group[]; total: number }>;
  /** Throws `not_found`. */
  get(id: string): Promise<Group>;
  create(auditContext: AuditContext, input: GroupInput): Promise<Group>;
  change(auditContext: AuditContext, id: string, change: Partial<GroupInput>): Promise<Group>;
  /** Throws `state_conflict` while the group contains other groups. */
  remove(auditContext: AuditContext, id: string): Promise<void>;
};

export function createGroups(deps: { read: AccountsStores; tx: Tx<AccountsTx>; random: Random }): Groups {
  const { read, tx, random } = deps;

  const published = publishing(tx, { topic: 'principal', subject: anything });
  const changing = <T>(work: (stores: AccountsTx) => Promise<T>) =>
    published((stores) => keepingAnAdministrator(stores, () => work(stores)));

  return {
    list: (page) => read.groups.list(page),
    get: (id) => mustFind(read, id),
    async create(auditContext, input) {
      const id = newId(random, 'grp');
      return await changing(async (stores) => {
        await checkParent(stores, id, input.parentId);
        await unlessTaken(() => stores.groups.insert({ id, ...input }));
        await stores.audit.append({
          event: 'group.created',
          auditContext,
          target: { kind: 'group', id },
          outcome: 'success',
          details: { after: input },
        });
        return await mustFind(stores, id);
      });
    },
    async change(auditContext, id, change) {
      return await changing(async (stores) => {
        const before = await mustFind(stores, id);
        const next = {
          name: change.name ?? before.name,
          parentId: change.parentId === undefined ? before.parentId : change.parentId,
          roles: change.roles ?? before.roles,
        };
        await checkParent(stores, id, next.parentId);
        await unlessTaken(() => stores.groups.update(id, next));
        await stores.audit.append({
          event: 'group.changed',
          auditContext,
          target: { kind: 'group', id },
          outcome: 'success',
          details: { before: auditable(before), after: next },
        });
        return await mustFind(stores, id);
      });
    },
    async remove(auditContext, id) {
      await changing(async (stores) => {
        const before = await mustFind(stores, id);
        if (await stores.groups.hasChildren(id)) {
          throw new AppError('state_conflict', {
            message: 'This group contains other groups.',
            hint: 'Move or delete those groups first.',
          });
        }
        await stores.groups.remove(id);
        await stores.audit.append({
          event: 'group.deleted',
          auditContext,
          target: { kind: 'group', id },
          outcome: 'success',
          details: { before: auditable(before) },
        });
      });
    },
  };
}

async function mustFind(stores: AccountsStores, id: string): Promise<Group> {
  const group = await stores.groups.find(id);
  if (group === undefined) throw new AppError('not_found');
  return group;
}

async function checkParent(stores: AccountsStores, id: string, parentId: string | null): Promise<void> {
  if (parentId === null) return;
  const tree = await stores.groups.tree();
  const problem = !tree.some((node) => node.id === parentId)
    ? 'no group has this id'
    : wouldBeCircular(id, parentId, tree)
      ? 'is the group itself or a group inside it'
      : undefined;
  if (problem === undefined) return;
  throw new AppError('invalid_body', {
    message: `parentId: ${problem}`,
    hint: 'List the groups to see their ids, and choose one outside this group.',
    details: { fields: [{ field: 'parentId', problem }] },
  });
}

async function unlessTaken(write: () => Promise<void>): Promise<void> {
  try {
    await write();
  } catch (error) {
    if (!isUniqueViolation(error)) throw error;
    throw new AppError('name_conflict', { message: 'Another group has this name.' });
  }
}

function auditable({ name, parentId, roles }: Group) {
  return { name, parentId, roles };
}
