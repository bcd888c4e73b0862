import type { KeyPolicy } from '../../../src/features/keys/key-policy.ts';

/** The issuers of three platforms, with rules for a repository, a project and a service account of theirs. */
export const githubUrl = 'https://token.actions.githubusercontent.com';
export const gitlabUrl = 'https://gitlab.example.com';
export const kubernetesUrl = 'https://oidc.cluster.example.com/id/7F3A';

export const githubRule = {
  issuer: githubUrl,
  claims: { repository_id: '598270112', repository_owner_id: '9919', ref: 'refs/heads/main' },
};
export const gitlabRule = {
  issuer: gitlabUrl,
  claims: { project_id: '22', ref: 'main', ref_type: 'branch', ref_protected: 'true' },
};
export const kubernetesRule = {
  issuer: kubernetesUrl,
  claims: { '/kubernetes.io/namespace': 'deploys', '/kubernetes.io/serviceaccount/name': 'publisher' },
};

export const trustingGithub: Partial<KeyPolicy> = {
  federation: { issuers: [{ url: githubUrl, preset: 'github' }] },
};
export const trustingAll: Partial<KeyPolicy> = {
  federation: {
    issuers: [
      { url: githubUrl, preset: 'github' },
      { url: gitlabUrl, preset: 'gitlab' },
      { url: kubernetesUrl, preset: 'kubernetes' },
    ],
  },
};
