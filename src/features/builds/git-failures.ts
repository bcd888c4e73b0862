import { AppError } from '../../core/errors.ts';
import type { GitFailure } from '../../platform/git/git.ts';

/** Why a repository cannot be read, and what to do, in messages for clients. */
const failures: Record<GitFailure, readonly [message: string, hint: string]> = {
  not_installed: [
    'git, or ssh for this clone URL, is not installed on this machine.',
    'Install git 2.37 or newer and OpenSSH, and try again.',
  ],
  unsupported_url: [
    'The clone URL is neither https nor ssh.',
    'Register a clone URL that begins with https:// or git@.',
  ],
  host_not_found: [
    'The host of the clone URL has no address.',
    'Check the host name in the clone URL, and the name service of this machine.',
  ],
  private_address: [
    'The host of the clone URL is in a private or reserved network.',
    'Use a public host, or name this host in OUTBOUND_ALLOW_PRIVATE if it may be read.',
  ],
  credential_refused: [
    'The git server asks for a credential, or refused the one that is stored.',
    'Store a token or a key that may read the repository.',
  ],
  host_key_unknown: [
    'The host key of the git server is not the one that is stored, or none is stored.',
    'Store the private key again with a line of known_hosts for this host, such as the output of ssh-keyscan.',
  ],
  repository_not_found: [
    'The git server has no such repository, or hides it from this credential.',
    'Check the clone URL, and that the credential may read the repository.',
  ],
  redirected: [
    'The git server redirects this clone URL to another address.',
    'Register the address to which it redirects.',
  ],
  branch_not_found: ['The repository has no such branch.', 'Choose one of its branches.'],
  commit_not_in_branch: [
    'The branch does not contain the commit.',
    'Choose a commit of this branch, or the branch of the commit.',
  ],
  no_such_files: [
    'No file of the commit is an input of the build.',
    'Correct build.directory or build.inputs in postern.yaml.',
  ],
  submodule: [
    'An input of the build is a submodule, which Postern does not fetch.',
    'Leave it out of build.inputs, or add its files to the repository.',
  ],
  lfs_pointer: [
    'An input of the build is stored in Git LFS, from which Postern does not fetch.',
    'Leave it out of build.inputs, or add the file itself to the repository.',
  ],
  link_outside: [
    'An input of the build is a symbolic link that leads out of the repository.',
    'Remove the link, or leave it out of build.inputs.',
  ],
  too_large: ['The answer of the git server is larger than Postern reads.', 'Remove branches or files.'],
  timed_out: ['The git server did not answer in time.', 'Try again later.'],
  unreachable: [
    'The git server could not be reached, or its answer was not understood.',
    'Check that the clone URL works from this machine with: git ls-remote URL',
  ],
};

/** Temporary failures: the same request may succeed later. All others need a change of the repository. */
const passing: readonly GitFailure[] = ['not_installed', 'host_not_found', 'timed_out', 'unreachable'];

/** Failures that the user can fix by editing postern.yaml. */
const ofConfiguration: readonly GitFailure[] = ['no_such_files', 'submodule', 'lfs_pointer', 'link_outside'];

/** `path`: the file of the repository that caused the failure. */
export function gitErrorOf(reason: GitFailure, path?: string): AppError {
  const [sentence, hint] = failures[reason];
  const message = path === undefined ? sentence : `${sentence} The file is ${path}.`;
  if (reason === 'branch_not_found') return new AppError('invalid_branch', { message, hint });
  if (passing.includes(reason))
    return new AppError('git_unavailable', { message, hint, retryAfterSeconds: 10 });
  const code = ofConfiguration.includes(reason) ? 'config_invalid' : 'invalid_repository';
  return new AppError(code, { message, hint, details: { reason } });
}

/** Why a build has no inputs. @throws the error itself when it is temporary */
export function sourceFailure(error: AppError) {
  if (error.status === 503) throw error;
  const reason = error.code === 'config_invalid' ? 'wrong_inputs' : 'no_source';
  return { reason, message: error.message, fix: error.hint } as const;
}
