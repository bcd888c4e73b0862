import type { Clock } from '../../core/clock.ts';
import { newId, type Random } from '../../core/ids.ts';
import type { Blob, Blobs } from '../../platform/blobs/blobs.ts';
import type { Tx } from '../../platform/database/database.ts';
import type { KeyFormat } from '../keys/keys.ts';
import { type ContentStore, type SitesConfig, takeFolder, type UploadProblem } from '../sites/sites.ts';
import type { Artifact, ArtifactKey } from '../engine/engine.ts';
import type { ArtifactContent, ArtifactStore } from './artifact-store.ts';
import type { BuildEnd, BuildStore } from './build-store.ts';

export type KeptOutput =
  | { readonly kind: 'kept' }
  /** The files cannot be served. `details`: every problem. */
  | {
      readonly kind: 'refused';
      readonly message: string;
      readonly fix: string;
      readonly details: readonly string[];
    }
  /** The clean-up has removed the unused bytes, or is removing them. Another build writes them again. */
  | { readonly kind: 'removed' }
  /** `holder` no longer runs the build. */
  | { readonly kind: 'not ours' };

export type KeepDeps = {
  readonly tx: Tx<{ builds: BuildStore; artifacts: ArtifactStore; content: ContentStore }>;
  readonly blobs: Blobs;
  readonly uploadRules: () => Promise<SitesConfig['upload']>;
  readonly format: KeyFormat;
  /** Called with each Postern key in the output. */
  readonly onKey: (value: string) => void;
  readonly clock: Clock;
  readonly random: Random;
};

type Built = {
  readonly jobId: string;
  readonly holder: string;
  readonly key: ArtifactKey;
  readonly kind: 'static' | 'process';
  readonly output: Artifact;
  /** When the build began. */
  readonly since: number;
  /** Called before the build ends, with warnings about files that may not be served as their author expects. */
  readonly onWarnings: (messages: readonly string[]) => Promise<void>;
};

/**
 * Stores the output of a build as an artifact and ends the build, in one transaction, so that a clean-up never finds content
 * without its owner. The content of a static service becomes files like those of a site; that of a process stays a tar.
 * @throws AppError store_unavailable
 */
export async function keepOutput(deps: KeepDeps, built: Built): Promise<KeptOutput> {
  if (built.kind === 'process') {
    const { digest, size, files, bytes } = built.output;
    const content = { kind: 'process', tar: { digest, size } } as const;
    return await keep(deps, built, { content, fileCount: files, sizeBytes: bytes, since: built.since });
  }
  const { blobs, format, onKey, clock } = deps;
  // Otherwise no retry could read it.
  if (!(await blobs.has(built.output.digest))) return { kind: 'removed' };
  const since = clock.now();
  const tar = await blobs.read(built.output.digest);
  const { files, problems, warnings, leftOut } = await takeFolder(tar, await deps.uploadRules(), {
    blobs,
    format,
    onKey,
  });
  if (problems.length > 0) return refused(problems);
  const sizeBytes = [...files.values()].reduce((sum, { size }) => sum + size, 0);
  const content = { kind: 'static', manifest: files } as const;
  const messages = [
    ...warnings.map(({ message }) => message),
    ...leftOut.map(({ rule, count }) => `Files left out by the rule ${rule}: ${count}.`),
  ];
  if (messages.length > 0) await built.onWarnings(messages);
  return await keep(deps, built, { content, fileCount: files.size, sizeBytes, since });
}

/** Rolls the transaction back. */
class Undo extends Error {
  readonly result: KeptOutput;
  constructor(result: KeptOutput) {
    super();
    this.result = result;
  }
}

async function keep(
  { tx, clock, random }: KeepDeps,
  { jobId, holder, key }: Built,
  {
    content,
    fileCount,
    sizeBytes,
    since,
  }: { content: ArtifactContent; fileCount: number; sizeBytes: number; since: number },
): Promise<KeptOutput> {
  const kept: readonly Blob[] = content.kind === 'static' ? [...content.manifest.values()] : [content.tar];
  const owner = { kind: 'repository', id: key.repositoryId } as const;
  const id = newId(random, 'art');
  const now = clock.now();
  try {
    return await tx(async (stores) => {
      await stores.content.lockForPublish(owner);
      const artifactId = await stores.artifacts.insert({ id, key, content, fileCount, sizeBytes, now });
      if (artifactId === id) {
        await stores.content.keep(owner, kept);
        const digests = kept.map(({ digest }) => digest);
        if ((await stores.content.goingAmong(digests, since)).length > 0) throw new Undo({ kind: 'removed' });
      }
      const end: BuildEnd = { status: 'built', artifactId };
      if (!(await stores.builds.end(jobId, holder, end, now))) throw new Undo({ kind: 'not ours' });
      return { kind: 'kept' };
    });
  } catch (error) {
    if (error instanceof Undo) return error.result;
    throw error;
  }
}

/** Maximum problems in the message; the log has all of them. */
const maxNamed = 3;

function refused(problems: readonly UploadProblem[]): KeptOutput {
  const details = problems.map(({ path, problem }) => `${path === '' ? 'The output' : path} ${problem}.`);
  const more = details.length - maxNamed;
  const hasKey = problems.some(({ code }) => code === 'credential_in_content');
  return {
    kind: 'refused',
    message: [
      hasKey ? 'The output contains an API key.' : 'The output cannot be served as static files.',
      ...details.slice(0, maxNamed),
      ...(more > 0 ? [`The log names ${more} more.`] : []),
    ].join(' '),
    fix: hasKey
      ? 'Revoke the key, and remove it from the files.'
      : 'Correct the files, or set build.output to the folder with the files to serve.',
    details,
  };
}
