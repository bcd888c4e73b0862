import { createHash, randomUUID } from 'node:crypto';
import { open, readFile, rm } from 'node:fs/promises';
import { Readable } from 'node:stream';
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3';
import { type Clock, day } from '../../core/clock.ts';
import { AppError } from '../../core/errors.ts';
import { stagingFolder, type FolderOptions } from '../staging-folder.ts';
import { createFairQueue } from '../fair-queue.ts';
import { inGroups, writeStagingFile, type Written } from './staging-file.ts';
import { type BlobBatch, checkDigest, type RemoteBlobs, writeOne } from './blobs.ts';
import { verified } from './verified.ts';

/**
 * Blobs in an S3-compatible store, each an object `prefix/blobs/<digest>`. The digest is known only with the last byte,
 * so content goes to a staging file in `folder` first and is then sent under its digest (decision 0023). The store
 * verifies its checksum, and stores it whole or not at all. Call prepare() first; it removes what ended processes left in
 * `folder`.
 */
export type ObjectStore = {
  /** `https://host`, or `http://` on loopback. */
  readonly endpoint: string;
  readonly region: string;
  readonly bucket: string;
  /** Empty, or ends with a slash. */
  readonly prefix: string;
  /** True: the bucket is in the path, not in the host name. */
  readonly isPathStyle: boolean;
  readonly accessKey: string;
  readonly secretKey: string;
};

/** Milliseconds for a request, retries included. A response body has its own time limit (verified.ts). */
const answerMs = 4_000;
/** The slowest upload that is accepted, in bytes a second. A slower store counts as unavailable. */
const slowestUpload = 1024 * 1024;
/** Larger files are sent in parts of this size. Each part is held in memory, so that it can be sent again. */
const partBytes = 8 * 1024 * 1024;
/** Parts of one file that are read ahead. */
const partsAtOnce = 4;
/** Concurrent uploads of this process and of one batch. With `partBytes` this bounds the memory. */
const uploads = { width: 16, perSender: 8, queue: Number.POSITIVE_INFINITY };
/** Connections for response bodies, and as many again for all other requests: slow readers block no other request. */
const connections = 64;
/** After this time a multipart upload counts as abandoned by its process. */
const abandonedMs = day;

export function s3Blobs(
  store: ObjectStore,
  { folder, isShared = true, clock }: Pick<FolderOptions, 'isShared'> & { folder: string; clock: Clock },
): RemoteBlobs {
  const outgoing = stagingFolder(folder, { isShared });
  const Bucket = store.bucket;
  const root = `${store.prefix}blobs/`;
  const queue = createFairQueue(uploads);
  const client = clientOf(store);
  const bodies = clientOf(store);

  function keyOf(digest: string): string {
    checkDigest(digest);
    return root + digest;
  }

  /** The caller handles every refusal in the same way: the store cannot be used now. */
  async function ask<T>(
    question: (how: { abortSignal: AbortSignal }) => Promise<T>,
    ms = answerMs,
  ): Promise<T> {
    const patience = new AbortController();
    // Cleared once the response head arrives: the signal would abort a body that is still being read.
    const timer = setTimeout(() => patience.abort(), ms);
    try {
      return await question({ abortSignal: patience.signal });
    } catch (error) {
      throw new AppError('store_unavailable', { cause: plain(error) });
    } finally {
      clearTimeout(timer);
    }
  }

  async function openBlob(digest: string, range?: { readonly start: number; readonly end: number }) {
    const Key = keyOf(digest);
    const part = range === undefined ? {} : { Range: `bytes=${range.start}-${range.end}` };
    const { Body, ContentLength, ContentRange } = await ask((how) =>
      bodies.send(new GetObjectCommand({ Bucket, Key, ...part }), how),
    );
    const bytes = range === undefined ? ContentLength : range.end - range.start + 1;
    const size = range === undefined ? ContentLength : Number(ContentRange?.split('/')[1]);
    // A store without support for ranges sends everything.
    const isAsked = range === undefined || ContentRange?.startsWith(`bytes ${range.start}-${range.end}/`);
    if (!(Body instanceof Readable) || bytes === undefined || size === undefined || !isAsked) {
      if (Body instanceof Readable) Body.destroy();
      throw new AppError('store_unavailable', {
        cause: new Error('The store sent another range than requested.'),
      });
    }
    return { size, stream: verified(Body, { size: bytes, digest: range === undefined ? digest : null }) };
  }

  async function put(written: Written, run: Turn): Promise<void> {
    if (written.size > partBytes) return await putInParts(written, run);
    await run(async () => {
      const Body = await readFile(written.path);
      const ChecksumSHA256 = Buffer.from(written.digest, 'hex').toString('base64');
      const command = () =>
        new PutObjectCommand({ Bucket, Key: keyOf(written.digest), Body, ChecksumSHA256 });
      await ask((how) => client.send(command(), how), uploadMs(Body.length));
    });
  }

  /** The blob gets its name only in the last step, which runs only when the parts together are the blob. */
  async function putInParts({ path, size, digest }: Written, run: Turn): Promise<void> {
    const Key = keyOf(digest);
    const { UploadId } = await ask((how) =>
      client.send(new CreateMultipartUploadCommand({ Bucket, Key, ChecksumAlgorithm: 'SHA256' }), how),
    );
    const file = await open(path, 'r');
    try {
      const sum = createHash('sha256');
      const Parts: Sent[] = [];
      while (Parts.length * partBytes < size) {
        const group: Promise<Sent>[] = [];
        for (let one = 0; one < partsAtOnce; one += 1) {
          const at = (Parts.length + one) * partBytes;
          if (at >= size) break;
          const { buffer: Body } = await file.read(Buffer.alloc(Math.min(partBytes, size - at)), {
            position: at,
          });
          sum.update(Body);
          const ChecksumSHA256 = createHash('sha256').update(Body).digest('base64');
          const PartNumber = Parts.length + one + 1;
          const command = () =>
            new UploadPartCommand({ Bucket, Key, UploadId, PartNumber, Body, ChecksumSHA256 });
          group.push(
            run(async () => {
              const { ETag } = await ask((how) => client.send(command(), how), uploadMs(Body.length));
              return { PartNumber, ETag, ChecksumSHA256 };
            }),
          );
        }
        Parts.push(...(await allOf(group)));
      }
      if (sum.digest('hex') !== digest)
        throw new Error(`What waited for the store in ${outgoing.path} was changed.`);
      await ask(
        (how) =>
          client.send(
            new CompleteMultipartUploadCommand({ Bucket, Key, UploadId, MultipartUpload: { Parts } }),
            how,
          ),
        uploadMs(size),
      );
    } catch (error) {
      // If this fails, a later begin() aborts the upload. Nobody can read the parts; they only use storage.
      await abandon(Key, UploadId).catch(() => undefined);
      throw error;
    } finally {
      await file.close();
    }
  }

  async function abandon(Key: string | undefined, UploadId: string | undefined): Promise<void> {
    await ask((how) => client.send(new AbortMultipartUploadCommand({ Bucket, Key, UploadId }), how));
  }

  function batch(): BlobBatch {
    const sender = randomUUID();
    let waiting: Written[] = [];
    return {
      async write(source) {
        const written = await writeStagingFile(source, outgoing.path);
        waiting.push(written);
        return { digest: written.digest, size: written.size };
      },
      async flush() {
        let failure: Error | undefined;
        // The other files of the batch need not each find out that the store is unavailable.
        const run: Turn = (task) =>
          queue(sender, () => (failure === undefined ? task() : Promise.reject(failure)));
        const distinct = [...new Map(waiting.map((written) => [written.digest, written])).values()];
        // Sends existing blobs again too. Their time becomes new, so a sweep by age does not remove them before their
        // writer uses them.
        await allOf(
          distinct.map((written) =>
            put(written, run).catch((error: Error) => {
              failure ??= error;
              throw failure;
            }),
          ),
        );
        await discard();
      },
      close: discard,
    };

    async function discard(): Promise<void> {
      const gone = waiting;
      waiting = [];
      await inGroups(gone, ({ path }) => rm(path, { force: true }));
    }
  }

  async function ping(): Promise<void> {
    await ask((how) => client.send(new ListObjectsV2Command({ Bucket, Prefix: root, MaxKeys: 1 }), how));
  }

  return {
    prepare: outgoing.prepare,
    async begin() {
      await ping();
      const { Uploads = [] } = await ask((how) =>
        client.send(new ListMultipartUploadsCommand({ Bucket, Prefix: root }), how),
      );
      for (const { Key, UploadId, Initiated } of Uploads)
        if (Initiated !== undefined && clock.now() - Initiated.getTime() > abandonedMs)
          await abandon(Key, UploadId);
    },
    ping,
    batch,
    write: (source) => writeOne(batch(), source),
    open: openBlob,
    read: async (digest, range) => (await openBlob(digest, range)).stream,
    async has(digest) {
      const Key = keyOf(digest);
      return await ask(async (how) => {
        try {
          await client.send(new HeadObjectCommand({ Bucket, Key }), how);
          return true;
        } catch (error) {
          if (statusOf(error) === 404) return false;
          throw error;
        }
      });
    },
    async remove(digest) {
      const Key = keyOf(digest);
      await ask((how) => client.send(new DeleteObjectCommand({ Bucket, Key }), how));
    },
    async *list() {
      let ContinuationToken: string | undefined;
      do {
        const page: ContinueFrom = { Bucket, Prefix: root, ContinuationToken };
        const { Contents = [], NextContinuationToken } = await ask((how) =>
          client.send(new ListObjectsV2Command(page), how),
        );
        for (const { Key = '', LastModified } of Contents) {
          const digest = Key.slice(root.length);
          // Skips objects that something else stored there. They must be neither listed nor removed.
          if (LastModified !== undefined && /^[0-9a-f]{64}$/.test(digest))
            yield { digest, writtenAt: LastModified.getTime() };
        }
        ContinuationToken = NextContinuationToken;
      } while (ContinuationToken !== undefined);
    },
    close() {
      client.destroy();
      bodies.destroy();
    },
  };
}

function clientOf(store: ObjectStore): S3Client {
  return new S3Client({
    endpoint: store.endpoint,
    region: store.region,
    forcePathStyle: store.isPathStyle,
    credentials: { accessKeyId: store.accessKey, secretAccessKey: store.secretKey },
    maxAttempts: 3,
    retryMode: 'standard',
    // This code sends and checks its own checksums. Not every store understands those that the SDK would add.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    requestHandler: {
      connectionTimeout: 1_000,
      httpAgent: { keepAlive: true, maxSockets: connections },
      httpsAgent: { keepAlive: true, maxSockets: connections },
    },
  });
}

/** Runs a task when it is this batch's turn. */
type Turn = <T>(task: () => Promise<T>) => Promise<T>;
type Sent = { PartNumber: number; ETag: string | undefined; ChecksumSHA256: string };
type ContinueFrom = { Bucket: string; Prefix: string; ContinuationToken: string | undefined };

const uploadMs = (bytes: number) => answerMs + (bytes / slowestUpload) * 1_000;

/** Waits for all promises even when one fails: the caller removes the files that they read. */
async function allOf<T>(work: readonly Promise<T>[]): Promise<T[]> {
  const done = await Promise.allSettled(work);
  return done.map((one) => {
    if (one.status === 'rejected') throw one.reason;
    return one.value;
  });
}

function statusOf(error: unknown): number | undefined {
  if (!(error instanceof Error) || !('$metadata' in error)) return undefined;
  // Every error of the client has it, with this shape.
  return (error.$metadata as { httpStatusCode?: number }).httpStatusCode;
}

/** The SDK's errors contain the request with its signature. Only the message is kept. */
function plain(error: unknown): Error {
  if (!(error instanceof Error)) return new Error(String(error));
  const status = statusOf(error);
  const words = new Error(`${error.name}: ${error.message}${status === undefined ? '' : ` (${status})`}`);
  const code = 'code' in error && typeof error.code === 'string' ? error.code : error.name;
  return Object.assign(words, { code });
}
