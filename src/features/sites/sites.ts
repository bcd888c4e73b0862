import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import type { Readable } from 'node:stream';
import type { Blob } from '../../platform/blobs/blobs.ts';
import type { KeyFormat } from '../keys/keys.ts';
import type { ArchiveEntry } from './content/archive.ts';
import { receiptOf } from './content/manifest.ts';
import { receive, type UploadLimits, type UploadProblem } from './content/receive.ts';
import { readTarGz } from './content/tar.ts';
import { readZip } from './content/zip.ts';

/**
 * Sites: static files that are uploaded, checked and served. So far the checking: what an upload may hold is decided
 * here and nowhere else, for the server and for whoever wants to know before (private-access.md 2.5).
 */
export type { UploadLimits, UploadProblem } from './content/receive.ts';

/** What an installation starts with; administrators change it. */
export const defaultUploadLimits: UploadLimits & { readonly maxUploadBytes: number } = {
  maxUploadBytes: 100 * 1024 * 1024,
  maxExtractedBytes: 250 * 1024 * 1024,
  maxFiles: 10_000,
  maxFileBytes: 50 * 1024 * 1024,
  allowedExtensions:
    'html htm xhtml css js mjs map json jsonld xml txt md csv pdf webmanifest wasm svg png jpg jpeg gif webp avif ico bmp woff woff2 ttf otf eot mp3 mp4 m4a ogg oga ogv wav webm vtt gz br zip'.split(
      ' ',
    ),
};

export type UploadKind = 'html' | 'zip' | 'tar.gz';

/** By the name of the file; undefined for what is none of them. */
export function uploadKindOf(fileName: string): UploadKind | undefined {
  const name = fileName.toLowerCase();
  if (name.endsWith('.zip')) return 'zip';
  if (name.endsWith('.tar.gz') || name.endsWith('.tgz')) return 'tar.gz';
  return name.endsWith('.html') || name.endsWith('.htm') ? 'html' : undefined;
}

export type UploadReport = {
  readonly problems: readonly UploadProblem[];
  readonly files: number;
  /** Unpacked. */
  readonly bytes: number;
  /** See receiptOf(); null when there are problems. */
  readonly receipt: string | null;
};

/** Judges an upload that lies in a file by the rules of a publish. Keeps nothing. */
export async function checkUpload(
  file: { readonly path: string; readonly kind: UploadKind },
  limits: UploadLimits,
  format: KeyFormat,
): Promise<UploadReport> {
  const { files, problems } = await receive(entriesOf(file, limits), limits, {
    blobs: { write: digestOnly },
    format,
    onKey: () => undefined,
  });
  const bytes = [...files.values()].reduce((sum, { size }) => sum + size, 0);
  return { problems, files: files.size, bytes, receipt: problems.length > 0 ? null : receiptOf(files) };
}

function entriesOf(
  { path, kind }: { readonly path: string; readonly kind: UploadKind },
  limits: UploadLimits,
): AsyncIterable<ArchiveEntry> {
  if (kind === 'zip') return readZip(path, limits.maxFiles);
  const source = createReadStream(path);
  return kind === 'html' ? onePage(source) : readTarGz(source, mostUnpacked(limits));
}

/** The files, and for each what tar writes around it: a header, an extended header, padding. */
function mostUnpacked({ maxExtractedBytes, maxFiles }: UploadLimits): number {
  return maxExtractedBytes + maxFiles * 4 * 512;
}

async function* onePage(source: Readable): AsyncGenerator<ArchiveEntry> {
  yield { name: 'index.html', open: async () => source };
}

async function digestOnly(source: Readable): Promise<Blob> {
  const hash = createHash('sha256');
  let size = 0;
  for await (const chunk of source as AsyncIterable<Buffer>) {
    hash.update(chunk);
    size += chunk.length;
  }
  return { digest: hash.digest('hex'), size };
}
