import { createHash } from 'node:crypto';
import type { Blob } from '../../../platform/blobs/blobs.ts';

/** The content of a site's version: each path with the digest and the size of its bytes. */
export type Manifest = ReadonlyMap<string, Blob>;

/** The form in tables: path, digest and bytes of every file, in code point order of the paths. */
export type StoredManifest = readonly (readonly [path: string, digest: string, size: number])[];

export function toStored(manifest: Manifest): StoredManifest {
  return [...manifest].map(([path, { digest, size }]) => [path, digest, size] as const);
}

export function fromStored(stored: StoredManifest): Manifest {
  return new Map(stored.map(([path, digest, size]) => [path, { digest, size }]));
}

/**
 * The receipt of a publish: the SHA-256, in hexadecimal, of the lines that `sha256sum` prints for the files in the
 * order of their UTF-8 bytes. Anyone can compute it from a folder (docs/how-to/check-a-site.md).
 */
export function receiptOf(files: Manifest): string {
  const lines = [...files]
    .map(([path, { digest }]) => ({ path: Buffer.from(path), line: `${digest}  ${path}\n` }))
    .sort((one, other) => Buffer.compare(one.path, other.path));
  const hash = createHash('sha256');
  for (const { line } of lines) hash.update(line);
  return hash.digest('hex');
}
