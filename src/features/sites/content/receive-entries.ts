import { finished, Readable, Transform } from 'node:stream';
import type { Blob, BlobBatch, Blobs } from '../../../platform/blobs/blobs.ts';
import { type ArchiveEntry, ArchiveRefused } from './archive.ts';
import type { LimitProblem, UploadLimits } from './upload-limits.ts';
import { type Judge, type JudgeDeps, judged, keyInContent, type Received } from './judge.ts';
import { keyScan, type LookBudget, scanned } from './key-scan.ts';
import { mayHoldRules, rulesIn } from './version-rules.ts';
import { maxRulesBytes } from './site-rules.ts';
import { type SiteWarning, warningsOf } from './warnings.ts';

/**
 * Takes the entries of an archive: judge.ts judges each name, and every byte is counted, scanned and stored under its
 * digest.
 */
export type ReceiveDeps = JudgeDeps & {
  readonly blobs: Pick<Blobs, 'batch'>;
  /** Called with a number of bytes before they are kept; an exception ends the upload. */
  readonly onBytes?: (bytes: number) => void;
  readonly budget: LookBudget;
  /** Aborted when the client disconnects; judging then stops. */
  readonly left?: AbortSignal;
  /** True: the names are final, even when all begin with the same folder. */
  readonly keepsTopFolder?: boolean;
};

export async function receive(
  entries: AsyncIterable<ArchiveEntry>,
  limits: UploadLimits,
  deps: ReceiveDeps,
): Promise<Received & { readonly warnings: readonly SiteWarning[] }> {
  const batch = deps.blobs.batch();
  const rules = new Map<string, string>();
  let first: string | undefined;
  const takeAll = async (judge: Judge) => {
    try {
      for await (const entry of entries) {
        deps.left?.throwIfAborted();
        const path = judge.admit(entry.name, entry.problem);
        if (path === undefined) continue;
        first ??= path;
        const keepRules = mayHoldRules(path, first) ? rules : undefined;
        await takeFile(entry, path, judge, batch, { ...deps, keepRules });
      }
    } catch (error) {
      if (!(error instanceof ArchiveRefused)) throw error;
      judge.refuse('', { code: 'bad_archive', problem: error.message });
    }
  };
  try {
    const taken = await judged(
      limits,
      deps,
      takeAll,
      deps.keepsTopFolder === true ? undefined : withoutTopFolder,
    );
    const found = await rulesIn(taken.files, (digest) => rules.get(digest) ?? '');
    const received = { ...taken, warnings: await warningsOf(taken.files, found) };
    // Content of a refused upload is never published, so it need not survive a crash.
    if (received.problems.length === 0) await batch.flush();
    return received;
  } finally {
    await batch.close();
  }
}

async function takeFile(
  entry: ArchiveEntry,
  path: string,
  judge: Judge,
  batch: BlobBatch,
  {
    format,
    onKey,
    onBytes,
    budget,
    keepRules,
  }: Omit<ReceiveDeps, 'blobs'> & { readonly keepRules: Map<string, string> | undefined },
): Promise<void> {
  const { count, problem } = counter(judge, onBytes);
  let hasKey = false;
  const found = (value: string) => {
    hasKey = true;
    onKey(value);
  };
  let blob: Blob;
  const text = keepRules === undefined ? undefined : collector();
  let source: Readable | Buffer | undefined;
  try {
    source = await entry.open();
    if (Buffer.isBuffer(source) && scanned(source, format, found)) {
      const tooLong = count(source.length);
      if (tooLong !== undefined) return judge.refuse(entry.name, tooLong);
      blob = await batch.write(source);
      text?.take(source);
    } else {
      if (Buffer.isBuffer(source)) source = Readable.from([source]);
      const steps = [
        counting(count),
        ...(text === undefined ? [] : [text.tee()]),
        keyScan(format, found, budget),
      ];
      blob = await batch.write(chain(source, ...steps));
    }
  } catch (error) {
    // The unread rest would block the entries behind it.
    if (source instanceof Readable) source.destroy();
    if (!(error instanceof ArchiveRefused)) throw error;
    return judge.refuse(entry.name, { code: 'bad_entry', problem: error.message });
  }
  const tooLong = problem();
  if (tooLong !== undefined) return judge.refuse(entry.name, tooLong);
  if (hasKey) return judge.refuse(entry.name, keyInContent);
  if (text !== undefined) keepRules?.set(blob.digest, text.whole());
  judge.keep(path, blob);
}

/** Holds the beginning of a file, up to the maximum length of rules. */
function collector() {
  const chunks: Buffer[] = [];
  let length = 0;
  const take = (chunk: Buffer) => {
    if (length <= maxRulesBytes) chunks.push(chunk);
    length += chunk.length;
  };
  return {
    take,
    tee: () =>
      new Transform({
        transform(chunk: Buffer, _encoding, done) {
          take(chunk);
          done(null, chunk);
        },
      }),
    whole: () => Buffer.concat(chunks).toString(),
  };
}

/** Counts bytes before anything else processes them. `count` returns why not to take them, and throws to end the upload. */
function counter(
  judge: Judge,
  onBytes: ReceiveDeps['onBytes'],
): { count: (bytes: number) => LimitProblem | undefined; problem: () => LimitProblem | undefined } {
  let own = 0;
  const problem = () => judge.fileProblem(own);
  function count(bytes: number): LimitProblem | undefined {
    own += bytes;
    judge.weigh(bytes);
    const found = problem();
    if (found === undefined) onBytes?.(bytes);
    return found;
  }
  return { count, problem };
}

/** Reads a file that is too long to its end and discards it. */
function counting(count: (bytes: number) => LimitProblem | undefined): Transform {
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      try {
        if (count(chunk.length) === undefined) done(null, chunk);
        else done();
      } catch (error) {
        done(error as Error);
      }
    },
  });
}

/** Pipes streams in sequence; a failure of any of them becomes a failure of the last. */
export function chain(source: NodeJS.ReadableStream, ...steps: readonly Transform[]): Transform {
  let last: NodeJS.ReadableStream = source;
  for (const step of steps) {
    // An event listener alone is not enough: the stream may have failed before it was attached.
    finished(last, { writable: false }, (error) => {
      if (error) step.destroy(error);
    });
    last = last.pipe(step);
  }
  return last as Transform;
}

/** Strips the top folder of an archive that holds only that folder: `site/index.html` becomes `index.html`. */
function withoutTopFolder(files: ReadonlyMap<string, Blob>): ReadonlyMap<string, Blob> {
  const tops = new Set([...files.keys()].map((path) => path.split('/')[0]));
  const [top] = tops;
  if (tops.size !== 1 || top === undefined || !files.has(`${top}/index.html`)) return files;
  return new Map([...files].map(([path, blob]) => [path.slice(top.length + 1), blob]));
}
