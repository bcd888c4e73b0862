import type { GitRun } from './run-git.ts';

/** Answer of a repository to a query. */
export type GitAnswer<T> =
  | { readonly kind: 'ok'; readonly value: T }
  /** `path`: the file of the repository that is the reason. */
  | { readonly kind: 'failed'; readonly reason: GitFailure; readonly path?: string };

/** Why a repository cannot be read. `features/builds/git-failures.ts` has the words for people. */
export type GitFailure =
  | 'not_installed'
  | 'unsupported_url'
  | 'host_not_found'
  | 'private_address'
  | 'credential_refused'
  | 'host_key_unknown'
  | 'repository_not_found'
  | 'redirected'
  | 'branch_not_found'
  | 'commit_not_in_branch'
  | 'no_such_files'
  | 'submodule'
  | 'lfs_pointer'
  | 'link_outside'
  | 'too_large'
  | 'timed_out'
  | 'unreachable';

/** Patterns of git's messages (LC_ALL=C), git 2.37 and newer. The first that matches decides. */
const complaints: readonly (readonly [RegExp, GitFailure])[] = [
  [/host key verification failed|no \S{1,50} host key is known/i, 'host_key_unknown'],
  [/unable to update url base from redirection|requested url returned error: 30\d/i, 'redirected'],
  [
    /authentication failed|could not read (?:username|password)|returned error: 40[13]|permission denied \(/i,
    'credential_refused',
  ],
  [/remote branch \S{1,300} not found|couldn't find remote ref/i, 'branch_not_found'],
  [
    /repository '[^'\n]{1,600}'\/? not found|returned error: 404|does not appear to be a git repository|does not exist/i,
    'repository_not_found',
  ],
  [/could not resolve host/i, 'host_not_found'],
  [/timed out/i, 'timed_out'],
];

function reasonOf(run: Exclude<GitRun, { kind: 'done' }>): GitFailure {
  if (run.kind !== 'failed') return run.kind;
  return complaints.find(([pattern]) => pattern.test(run.complaint))?.[1] ?? 'unreachable';
}

export function ok<T>(value: T): GitAnswer<T> {
  return { kind: 'ok', value };
}

export function failed(reason: GitFailure, path?: string): GitAnswer<never> {
  return path === undefined ? { kind: 'failed', reason } : { kind: 'failed', reason, path };
}

/** The failure of a run, for a reader of the repository. */
export function failedRun(run: Exclude<GitRun, { kind: 'done' }>): GitAnswer<never> {
  return failed(reasonOf(run));
}
