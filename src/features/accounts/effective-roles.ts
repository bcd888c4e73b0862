import type { Role } from '../../core/caller.ts';

export type GroupNode = {
  readonly id: string;
  readonly parentId: string | null;
  readonly roles: readonly Role[];
};

const order: readonly Role[] = ['user', 'admin'];

/** The direct roles, the roles of the groups, and the roles of all their ancestor groups (contract 5). */
export function effectiveRoles(
  direct: readonly Role[],
  groupIds: readonly string[],
  tree: readonly GroupNode[],
): Role[] {
  const byId = new Map(tree.map((node) => [node.id, node]));
  const found = new Set<Role>(direct);
  for (const groupId of groupIds) {
    for (const node of lineage(groupId, byId)) {
      for (const role of node.roles) found.add(role);
    }
  }
  return order.filter((role) => found.has(role));
}

/** True when making `parentId` the parent of `id` would create a cycle. */
export function wouldBeCircular(id: string, parentId: string | null, tree: readonly GroupNode[]): boolean {
  if (parentId === null) return false;
  const byId = new Map(tree.map((node) => [node.id, node]));
  return lineage(parentId, byId).some((node) => node.id === id);
}

/** A group and its ancestors, nearest first. Stops at a cycle, which the write path refuses anyway. */
function lineage(groupId: string, byId: ReadonlyMap<string, GroupNode>): GroupNode[] {
  const path: GroupNode[] = [];
  let node = byId.get(groupId);
  while (node !== undefined && !path.includes(node)) {
    path.push(node);
    node = node.parentId === null ? undefined : byId.get(node.parentId);
  }
  return path;
}
