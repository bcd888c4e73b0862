import type { Schemas } from '../api/contract.ts';
import type { Key } from './key-words.ts';
import { type Access, accessFrom, resources, scopesOf } from './new/access.ts';

/** The rights of an existing key, before and after it is narrowed. */
export type Rights = {
  readonly access: Access;
  readonly reach: 'selected' | 'all';
  readonly repositories: readonly string[];
};

export function rightsOf({ scopes, repositories: reach }: Key): Rights {
  return {
    access: accessFrom(scopes, scopes),
    reach: reach.mode,
    repositories: reach.mode === 'all' ? [] : reach.repositories,
  };
}

/** Ends a sentence that begins with “It may”. */
export function rightsInWords(scopes: readonly string[]): string {
  const access = accessFrom(scopes, scopes);
  const rights = resources.flatMap(({ id, says }) => {
    const level = access[id];
    return level === 'none' ? [] : [says[level]];
  });
  return rights.length === 0 ? 'do nothing' : rights.join('; ');
}

/** The scopes a key has, and the reads that its writes include: what it can be narrowed to. */
export function withReads(scopes: readonly string[]): string[] {
  return [...new Set(scopes.flatMap((scope) => [scope, scope.replace(':write', ':read')]))];
}

type Narrowing = Pick<Schemas['KeyNarrowing'], 'scopes' | 'repositoryAccess'>;

/** The differences from the current key. Nothing else is sent. */
export function narrowingOf(key: Key, { access, reach, repositories }: Rights): Narrowing {
  const before = rightsOf(key);
  const scopes = scopesOf(access);
  const isSameReach =
    reach === before.reach &&
    repositories.length === before.repositories.length &&
    repositories.every((name) => before.repositories.includes(name));
  return {
    ...(scopes.join() === scopesOf(before.access).join() ? {} : { scopes }),
    ...(isSameReach || reach === 'all'
      ? {}
      : { repositoryAccess: { mode: 'selected', repositories: [...repositories] } }),
  };
}
