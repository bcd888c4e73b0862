import { generateKeyPairSync, type KeyObject, randomUUID } from 'node:crypto';
import { CompactSign, type CompactJWSHeaderParameters } from 'jose';
import type { Preset, SigningKey, TrustedIssuer } from '../../src/features/keys/keys.ts';

/**
 * Issuers of ID tokens. Header and claims have the form of the platform's documents: GitHub Actions ("OpenID Connect
 * reference"), GitLab ("ID token authentication") and Kubernetes ("Managing service accounts", bound tokens).
 */
export type Platform = {
  readonly issuer: TrustedIssuer;
  readonly kid: string;
  readonly publicKey: SigningKey;
  readonly privateKey: KeyObject;
  /** The claims of a job that starts now, for this audience. */
  claims(now: number, audience: string): Record<string, unknown>;
  readonly header: CompactJWSHeaderParameters;
  /** Signs any claims. `header` replaces parts of the header. */
  sign(claims: unknown, header?: Record<string, unknown>, key?: KeyObject): Promise<string>;
};

type Form = {
  readonly header: (kid: string) => CompactJWSHeaderParameters;
  readonly claims: (iss: string, aud: string, at: number) => Record<string, unknown>;
};

const forms: Readonly<Record<Preset, Form>> = {
  github: {
    header: (kid) => ({ typ: 'JWT', alg: 'RS256', x5t: kid, kid }),
    claims: (iss, aud, at) => ({
      jti: randomUUID(),
      sub: 'repo:octo-org/octo-repo:ref:refs/heads/main',
      aud,
      ref: 'refs/heads/main',
      sha: '1f0c8e0b1f5d0f6a4b7b1f8d3a1c5d2e9b7a6c43',
      repository: 'octo-org/octo-repo',
      repository_owner: 'octo-org',
      repository_owner_id: '9919',
      run_id: '9876543210',
      run_number: '10',
      run_attempt: '2',
      repository_visibility: 'private',
      repository_id: '598270112',
      actor_id: '12',
      actor: 'octocat',
      workflow: 'deploy',
      head_ref: '',
      base_ref: '',
      event_name: 'push',
      ref_protected: 'true',
      ref_type: 'branch',
      workflow_ref: 'octo-org/octo-repo/.github/workflows/deploy.yml@refs/heads/main',
      workflow_sha: '1f0c8e0b1f5d0f6a4b7b1f8d3a1c5d2e9b7a6c43',
      job_workflow_ref: 'octo-org/octo-repo/.github/workflows/deploy.yml@refs/heads/main',
      job_workflow_sha: '1f0c8e0b1f5d0f6a4b7b1f8d3a1c5d2e9b7a6c43',
      runner_environment: 'github-hosted',
      iss,
      nbf: at - 300,
      exp: at + 600,
      iat: at,
    }),
  },
  gitlab: {
    header: (kid) => ({ kid, typ: 'JWT', alg: 'RS256' }),
    claims: (iss, aud, at) => ({
      namespace_id: '72',
      namespace_path: 'my-group',
      project_id: '22',
      project_path: 'my-group/my-project',
      user_id: '1',
      user_login: 'sample-user',
      user_email: 'sample-user@example.com',
      user_access_level: 'developer',
      user_identities: [{ provider: 'github', extern_uid: '2435223452345' }],
      pipeline_id: '574',
      pipeline_source: 'push',
      job_id: '302',
      ref: 'main',
      ref_type: 'branch',
      ref_path: 'refs/heads/main',
      ref_protected: 'true',
      groups_direct: ['my-group/my-subgroup'],
      environment: 'production',
      environment_protected: 'false',
      deployment_tier: 'production',
      environment_action: 'start',
      runner_id: 1,
      runner_environment: 'self-hosted',
      sha: '714a629c0b401fdce83e847fc9589983fc6f46bc',
      project_visibility: 'public',
      ci_config_ref_uri: 'gitlab.example.com/my-group/my-project//.gitlab-ci.yml@refs/heads/main',
      ci_config_sha: '714a629c0b401fdce83e847fc9589983fc6f46bc',
      jti: randomUUID(),
      iat: at,
      nbf: at - 5,
      exp: at + 3_600,
      iss,
      aud,
      sub: 'project_path:my-group/my-project:ref_type:branch:ref:main',
    }),
  },
  kubernetes: {
    header: (kid) => ({ alg: 'RS256', kid }),
    claims: (iss, aud, at) => ({
      aud: [aud],
      exp: at + 3_600,
      iat: at,
      iss,
      jti: randomUUID(),
      'kubernetes.io': {
        namespace: 'deploys',
        node: { name: 'node-1', uid: 'd2c5ab09-1d0b-4a6e-9d3a-3a0f2d1f5a11' },
        pod: { name: 'publisher-7d9f', uid: '0f1b8a7e-6a3c-4f0f-8f0b-9f3f6a2d7c55' },
        serviceaccount: { name: 'publisher', uid: 'a3e9b1c2-5f7d-4c8e-a6b0-1d2e3f4a5b6c' },
      },
      nbf: at,
      sub: 'system:serviceaccount:deploys:publisher',
    }),
  },
  other: {
    header: (kid) => ({ alg: 'RS256', kid }),
    claims: (iss, aud, at) => ({
      iss,
      aud,
      iat: at,
      exp: at + 600,
      jti: randomUUID(),
      sub: 'build-7',
      project: 'shop',
      branch: 'main',
    }),
  },
};

const pairs = {
  RS256: () => generateKeyPairSync('rsa', { modulusLength: 2048 }),
  ES256: () => generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  EdDSA: () => generateKeyPairSync('ed25519'),
};

/** An issuer with a fresh key. The three platforms sign with RS256. */
export function openPlatform(preset: Preset, url: string, alg: keyof typeof pairs = 'RS256'): Platform {
  const { publicKey, privateKey } = pairs[alg]();
  const kid = randomUUID();
  const { header, claims } = forms[preset];
  const own = { ...header(kid), alg };
  return {
    issuer: { url, preset },
    kid,
    // A public key of one of the types above.
    publicKey: { ...publicKey.export({ format: 'jwk' }), kid, use: 'sig' } as SigningKey,
    privateKey,
    header: own,
    claims: (now, audience) => claims(url, audience, Math.floor(now / 1_000)),
    sign: (said, more = {}, key = privateKey) =>
      new CompactSign(new TextEncoder().encode(JSON.stringify(said)))
        .setProtectedHeader({ ...own, ...more })
        .sign(key),
  };
}
