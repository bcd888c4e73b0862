import type { KeyPolicy } from '../../../src/features/keys/key-policy.ts';
import type { Platform } from '../../id-tokens/platforms.ts';

/** The issuers of three platforms, with rules for a repository, a project and a service account, and requests about them. */
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

/** A part of the key policy that lists these issuers with their public keys, so that nothing is fetched. */
export function trusting(...platforms: readonly Platform[]): Pick<KeyPolicy, 'federation'> {
  const issuers = platforms.map(({ issuer, publicKey }) => ({ ...issuer, jwks: { keys: [publicKey] } }));
  return { federation: { issuers } };
}

/** The body of a request for a federated key. */
export const federatedKey = (trust: readonly object[]) => ({
  name: 'deploys',
  scopes: ['sites:write'],
  repositoryAccess: { mode: 'all' },
  credential: 'federated',
  trust,
});

/** The fields of an exchange. */
export const exchangeOf = (idToken: string, keyId: string) => ({
  grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
  subject_token: idToken,
  subject_token_type: 'urn:ietf:params:oauth:token-type:id_token',
  audience: keyId,
});

export const urlEncoded = (fields: Record<string, string> | string) => ({
  type: 'application/x-www-form-urlencoded',
  bytes: Buffer.from(new URLSearchParams(fields).toString()),
});
