import { createHash, createHmac } from 'node:crypto';

/** What a build reads. Two builds with the same inputs give the same artifact, so the second is not run. */
type BuildInputs = {
  /** `digest` of the planned build: everything in the file that decides about the result. */
  readonly planDigest: string;
  /** Git's hash of the folder of inputs, in hexadecimal digits. */
  readonly tree: string;
  /** With their references replaced. */
  readonly variables: Readonly<Record<string, string>>;
};

/** Where an artifact may be used again: never in another repository, and never by an engine that builds differently. */
export type ArtifactKey = {
  readonly repositoryId: string;
  readonly engine: 'local' | 'kubernetes';
  /** Operating system and processor, such as linux-x64. */
  readonly platform: string;
  /** SHA-256 of the inputs, in hexadecimal digits. */
  readonly digest: string;
};

/** What an engine makes fits engines of the same place alone. */
export type BuildPlace = Pick<ArtifactKey, 'engine' | 'platform'>;

/**
 * The key under which an artifact is found again. Its digest holds an HMAC-SHA-256 of each value under `hmacKey`, so that values
 * cannot be guessed from a stored digest. Values of secrets are not part of it.
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
