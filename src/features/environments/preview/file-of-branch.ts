import type { FileAtCommit, Git, GitAnswer, GitRemote } from '../../../platform/git/git.ts';
import {
  configurationFileName,
  missingFile,
  otherFileName,
  type Problem,
} from '../../configuration-file/configuration-file.ts';

/** `missing`: the message for people when the commit has no such file. */
export type FileOfBranch = Pick<FileAtCommit, 'sha' | 'subject'> &
  ({ readonly text: string } | { readonly text: null; readonly missing: Problem });

/** Reads `postern.yaml` at a commit of the branch. Default: its newest commit. */
export async function readFileOfBranch(
  git: Pick<Git, 'readFile'>,
  remote: GitRemote,
  branch: string,
  commit: string | null = null,
): Promise<GitAnswer<FileOfBranch>> {
  const found = await git.readFile(remote, branch, configurationFileName, commit);
  if (found.kind === 'failed') return found;
  const { sha, subject, text } = found.value;
  if (text !== null) return { kind: 'ok', value: { sha, subject, text } };
  const other = await git.readFile(remote, branch, otherFileName, sha);
  if (other.kind === 'failed') return other;
  return { kind: 'ok', value: { sha, subject, text, missing: missingFile(other.value.text !== null) } };
}
