import { Readable, Transform } from 'node:stream';
import type { Blob, BlobBatch, Blobs } from '../../../platform/blobs/blobs.ts';
import { type ArchiveEntry, ArchiveRefused } from './archive.ts';
import { type Judge, type JudgeDeps, judged, type Received, type UploadLimits } from './judge.ts';
import { keyScan, scanned } from './key-scan.ts';

/** Takes what an archive holds: judged by judge.ts, every byte counted, scanned and kept under its digest. */
export type ReceiveDeps = JudgeDeps & {
  readonly blobs: Pick<Blobs, 'batch'>;
  /** Told of bytes before they are kept; what it throws ends the upload. */
  readonly onBytes?: (bytes: number) => void;
};

export async function receive(
  entries: AsyncIterable<ArchiveEntry>,
  limits: UploadLimits,
  deps: ReceiveDeps,
): Promise<Received> {
  const batch = deps.blobs.batch();
  const takeAll = async (judge: Judge) => {
    try {
      for await (const entry of entries) {
        const path = judge.admit(entry.name, entry.problem);
        if (path !== undefined) await takeFile(entry, path, judge, batch, deps);
      }
    } catch (error) {
      if (!(error instanceof ArchiveRefused)) throw error;
      judge.refuse('', 'bad_archive', error.message);
    }
  };
  try {
    const received = await judged(limits, deps, takeAll, withoutTopFolder);
    // What is refused is never published, so nothing of it need outlast anything.
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
  { format, onKey, onBytes }: Omit<ReceiveDeps, 'blobs'>,
): Promise<void> {
  const { count, isTooLong } = counter(judge, onBytes);
  let hasKey = false;
  const found = (value: string) => {
    hasKey = true;
    onKey(value);
  };
  let blob: Blob | undefined;
  let source: Readable | Buffer | undefined;
  try {
    source = await entry.open();
    if (Buffer.isBuffer(source) && scanned(source, format, found)) {
      if (count(source.length)) blob = await batch.write(source);
    } else {
      if (Buffer.isBuffer(source)) source = Readable.from([source]);
      blob = await batch.write(chain(source, counting(count), keyScan(format, found)));
    }
  } catch (error) {
    // What is left of it would hold up the entries behind it.
    if (source instanceof Readable) source.destroy();
    if (error instanceof TooMuch) judge.stopTooHeavy();
    if (!(error instanceof ArchiveRefused)) throw error;
    return judge.refuse(entry.name, 'bad_entry', error.message);
  }
  if (isTooLong() || blob === undefined) return judge.refuseTooLong(entry.name);
  if (hasKey)
    return judge.refuse(
      entry.name,
      'credential_in_content',
      'contains an API key; revoke that key and remove it',
    );
  judge.keep(path, blob);
}

/** Counts before anything else sees the bytes. `count`: whether they are to be taken; throws what ends the upload. */
function counter(
  judge: Judge,
  onBytes: ReceiveDeps['onBytes'],
): { count: (bytes: number) => boolean; isTooLong: () => boolean } {
  let own = 0;
  const isTooLong = () => judge.isTooLong(own);
  function count(bytes: number): boolean {
    own += bytes;
    if (!judge.weigh(bytes)) throw new TooMuch();
    if (isTooLong()) return false;
    onBytes?.(bytes);
    return true;
  }
  return { count, isTooLong };
}

/** What is too long is read to its end and goes nowhere. */
function counting(count: (bytes: number) => boolean): Transform {
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      try {
        if (count(chunk.length)) done(null, chunk);
        else done();
      } catch (error) {
        done(error as Error);
      }
    },
  });
}

class TooMuch extends Error {}

/** One stream after another; a failure anywhere is a failure of the last. */
export function chain(source: NodeJS.ReadableStream, ...steps: readonly Transform[]): Transform {
  let last: NodeJS.ReadableStream = source;
  for (const step of steps) {
    last.on('error', (error: Error) => step.destroy(error));
    last = last.pipe(step);
  }
  return last as Transform;
}

/** A folder that was packed as one: `site/index.html` means the site's `index.html`, when that folder is all there is. */
function withoutTopFolder(files: ReadonlyMap<string, Blob>): ReadonlyMap<string, Blob> {
  const tops = new Set([...files.keys()].map((path) => path.split('/')[0]));
  const [top] = tops;
  if (tops.size !== 1 || top === undefined || !files.has(`${top}/index.html`)) return files;
  return new Map([...files].map(([path, blob]) => [path.slice(top.length + 1), blob]));
}
