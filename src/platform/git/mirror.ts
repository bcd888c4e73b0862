import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { failed, failedRun, type GitAnswer, ok } from './answers.ts';
import type { GitConfig, GitRun } from './run-git.ts';

export type FileAtCommit = {
  readonly sha: string;
  /** The first line of the commit's message, at most 200 characters. Null: git returned none. */
  readonly subject: string | null;
  readonly text: string | null;
};

export type MirrorAccess = {
  readonly url: string;
  /** Runs git with access to the remote. `writesTo` is watched for its size. */
  readonly run: (
    args: readonly string[],
    options: MirrorRun & { readonly writesTo: string },
  ) => Promise<GitRun>;
};

type MirrorRun = {
  readonly maxBytes: number;
  /** Besides that of the access. */
  readonly config: GitConfig;
  readonly env?: Readonly<Record<string, string>>;
  /** What git reads from its standard input. */
  readonly input?: string;
};

const maxTextBytes = 64 * 1024;

/** Removes the mirror after a failure: git that was ended leaves locks and parts of packs, with which every later fetch fails. */
export async function orRemove<T>(mirror: string, work: () => Promise<GitAnswer<T>>): Promise<GitAnswer<T>> {
  const answer = await work();
  if (answer.kind === 'failed') await rm(mirror, { recursive: true, force: true, maxRetries: 5 });
  return answer;
}

/** Runs git in the mirror. Offline it knows no remote, so it fetches nothing that is missing. */
export function gitOf(mirror: string, { url, run }: MirrorAccess) {
  // The remote is named for each run and stored nowhere.
  const remote = {
    'remote.origin.url': url,
    'remote.origin.promisor': 'true',
    'remote.origin.partialCloneFilter': 'blob:none',
  };
  return (
    args: readonly string[],
    {
      isOffline = false,
      maxBytes = maxTextBytes,
      config = {},
      ...rest
    }: Partial<MirrorRun> & { isOffline?: boolean } = {},
  ) =>
    run(['--git-dir', mirror, ...args], {
      ...rest,
      maxBytes,
      config: { ...(isOffline ? {} : remote), ...config },
      writesTo: join(mirror, 'objects/pack'),
    });
}

/** Fetches the branch into the mirror, which it creates if it is missing. Returns the newest commit. */
async function fetchBranch(
  mirror: string,
  branch: string,
  access: MirrorAccess,
  options: readonly string[],
): Promise<GitAnswer<string>> {
  const git = gitOf(mirror, access);
  const made = await git(['init', '--bare', '--quiet']);
  if (made.kind !== 'done') return failedRun(made);
  // One name for every branch: on the server `a` can be followed by `a/b`, which cannot both be files here.
  const reference = 'refs/postern/read';
  const quiet = ['--quiet', '--no-tags', '--no-write-fetch-head'];
  const fetched = await git(['fetch', ...quiet, ...options, 'origin', `+refs/heads/${branch}:${reference}`]);
  if (fetched.kind !== 'done') return failedRun(fetched);
  const head = await git(['rev-parse', '--verify', '--end-of-options', `${reference}^{commit}`]);
  return head.kind === 'done' ? ok(head.output.toString().trim()) : failedRun(head);
}

/** Fetches what git needs to know whether the branch contains the commit: of its newest, that alone. */
export async function reach(
  mirror: string,
  { branch, sha }: { readonly branch: string; readonly sha: string },
  access: MirrorAccess,
): Promise<GitAnswer<string>> {
  const newest = await fetchBranch(mirror, branch, access, ['--filter=blob:none', '--depth=1']);
  if (newest.kind === 'failed' || newest.value === sha) return newest;
  // The largest number means "all" (git-fetch(1)). All commits of the branch, without folders and files.
  const history = ['--filter=tree:0', '--depth=2147483647'];
  const all = await fetchBranch(mirror, branch, access, history);
  if (all.kind === 'failed') return all;
  // Offline: git would fetch a missing commit, and so one of another branch or of a pull request.
  const contained = await gitOf(mirror, access)(['merge-base', '--is-ancestor', sha, all.value], {
    isOffline: true,
  });
  if (contained.kind === 'failed') return failed('commit_not_in_branch');
  return contained.kind === 'done' ? ok(sha) : failedRun(contained);
}

/** Reads the subject of a commit. Everyone who can push chooses its text, so it is bounded; null when git would print more than it may. */
async function subjectOf(git: ReturnType<typeof gitOf>, sha: string): Promise<string | null> {
  const told = await git(['log', '-1', '--encoding=UTF-8', '--format=%s', '--end-of-options', sha], {
    isOffline: true,
  });
  if (told.kind !== 'done') return null;
  const text = told.output.toString().replaceAll(/\p{C}/gu, '').trim();
  return text === '' ? null : (/^.{1,200}/u.exec(text)?.[0] ?? null);
}

/** Reads a file at a commit of a branch; null: at its newest. */
export async function fileInMirror(
  mirror: string,
  { branch, sha: wanted, path }: { branch: string; sha: string | null; path: string },
  access: MirrorAccess,
  maxFileBytes: number,
): Promise<GitAnswer<FileAtCommit>> {
  // Without history and content: a large repository is read as quickly as a small one.
  const head =
    wanted === null
      ? await fetchBranch(mirror, branch, access, ['--filter=blob:none', '--depth=1'])
      : await reach(mirror, { branch, sha: wanted }, access);
  if (head.kind === 'failed') return head;
  const git = gitOf(mirror, access);
  const sha = head.value;
  const subject = await subjectOf(git, sha);
  const entry = await git(['ls-tree', '-z', sha, '--', path]);
  if (entry.kind !== 'done') return failedRun(entry);
  // The content of a link would be a path, and a submodule is a commit of another repository.
  const blob = /^100(?:644|755) blob ([0-9a-f]+)\t/.exec(entry.output.toString())?.[1];
  if (blob === undefined) return ok({ sha, subject, text: null });
  const content = await git(['cat-file', 'blob', blob], { maxBytes: maxFileBytes });
  return content.kind === 'done' ? ok({ sha, subject, text: content.output.toString() }) : failedRun(content);
}
