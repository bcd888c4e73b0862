import { createHash, createHmac } from 'node:crypto';

/** Inputs of a build. Two builds with the same inputs give the same artifact, so the second does not run. */
type BuildInputs = {
  /** `digest` of the planned build: everything in the file that affects the result. */
  readonly planDigest: string;
  /** Git's hash of the folder of inputs, in hexadecimal digits. */
  readonly tree: string;
  /** Variables after their references were replaced. */
  readonly variables: Readonly<Record<string, string>>;
};

/** Identifies a reusable artifact. Another repository, or an engine that builds differently, never reuses it. */
export type ArtifactKey = {
  readonly repositoryId: string;
  readonly engine: 'local' | 'kubernetes';
  /** Operating system and processor, such as linux-x64. */
  readonly platform: string;
  /** SHA-256 of the inputs, in hexadecimal digits. */
  readonly digest: string;
};

/** Only engines with the same place can use an artifact. */
export type BuildPlace = Pick<ArtifactKey, 'engine' | 'platform'>;

/**
 * Key for looking up an artifact. Its digest covers an HMAC-SHA-256 of each value under `hmacKey`, so that values
 * cannot be guessed from a stored digest. It does not cover values of secrets.
 */
export function artifactKeyOf(
  { planDigest, tree, variables }: BuildInputs,
  place: Omit<ArtifactKey, 'digest'>,
  hmacKey: string,
): ArtifactKey {
  const hidden = Object.entries(variables)
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, value]) => [name, createHmac('sha256', hmacKey).update(`${name}\0${value}`).digest('hex')]);
  const digest = createHash('sha256')
    .update(JSON.stringify([1, planDigest, tree, hidden]))
    .digest('hex');
  return { ...place, digest };
}
