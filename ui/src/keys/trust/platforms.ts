import type { Schemas } from '../../api/contract.ts';

export type Issuer = Schemas['TrustedIssuer'];
export type Preset = Issuer['preset'];

export const presets = ['github', 'gitlab', 'kubernetes', 'other'] as const satisfies readonly Preset[];

type Platform = {
  readonly label: string;
  /** The address of the issuer that all users of the platform share; empty if there is none. */
  readonly url: string;
  /** How to find the address. */
  readonly says: string;
  /** Labels of claims, by their names. */
  readonly claims: Readonly<Record<string, ClaimText>>;
};

type ClaimText = {
  readonly label: string;
  readonly says: string;
  /** The only texts that the platform writes, with their labels. The first one is selected first. */
  readonly choices?: readonly { readonly value: string; readonly label: string }[];
};

const openEnd = 'A * at the end stands for any text.';

export const platforms: Readonly<Record<Preset, Platform>> = {
  github: {
    label: 'GitHub Actions',
    url: 'https://token.actions.githubusercontent.com',
    says: 'For github.com. An Enterprise Server has its own.',
    claims: {
      repository_id: {
        label: 'Repository id',
        says: 'A number that a rename does not change. This prints it: gh api repos/OWNER/NAME --jq .id',
      },
      repository_owner_id: {
        label: 'Owner id',
        says: 'The number of the organization or user. This prints it: gh api users/OWNER --jq .id',
      },
      ref: {
        label: 'Branch or tag',
        says: `The whole ref, such as refs/heads/main. ${openEnd}`,
      },
      environment: {
        label: 'Environment of GitHub',
        says: `The environment that the job names, such as production. ${openEnd}`,
      },
    },
  },
  gitlab: {
    label: 'GitLab CI',
    url: 'https://gitlab.com',
    says: 'For gitlab.com. Another GitLab has its own address.',
    claims: {
      project_id: {
        label: 'Project id',
        says: 'A number that a rename does not change. The project shows it under Settings, General.',
      },
      ref: { label: 'Branch or tag', says: `Its name alone, such as main. ${openEnd}` },
      ref_type: {
        label: 'Kind of ref',
        says: 'A branch and a tag can have the same name.',
        choices: [
          { value: 'branch', label: 'Branch' },
          { value: 'tag', label: 'Tag' },
        ],
      },
      ref_protected: {
        label: 'Protection of the ref',
        says: 'Only maintainers, and people whom they allow, can push to a protected ref.',
        choices: [
          { value: 'true', label: 'Protected refs only' },
          { value: 'false', label: 'Unprotected refs only' },
        ],
      },
    },
  },
  kubernetes: {
    label: 'Kubernetes',
    url: '',
    says: 'The issuer in the output of: kubectl get --raw /.well-known/openid-configuration',
    claims: {
      '/kubernetes.io/namespace': {
        label: 'Namespace',
        says: 'The namespace of the pod.',
      },
      '/kubernetes.io/serviceaccount/name': {
        label: 'Service account',
        says: 'The name of the service account that the pod runs as.',
      },
    },
  },
  other: {
    label: 'Other',
    url: '',
    says: 'The address in the claim iss of its ID tokens.',
    claims: {},
  },
};

/** A claim without a label is shown by its name. */
export function claimLabel(preset: Preset | undefined, name: string): string {
  return (preset === undefined ? undefined : platforms[preset].claims[name]?.label) ?? name;
}

/** The label and the address of an issuer, such as in a list of choices. */
export const issuerLabel = ({ preset, url }: Issuer) => `${platforms[preset].label}: ${url}`;

/** The label of a text that the form offers as a choice. Undefined: it is none. */
export function choiceLabel(preset: Preset | undefined, name: string, text: string): string | undefined {
  const choices = preset === undefined ? undefined : platforms[preset].claims[name]?.choices;
  return choices?.find(({ value }) => value === text)?.label;
}
