import { createHash, randomUUID } from 'node:crypto';
import { mkdir, open, readdir, readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
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
import { type Clock, day, hour } from '../../core/clock.ts';
import { AppError } from '../../core/errors.ts';
import { createLane } from '../lane.ts';
import { inGroups, takeAside, type Written } from './aside.ts';
import { type BlobBatch, checkDigest, type RemoteBlobs } from './blobs.ts';
import { verified } from './verified.ts';

/**
 * Blobs in an S3-compatible store, each an object `prefix/blobs/<digest>`. A digest is known when the last byte is, so
 * content waits in `folder` and is sent under its digest afterwards (decision 0023): with its checksum, which the store
 * verifies, and whole or not at all. Call prepare() first.
 */
export type ObjectStore = {
  /** `https://host`, or `http://` on loopback. */
  readonly endpoint: string;
  readonly region: string;
  readonly bucket: string;
  /** Empty, or ends with a slash. */
  readonly prefix: string;
  /** The bucket is in the path, not in front of the host. */
  readonly isPathStyle: boolean;
  readonly accessKey: string;
  readonly secretKey: string;
};

/** Milliseconds for a question, every attempt included; a body has its own patience (verified.ts). */
const answerMs = 4_000;
/** A store that takes less than this is as good as none, bytes a second. */
const slowestUpload = 1024 * 1024;
/** What is larger goes in parts of this size. They are held in memory, so that an attempt can be repeated. */
const partBytes = 8 * 1024 * 1024;
/** Parts that are read ahead of one file. */
const partsAtOnce = 4;
/** Uploads at once of this process, and of one batch: with `partBytes` this bounds the memory. */
const uploads = { width: 16, perSender: 8, queue: Number.POSITIVE_INFINITY };
/** Of the bodies that are read, and as many again of everything else: slow readers keep nobody from asking. */
const connections = 64;
/** An upload in parts that began so long ago has lost its process. */
const abandonedMs = day;

export function s3Blobs(
  store: ObjectStore,
  { folder, clock }: { folder: string; clock: Clock },
): RemoteBlobs {
  const Bucket = store.bucket;
  const root = `${store.prefix}blobs/`;
  const lane = createLane(uploads);
  const client = clientOf(store);
  const bodies = clientOf(store);

  function keyOf(digest: string): string {
    checkDigest(digest);
    return root + digest;
  }

  /** Every refusal means the same to whoever asks: the store cannot be used now. */
  async function ask<T>(
    question: (how: { abortSignal: AbortSignal }) => Promise<T>,
    ms = answerMs,
  ): Promise<T> {
    const patience = new AbortController();
    // Ends with the answer's head: the signal would cut a body that is still being read.
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
    // A store that knows no ranges sends everything.
    const isAsked = range === undefined || ContentRange?.startsWith(`bytes ${range.start}-${range.end}/`);
    if (!(Body instanceof Readable) || bytes === undefined || size === undefined || !isAsked) {
      if (Body instanceof Readable) Body.destroy();
      throw new AppError('store_unavailable', {
        cause: new Error('The store sent another part than asked.'),
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

  /** Nothing has the blob's name before the last step, and that is taken only when the parts together are the blob. */
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
        throw new Error(`What waited for the store in ${folder} was changed.`);
      await ask(
        (how) =>
          client.send(
            new CompleteMultipartUploadCommand({ Bucket, Key, UploadId, MultipartUpload: { Parts } }),
            how,
          ),
        uploadMs(size),
      );
    } catch (error) {
      // What cannot be given up now is given up by a later prepare(); nobody sees parts, they only cost room.
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
        const written = await takeAside(source, folder);
        waiting.push(written);
        return { digest: written.digest, size: written.size };
      },
      async flush() {
        let failure: Error | undefined;
        // The rest need not find out one by one that the store is away.
        const run: Turn = (task) =>
          lane(sender, () => (failure === undefined ? task() : Promise.reject(failure)));
        const distinct = [...new Map(waiting.map((written) => [written.digest, written])).values()];
        // Also what is there already: it becomes young, so a sweep that goes by age leaves it to whoever wrote it now.
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
    async prepare() {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      // Not everything: another process with the same folder may be sending what it put there.
      for (const name of await readdir(folder)) {
        const path = join(folder, name);
        const { mtimeMs } = await stat(path);
        if (clock.now() - mtimeMs > hour) await rm(path, { force: true });
      }
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
    async write(source) {
      const one = batch();
      try {
        const blob = await one.write(source);
        await one.flush();
        return blob;
      } finally {
        await one.close();
      }
    },
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
          // What somebody else put there is not ours to tell of, and so not ours to remove.
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
    // Ours are sent and looked at by us; what the client would add, not every store understands.
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

/** Waits for all of them also when one fails: what they read is removed afterwards. */
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

/** The client's errors hold the request, with its signature; of theirs only the words go on. */
function plain(error: unknown): Error {
  if (!(error instanceof Error)) return new Error(String(error));
  const status = statusOf(error);
  const words = new Error(`${error.name}: ${error.message}${status === undefined ? '' : ` (${status})`}`);
  const code = 'code' in error && typeof error.code === 'string' ? error.code : error.name;
  return Object.assign(words, { code });
}
