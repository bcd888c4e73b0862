import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { failedRun, type GitAnswer, ok } from './answers.ts';
import type { GitConfig, GitRun } from './run-git.ts';

export type FileAtCommit = { readonly sha: string; readonly text: string | null };

type MirrorAccess = {
  readonly url: string;
  /** Runs git with access to the remote, and with `config` besides. `writesTo` is watched for its size. */
  readonly run: (
    args: readonly string[],
    maxBytes: number,
    config: GitConfig,
    writesTo: string,
  ) => Promise<GitRun>;
  readonly maxFileBytes: number;
};

const maxTextBytes = 64 * 1024;

/**
 * Fetches the branch into the mirror, and reads a file of its newest commit. Creates the mirror if it is missing, and removes
 * it after a failure: git that was ended leaves locks and parts of packs, with which every later fetch would fail.
 */
export async function fileInMirror(
  mirror: string,
  branch: string,
  path: string,
  access: MirrorAccess,
): Promise<GitAnswer<FileAtCommit>> {
  const answer = await read(mirror, branch, path, access);
  if (answer.kind === 'failed') await rm(mirror, { recursive: true, force: true, maxRetries: 5 });
  return answer;
}

async function read(
  mirror: string,
  branch: string,
  path: string,
  { url, run, maxFileBytes }: MirrorAccess,
): Promise<GitAnswer<FileAtCommit>> {
  // The remote is named for each run and stored nowhere.
  const config = {
    'remote.origin.url': url,
    'remote.origin.promisor': 'true',
    'remote.origin.partialCloneFilter': 'blob:none',
  };
  const git = (args: readonly string[], maxBytes = maxTextBytes) =>
    run(['--git-dir', mirror, ...args], maxBytes, config, join(mirror, 'objects/pack'));
  const made = await git(['init', '--bare', '--quiet']);
  if (made.kind !== 'done') return failedRun(made);

  // One name for every branch: on the server `a` can be followed by `a/b`, which cannot both be files here.
  const reference = 'refs/postern/read';
  // Without history and content: a large repository is read as quickly as a small one.
  const options = ['--quiet', '--no-tags', '--no-write-fetch-head', '--filter=blob:none', '--depth=1'];
  const fetched = await git(['fetch', ...options, 'origin', `+refs/heads/${branch}:${reference}`]);
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
