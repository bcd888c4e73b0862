import { reachOf } from '../../core/authorize.ts';
import type { Caller } from '../../core/caller.ts';
import { AppError } from '../../core/errors.ts';
import type { Repository, RepositoryInput } from './repository.ts';

/** Rules for registering and changing repositories, as pure functions over the caller and the request. */
export function refuseFile(cloneUrl: string | undefined, allowsFiles: boolean): void {
  if (allowsFiles || !cloneUrl?.startsWith('file:')) return;
  throw new AppError('invalid_body', {
    message: 'cloneUrl begins with file://, which is not allowed here.',
    hint: 'Send an https or ssh address. For trials on one machine, an operator can set ENVIRONMENTS_ALLOW_FILE_REPOSITORIES=true.',
  });
}

/** Names are unique over all repositories, so a conflict would reveal to a restricted caller a repository that it may not see. */
export function refuseSelected(caller: Caller): void {
  if (reachOf(caller) === 'all') return;
  throw new AppError('forbidden_repository', {
    message: 'A credential with a repository selection cannot register or rename repositories.',
  });
}

export const secretBranchesOf = ({ environmentDefaults }: Pick<RepositoryInput, 'environmentDefaults'>) =>
  environmentDefaults?.['secretBranches'];

/** What decides which code gets the secrets of the repository, by field. */
export const decidingCode: readonly (readonly [string, (repository: Repository) => unknown])[] = [
  ['cloneUrl', ({ cloneUrl }) => cloneUrl],
  ['defaultBranch', ({ defaultBranch }) => defaultBranch],
  ['secretBranches', secretBranchesOf],
];

/** Without this check, a thief of a key with repos:write could run any code with the secrets (decision 0083). */
export function requireSession(caller: Caller, field: string): void {
  if (caller.kind === 'session') return;
  throw new AppError('interactive_auth_required', {
    message: `A key or token cannot change ${field}: it decides which code gets the secrets of the repository.`,
    hint: 'Make the change with the session of an administrator.',
  });
}

/** What an audit event records about a repository. */
export function facts(repository: Repository) {
  const { fullName, cloneUrl, defaultBranch, environmentDefaults } = repository;
  return { fullName, cloneUrl, defaultBranch, environmentDefaults };
}
