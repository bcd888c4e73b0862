import type { Readable } from 'node:stream';

/**
 * Stores content under its SHA-256. Promises: content is either complete under its digest or absent, also after a power
 * loss; the same bytes are stored once; stored content never changes. It does not decide who may know that a digest
 * exists. Two implementations: files on a disk, and an S3-compatible store.
 */
export type Blobs = {
  /** Stores the bytes of `source`. When `source` fails, this rejects with the same error and stores nothing. */
  write(source: Readable): Promise<Blob>;
  /** Writes many blobs at a lower cost. They are certain to survive a power loss only after flush(). */
  batch(): BlobBatch;
  /**
   * Bytes from `start` to `end` inclusive; all bytes without a range. Rejects with `store_unavailable` when they cannot
   * be read.
   */
  read(digest: string, range?: { readonly start: number; readonly end: number }): Promise<Readable>;
  has(digest: string): Promise<boolean>;
  /** Idempotent. */
  remove(digest: string): Promise<void>;
  /** Every stored digest and when it was written (milliseconds), in no order. The sweep uses it. */
  list(): AsyncIterable<{ readonly digest: string; readonly writtenAt: number }>;
};

/** Blobs stored on another machine. */
export type RemoteBlobs = Blobs & {
  /** Like read(). Also returns the size of the whole blob, in bytes. */
  open(digest: string, range?: { readonly start: number; readonly end: number }): Promise<OpenBlob>;
  /** Creates the folder for staging files. */
  prepare(): Promise<void>;
  /** Checks the store, and removes multipart uploads that no process will complete. Rejects with `store_unavailable`. */
  begin(): Promise<void>;
  /** Rejects with `store_unavailable`. */
  ping(): Promise<void>;
  close(): void;
};

export type OpenBlob = { readonly size: number; readonly stream: Readable };

export type BlobBatch = {
  /** Call it once at a time. A property, so that an implementation which accepts fewer types does not type-check. */
  readonly write: (source: Readable | Buffer) => Promise<Blob>;
  /** Resolves when everything written so far is complete and durable. */
  flush(): Promise<void>;
  /** Discards what was not flushed. Idempotent, also after flush(). */
  close(): Promise<void>;
};

/** `digest`: 64 lower-case hexadecimal digits. `size` in bytes. */
export type Blob = { readonly digest: string; readonly size: number };

const digestShape = /^[0-9a-f]{64}$/;

/** A malformed digest from outside must never become part of a path or an address. @throws Error */
export function checkDigest(digest: string): void {
  if (!digestShape.test(digest)) throw new Error('A blob is asked for by 64 hexadecimal digits.');
}

/** How both implementations write a single blob. */
export async function writeOne(batch: BlobBatch, source: Readable): Promise<Blob> {
  try {
    const blob = await batch.write(source);
    await batch.flush();
    return blob;
  } finally {
    await batch.close();
  }
}
