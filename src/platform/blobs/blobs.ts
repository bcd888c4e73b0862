import type { Readable } from 'node:stream';

/**
 * Content by its SHA-256. Promises: what was written is there whole under its digest or not at all, also after a power
 * loss; the same bytes are kept once; nothing is ever changed. Who may know that a digest exists is not this store's
 * question. Two implementations: files on a disk, an S3-compatible store.
 */
export type Blobs = {
  /** Keeps the bytes of `source`. What makes `source` fail makes this reject with the same error, and keeps nothing. */
  write(source: Readable): Promise<Blob>;
  /** The same for many: cheaper, and certain to outlast a power loss only after flush(). */
  batch(): BlobBatch;
  /** Bytes from `start` up to and with `end`; all without a range. Rejects with `store_unavailable` when they cannot be read. */
  read(digest: string, range?: { readonly start: number; readonly end: number }): Promise<Readable>;
  has(digest: string): Promise<boolean>;
  /** Safe to repeat. */
  remove(digest: string): Promise<void>;
  /** Every digest there is and when it was written (milliseconds), in no order: for the sweep. */
  list(): AsyncIterable<{ readonly digest: string; readonly writtenAt: number }>;
};

/** Blobs that another machine keeps. */
export type RemoteBlobs = Blobs & {
  /** Like read(), and how large the whole blob is, in bytes. */
  open(digest: string, range?: { readonly start: number; readonly end: number }): Promise<OpenBlob>;
  /** Makes the folder that content waits in, and looks at the store. */
  prepare(): Promise<void>;
  /** Rejects with `store_unavailable`. */
  ping(): Promise<void>;
  close(): void;
};

export type OpenBlob = { readonly size: number; readonly stream: Readable };

export type BlobBatch = {
  /** One at a time. A property, so that an implementation that takes less does not type-check. */
  readonly write: (source: Readable | Buffer) => Promise<Blob>;
  /** Resolves when everything written so far is whole and will be found again. */
  flush(): Promise<void>;
  /** Lets go of what was not flushed. Safe to repeat, also after flush(). */
  close(): Promise<void>;
};

/** `digest`: 64 lower-case hexadecimal digits. `size` in bytes. */
export type Blob = { readonly digest: string; readonly size: number };

const digestShape = /^[0-9a-f]{64}$/;

/** A digest from outside that is none must never become a path or an address. @throws Error */
export function checkDigest(digest: string): void {
  if (!digestShape.test(digest)) throw new Error('A blob is asked for by 64 hexadecimal digits.');
}
