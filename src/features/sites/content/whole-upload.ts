import { createHash, hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { finished, type Readable, Transform } from 'node:stream';
import type { Blob, BlobBatch } from '../../../platform/blobs/blobs.ts';
import type { TemporaryFiles } from '../../../platform/temporary-files.ts';
import type { KeyFormat } from '../../keys/keys.ts';
import type { UploadRules } from '../site/sites-config.ts';
import { maxTarBytes, requireUploadBytes } from './upload-limits.ts';
import type { ArchiveEntry } from './archive.ts';
import type { LeftOut, Received, UploadProblem } from './judge.ts';
import { receiptOf } from './manifest.ts';
import { lookBudget } from './key-scan.ts';
import { receive, type ReceiveDeps } from './receive-entries.ts';
import { readTarGz } from './tar.ts';
import type { SiteWarning } from './warnings.ts';
import { readZip } from './zip.ts';

/** One whole upload, from a file or from a request. receive-entries.ts decides what may be in it. */
export const uploadKinds = ['html', 'zip', 'tar.gz'] as const;
export type UploadKind = (typeof uploadKinds)[number];

/** By the file's name; undefined for any other kind of file. */
export function uploadKindOf(fileName: string): UploadKind | undefined {
  const name = fileName.toLowerCase();
  if (name.endsWith('.zip')) return 'zip';
  if (name.endsWith('.tar.gz') || name.endsWith('.tgz')) return 'tar.gz';
  return name.endsWith('.html') || name.endsWith('.htm') ? 'html' : undefined;
}

export type UploadReport = {
  readonly problems: readonly UploadProblem[];
  readonly warnings: readonly SiteWarning[];
  readonly leftOut: readonly LeftOut[];
  readonly files: number;
  /** Unpacked. */
  readonly bytes: number;
  /** See receiptOf(); null when there are problems. */
  readonly receipt: string | null;
};

/** Judges an upload in a file by the rules of a publish. Keeps nothing. */
export async function checkUpload(
  file: { readonly path: string; readonly kind: UploadKind },
  rules: UploadRules,
  format: KeyFormat,
): Promise<UploadReport> {
  const entries = file.kind === 'zip' ? readZip(file.path, rules.maxFiles) : undefined;
  const { files, problems, warnings, leftOut } = await receive(
    entries ?? streamedEntries(createReadStream(file.path), file.kind, rules),
    rules,
    {
      blobs: { batch: onlyDigests },
      format,
      onKey: () => undefined,
      budget: lookBudget(rules.maxExtractedBytes),
    },
  );
  const bytes = [...files.values()].reduce((sum, { size }) => sum + size, 0);
  const receipt = problems.length > 0 ? null : receiptOf(files);
  return { problems, warnings, leftOut, files: files.size, bytes, receipt };
}

/**
 * Takes an upload as it arrives: every file goes to the blob store under its digest, and none is held in memory.
 * @throws AppError upload_too_large when the client sends more than the rules allow
 */
export async function takeUpload(
  upload: { readonly kind: UploadKind; readonly stream: Readable },
  rules: UploadRules,
  deps: ReceiveDeps & { readonly temporaryFiles: TemporaryFiles },
): Promise<Received & { readonly warnings: readonly SiteWarning[]; readonly sentBytes: number }> {
  let sentBytes = 0;
  const needsFile = upload.kind === 'zip';
  const counted = limited(upload.stream, rules, (bytes) => {
    sentBytes += bytes;
    if (needsFile) deps.onBytes?.(bytes);
  });
  if (!needsFile) {
    const received = await receive(streamedEntries(counted, upload.kind, rules), rules, deps);
    return { ...received, sentBytes };
  }
  const { path, discard } = await deps.temporaryFiles.take(counted);
  try {
    return { ...(await receive(readZip(path, rules.maxFiles), rules, deps)), sentBytes };
  } finally {
    await discard();
  }
}

/** Takes a folder that Postern packed itself (tar.gz), by the rules of an upload. Its names stay as they are. */
export async function takeFolder(
  source: Readable,
  rules: UploadRules,
  deps: Omit<ReceiveDeps, 'budget' | 'keepsTopFolder'>,
): Promise<Received & { readonly warnings: readonly SiteWarning[] }> {
  const budget = lookBudget(rules.maxExtractedBytes);
  return await receive(readTarGz(source, maxTarBytes(rules)), rules, {
    ...deps,
    budget,
    keepsTopFolder: true,
  });
}

function streamedEntries(
  source: Readable,
  kind: UploadKind,
  rules: UploadRules,
): AsyncIterable<ArchiveEntry> {
  return kind === 'html' ? onePage(source) : readTarGz(source, maxTarBytes(rules));
}

/** Fails with `upload_too_large` instead of passing on more bytes than allowed. */
export function limited(
  source: Readable,
  rules: Pick<UploadRules, 'maxUploadBytes'>,
  onBytes?: (bytes: number) => void,
): Readable {
  let bytes = 0;
  const counter = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length;
      try {
        requireUploadBytes(bytes, rules);
        onBytes?.(chunk.length);
      } catch (error) {
        return done(error as Error);
      }
      done(null, chunk);
    },
  });
  // An event listener alone is not enough: the source may have failed before it was attached.
  finished(source, { writable: false }, (error) => {
    if (error) counter.destroy(error);
  });
  return source.pipe(counter);
}

async function* onePage(source: Readable): AsyncGenerator<ArchiveEntry> {
  yield { name: 'index.html', open: async () => source };
}

const onlyDigests = (): BlobBatch => ({
  write: digestOnly,
  flush: async () => undefined,
  close: async () => undefined,
});

async function digestOnly(source: Readable | Buffer): Promise<Blob> {
  if (Buffer.isBuffer(source)) return { digest: hash('sha256', source, 'hex'), size: source.length };
  const sum = createHash('sha256');
  let size = 0;
  for await (const chunk of source as AsyncIterable<Buffer>) {
    sum.update(chunk);
    size += chunk.length;
  }
  return { digest: sum.digest('hex'), size };
}
