import type { Caller } from '../../../core/caller.ts';
import type { Branch, Git, GitAnswer, GitRemote } from '../../../platform/git/git.ts';
import { createSharedAnswers } from '../../../platform/shared-answers.ts';
import type { Repositories, Repository } from '../../repositories/repositories.ts';
import { type FileOfBranch, readFileOfBranch } from './file-of-branch.ts';
import { gitErrorOf } from '../../builds/builds.ts';

/** Reads branches and files from the git server of a registered repository. A caller reads only repositories within reach. */
export type Branches = {
  /** Branches by name, the default branch first. @throws AppError repo_not_onboarded, invalid_repository, git_unavailable */
  list(caller: Caller, fullName: string, search: string | undefined): Promise<BranchOfRepository[]>;
  /** `postern.yaml` at the newest commit of the branch, or of the default branch. @throws the same, and invalid_branch */
  configurationFile(caller: Caller, fullName: string, branch: string | undefined): Promise<NamedFile>;
};

type NamedFile = FileOfBranch & { readonly branch: string };

export type BranchOfRepository = Branch & { readonly isDefault: boolean };

export function createBranches({
  repositories,
  git,
}: {
  readonly repositories: Pick<Repositories, 'get' | 'credentialOf'>;
  readonly git: Pick<Git, 'branches' | 'readFile'>;
}): Branches {
  const shared = createSharedAnswers();

  async function remoteOf(caller: Caller, { id, cloneUrl }: Repository): Promise<GitRemote> {
    return { id, cloneUrl, credential: await repositories.credentialOf(id), asker: askerOf(caller) };
  }

  return {
    async list(caller, fullName, search = '') {
      const repository = await repositories.get(caller, fullName);
      const remote = await remoteOf(caller, repository);
      const found = orThrow(await shared(`${remote.id} ${remote.cloneUrl}`, () => git.branches(remote)));
      const part = search.toLowerCase();
      return found
        .filter(({ name }) => name.toLowerCase().includes(part))
        .map((branch) => ({ ...branch, isDefault: branch.name === repository.defaultBranch }))
        .toSorted((a, b) => Number(b.isDefault) - Number(a.isDefault));
    },
    async configurationFile(caller, fullName, wanted) {
      const repository = await repositories.get(caller, fullName);
      const branch = wanted ?? repository.defaultBranch;
      const remote = await remoteOf(caller, repository);
      const question = `${remote.id} ${remote.cloneUrl} ${branch}`;
      const file = await shared(question, () => readFileOfBranch(git, remote, branch));
      return { ...orThrow(file), branch };
    },
  };
}

function askerOf(caller: Caller): string {
  if ('key' in caller) return caller.key.id;
  return 'user' in caller ? caller.user.id : 'anonymous';
}

function orThrow<T>(answer: GitAnswer<T>): T {
  if (answer.kind === 'ok') return answer.value;
  throw gitErrorOf(answer.reason);
}
