import { failedRun, type GitAnswer, ok } from './answers.ts';
import type { GitConfig, GitRun } from './run-git.ts';

export type FileAtCommit = { readonly sha: string; readonly text: string | null };

type MirrorAccess = {
  readonly cloneUrl: string;
  /** Runs git with access to the remote, and with `config` besides. */
  readonly run: (args: readonly string[], maxBytes: number, config: GitConfig) => Promise<GitRun>;
  readonly maxFileBytes: number;
};

const maxTextBytes = 64 * 1024;

/** Fetches the branch into the mirror, and reads a file of its newest commit. Creates the mirror if it is missing. */
export async function fileInMirror(
  mirror: string,
  branch: string,
  path: string,
  { cloneUrl, run, maxFileBytes }: MirrorAccess,
): Promise<GitAnswer<FileAtCommit>> {
  // The remote is named for each run and stored nowhere, so that a changed clone URL is used at once.
  const config = {
    'remote.origin.url': cloneUrl,
    'remote.origin.promisor': 'true',
    'remote.origin.partialCloneFilter': 'blob:none',
  };
  const git = (args: readonly string[], maxBytes = maxTextBytes) =>
    run(['--git-dir', mirror, ...args], maxBytes, config);
  const made = await git(['init', '--bare', '--quiet']);
  if (made.kind !== 'done') return failedRun(made);

  const reference = `refs/heads/${branch}`;
  // Without history and content: a large repository is read as quickly as a small one.
  const options = ['--quiet', '--no-tags', '--no-write-fetch-head', '--filter=blob:none', '--depth=1'];
  const fetched = await git(['fetch', ...options, 'origin', `+${reference}:${reference}`]);
  if (fetched.kind !== 'done') return failedRun(fetched);
  const head = await git(['rev-parse', '--verify', '--end-of-options', `${reference}^{commit}`]);
  if (head.kind !== 'done') return failedRun(head);
  const sha = head.output.toString().trim();

  const entry = await git(['ls-tree', '-z', sha, '--', path]);
  if (entry.kind !== 'done') return failedRun(entry);
  // The content of a link would be a path, and a submodule is a commit of another repository.
  const blob = /^100(?:644|755) blob ([0-9a-f]+)\t/.exec(entry.output.toString())?.[1];
  if (blob === undefined) return ok({ sha, text: null });
  const content = await git(['cat-file', 'blob', blob], maxFileBytes);
  return content.kind === 'done' ? ok({ sha, text: content.output.toString() }) : failedRun(content);
}
