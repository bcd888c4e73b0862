import { PassThrough, pipeline, Readable, Transform } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { type Extract, extract, type Header } from 'tar-stream';
import { AppError } from '../../../core/errors.ts';
import { type ArchiveEntry, ArchiveRefused, modeProblem, withoutDots } from './archive.ts';

/**
 * Reads a gzipped tar as it arrives (POSIX.1-2017 pax, ustar, GNU long names, and v7, which has no magic number).
 * `maxBytes` limits the unpacked size, including headers and padding, before any of it is kept.
 */
export function readTarGz(source: Readable, maxBytes: number): AsyncGenerator<ArchiveEntry<Readable>> {
  return read((reader, sizes, done) =>
    pipeline(source, createGunzip(), guard(maxBytes, sizes), reader, done),
  );
}

/** Reads an uncompressed tar. */
export function readTar(source: Readable, maxBytes: number): AsyncGenerator<ArchiveEntry<Readable>> {
  return read((reader, sizes, done) => pipeline(source, guard(maxBytes, sizes), reader, done));
}

/** An option that the types of tar-stream lack. It accepts headers without a magic number; their checksum must still be right. */
const alsoV7: Parameters<typeof extract>[0] & { readonly allowUnknownFormat: boolean } = {
  allowUnknownFormat: true,
};

async function* read(
  feed: (reader: Extract, sizes: number[], done: (error?: Error | null) => void) => void,
): AsyncGenerator<ArchiveEntry<Readable>> {
  const reader = extract(alsoV7);
  /** Sizes of the coming entries, as their headers state them. */
  const sizes: number[] = [];
  let opened: Readable | undefined;
  feed(reader, sizes, (error) => {
    if (!error) return;
    // A consumer that reads a file gets the error there; one that waits for the next entry gets it from the reader.
    opened?.destroy(asRefusal(error));
    reader.destroy(asRefusal(error));
  });

  try {
    for await (const entry of reader) {
      requireOneSize(entry.header, sizes.shift());
      const described = describe(entry.header);
      const isDirectory = described?.name.endsWith('/') ?? false;
      if (described !== undefined)
        yield {
          ...described,
          open: async () => (isDirectory ? Readable.from([]) : (opened = bytesOf(entry))),
        };
      // An unread entry is skipped; otherwise the archive would block.
      entry.resume();
    }
  } catch (error) {
    throw error instanceof Error ? asRefusal(error) : error;
  }
}

/**
 * A Node stream that also ends, with an error, when the reader abandons its own stream without one. A consumer that has
 * read enough destroys it, and the rest of the entry is skipped. A pipe would block, and the archive with it.
 */
function bytesOf(entry: EntryStream): Readable {
  const bytes = new PassThrough();
  // The stream may fail after its last read, when no listener is attached; the archive's own failure is reported then.
  bytes.on('error', () => undefined);
  bytes.on('drain', () => entry.resume()).on('close', () => entry.resume());
  entry.on('data', (chunk: Buffer) => {
    if (!bytes.destroyed && !bytes.write(chunk)) entry.pause();
  });
  entry.on('end', () => bytes.end());
  entry.on('error', (error: Error) => bytes.destroy(asRefusal(error)));
  entry.on('close', () => {
    if (!bytes.writableEnded) bytes.destroy(new ArchiveRefused('is truncated; pack it again'));
  });
  return bytes;
}

type EntryStream = NodeJS.EventEmitter & { pause(): unknown; resume(): unknown };

function asRefusal(error: Error): Error {
  if (error instanceof ArchiveRefused || error instanceof AppError) return error;
  const isOurs = 'code' in error && typeof error.code === 'string' && error.code.startsWith('Z_');
  if (isOurs) return new ArchiveRefused('is not a gzip file, or is truncated', error);
  return /tar|header|stream/i.test(error.message)
    ? new ArchiveRefused('is not a tar file, or is truncated', error)
    : error;
}

/** When two readers disagree about what is content, one of them finds entries that the other does not. */
function requireOneSize({ name, type, size }: Header, inHeader: number | undefined): void {
  if (size !== inHeader)
    throw new ArchiveRefused('has an entry with two different sizes; pack it with another program');
  if ((type === 'directory' || name.endsWith('/')) && size !== 0)
    throw new ArchiveRefused('has a folder with content; pack it with another program');
}

function describe(header: Header): Pick<ArchiveEntry, 'name' | 'problem'> | undefined {
  const isDirectory = header.type === 'directory';
  const plain = withoutDots(header.name, isDirectory);
  // Only the root folder needs no name. A file without one is refused, because its content would be lost.
  if (plain === '' && isDirectory) return undefined;
  const name = isDirectory && !plain.endsWith('/') ? `${plain}/` : plain;
  const problem = typeProblem(header) ?? modeProblem((header.mode ?? 0) & 0o7_777);
  return problem === undefined ? { name } : { name, problem };
}

function typeProblem({ type, pax }: Header): string | undefined {
  if (type === 'symlink') return 'is a symbolic link; put the file itself into the archive';
  if (type === 'link') return 'is a hard link; put the file itself into the archive (tar --hard-dereference)';
  if (type !== 'file' && type !== 'contiguous-file' && type !== 'directory')
    return 'is neither a file nor a folder';
  const isSparse = Object.keys(pax ?? {}).some((name) => name.startsWith('GNU.sparse'));
  return isSparse ? 'is stored as a sparse file; pack it without --sparse' : undefined;
}

const block = 512;
/** Matches such records of a pax header. */
const namesOrSizes = /(?:^|\n)\d+ (?:path|linkpath|size)=/;
/** Long names and pax fields; the reader keeps them in memory. */
const maxOfHeader = 65_536;

/**
 * Sits in front of the reader and parses the same blocks. It refuses too many bytes and extended headers that are too
 * long to keep. It also refuses bytes after the end of the archive, which some readers take for more entries. It
 * appends to `sizes` how long it takes each entry to be.
 */
function guard(maxBytes: number, sizes: number[]): Transform {
  let total = 0;
  let toSkip = 0;
  let zeroBlocks = 0;
  let partial: Buffer = Buffer.alloc(0);
  /** The content of a pax header that applies to all following entries. */
  let forAll: Buffer[] | undefined;

  function refuse(header: Buffer): ArchiveRefused | undefined {
    const isZero = header.every((byte) => byte === 0);
    if (zeroBlocks >= 2) return isZero ? undefined : new ArchiveRefused('has bytes after its end');
    zeroBlocks = isZero ? zeroBlocks + 1 : 0;
    if (isZero) return undefined;
    const size = sizeIn(header);
    if (size === undefined) return new ArchiveRefused('has an entry without a size');
    const type = String.fromCharCode(header[156] ?? 0);
    if ('xgLK'.includes(type) && size > maxOfHeader)
      return new ArchiveRefused(`has a header longer than ${maxOfHeader} bytes`);
    // The reader would take the following bytes for a part of this header.
    if ('xgLK'.includes(type) && size === 0) return new ArchiveRefused('has an empty header');
    if (!'xgLK'.includes(type)) sizes.push(size);
    forAll = type === 'g' ? [] : undefined;
    toSkip = Math.ceil(size / block) * block;
    return undefined;
  }

  function follow(chunk: Buffer): ArchiveRefused | undefined {
    let at = 0;
    while (at < chunk.length) {
      if (toSkip > 0) {
        const step = Math.min(toSkip, chunk.length - at);
        forAll?.push(chunk.subarray(at, at + step));
        toSkip -= step;
        at += step;
        if (toSkip === 0 && forAll !== undefined) {
          // Some readers apply these records, others do not.
          if (namesOrSizes.test(Buffer.concat(forAll).toString('latin1')))
            return new ArchiveRefused(
              'sets one name or size for all of its entries; pack it with another program',
            );
          forAll = undefined;
        }
        continue;
      }
      const piece = chunk.subarray(at, at + block - partial.length);
      at += piece.length;
      partial = partial.length === 0 ? piece : Buffer.concat([partial, piece]);
      if (partial.length < block) return undefined;
      const header = partial;
      partial = Buffer.alloc(0);
      const refusal = refuse(header);
      if (refusal !== undefined) return refusal;
    }
    return undefined;
  }

  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      total += chunk.length;
      if (total > maxBytes) return done(new ArchiveRefused(`unpacks to more than ${maxBytes} bytes`));
      const refusal = follow(chunk);
      if (refusal === undefined) done(null, chunk);
      else done(refusal);
    },
    flush(done) {
      const isWhole = toSkip === 0 && partial.length === 0;
      done(isWhole ? null : new ArchiveRefused('is truncated; pack it again'));
    },
  });
}

/** Octal digits, or a base-256 number when the highest bit of the first byte is set (GNU). */
function sizeIn(header: Buffer): number | undefined {
  const field = header.subarray(124, 136);
  if (((field[0] ?? 0) & 0x80) !== 0) {
    let size = (field[0] ?? 0) & 0x7f;
    for (const byte of field.subarray(1)) size = size * 256 + byte;
    return Number.isSafeInteger(size) ? size : undefined;
  }
  const text = field.toString('latin1').replaceAll(/[\0 ]/g, '');
  return /^[0-7]{0,12}$/.test(text) ? Number.parseInt(text || '0', 8) : undefined;
}
