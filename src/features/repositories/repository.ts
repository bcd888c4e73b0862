import type { GitCredential } from '../../platform/git/git.ts';

/** A git repository as the domain knows it. Times in milliseconds. */
export type Repository = {
  readonly id: string;
  readonly fullName: string;
  readonly cloneUrl: string;
  readonly defaultBranch: string;
  readonly environmentDefaults: Readonly<Record<string, unknown>> | null;
  /** Whether Postern has a credential for the git server; never the credential. */
  readonly credential: { readonly kind: GitCredential['kind']; readonly setAt: number } | null;
  /** Whether Postern has a secret for webhooks of the git server; never the secret. */
  readonly webhook: { readonly setAt: number } | null;
  readonly createdAt: number;
  readonly updatedAt: number;
};

export type RepositoryInput = Pick<Repository, 'fullName' | 'cloneUrl' | 'defaultBranch'> & {
  readonly environmentDefaults?: Readonly<Record<string, unknown>> | null | undefined;
};

export type RepositoryChange = {
  readonly [Field in keyof RepositoryInput]?: RepositoryInput[Field] | undefined;
};
