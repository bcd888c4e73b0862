import { PassThrough, pipeline, Readable, Transform } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { type Extract, extract, type Header } from 'tar-stream';
import { AppError } from '../../../core/errors.ts';
import { type ArchiveEntry, ArchiveRefused, modeProblem } from './archive.ts';

/**
 * Reads a gzipped tar as it arrives (POSIX.1-2017 pax, ustar, GNU long names). `maxBytes` bounds what is unpacked,
 * headers and padding included, before anything is kept of it.
 */
export function readTarGz(source: Readable, maxBytes: number): AsyncGenerator<ArchiveEntry<Readable>> {
  return read((reader, sizes, done) =>
    pipeline(source, createGunzip(), guard(maxBytes, sizes), reader, done),
  );
}

/** The same, not gzipped. */
export function readTar(source: Readable, maxBytes: number): AsyncGenerator<ArchiveEntry<Readable>> {
  return read((reader, sizes, done) => pipeline(source, guard(maxBytes, sizes), reader, done));
}

async function* read(
  feed: (reader: Extract, sizes: number[], done: (error?: Error | null) => void) => void,
): AsyncGenerator<ArchiveEntry<Readable>> {
  const reader = extract();
  /** Of the entries to come, as their headers say it. */
  const sizes: number[] = [];
  let opened: Readable | undefined;
  feed(reader, sizes, (error) => {
    if (!error) return;
    // Whoever reads a file hears of it there, whoever waits for the next one through the reader.
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
      // What nobody read is skipped, or the archive would stand still.
      entry.resume();
    }
  } catch (error) {
    throw error instanceof Error ? asRefusal(error) : error;
  }
}

/**
 * A stream of Node's that also ends, with an error, when the reader gives its own up without one. Destroyed by who has
 * seen enough, it lets the rest of the entry pass; a pipe would stand still, and the archive with it.
 */
function bytesOf(entry: EntryStream): Readable {
  const bytes = new PassThrough();
  // It may fail after the last of it was read, when nobody listens any more; the archive's own failure is told then.
  bytes.on('error', () => undefined);
  bytes.on('drain', () => entry.resume()).on('close', () => entry.resume());
  entry.on('data', (chunk: Buffer) => {
    if (!bytes.destroyed && !bytes.write(chunk)) entry.pause();
  });
  entry.on('end', () => bytes.end());
  entry.on('error', (error: Error) => bytes.destroy(asRefusal(error)));
  entry.on('close', () => {
    if (!bytes.writableEnded) bytes.destroy(new ArchiveRefused('is cut short'));
  });
  return bytes;
}

type EntryStream = NodeJS.EventEmitter & { pause(): unknown; resume(): unknown };

function asRefusal(error: Error): Error {
  if (error instanceof ArchiveRefused || error instanceof AppError) return error;
  const isOurs = 'code' in error && typeof error.code === 'string' && error.code.startsWith('Z_');
  if (isOurs) return new ArchiveRefused('is not a gzip file, or is cut short', error);
  return /tar|header|stream/i.test(error.message)
    ? new ArchiveRefused('is not a tar file, or is cut short', error)
    : error;
}

/** Where readers disagree about what is content, one of them finds entries that the other does not. */
function requireOneSize({ type, size }: Header, inHeader: number | undefined): void {
  if (size !== inHeader)
    throw new ArchiveRefused('has an entry with two different sizes; pack it with another program');
  if (type === 'directory' && size !== 0) throw new ArchiveRefused('has a folder with a size of its own');
}

function describe(header: Header): Pick<ArchiveEntry, 'name' | 'problem'> | undefined {
  const isDirectory = header.type === 'directory';
  // `tar -C folder -cz .` writes ./ before every name.
  const plain = header.name.replace(/^(?:\.\/)+/, '');
  if (plain === '' || plain === '.') return undefined;
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
/** Records of a pax header. */
const namesOrSizes = /(?:^|\n)\d+ (?:path|linkpath|size)=/;
/** Long names and pax fields; the reader keeps them in memory. */
const mostOfHeader = 65_536;

/**
 * Stands before the reader and follows the same blocks: stops too many bytes, extended headers that are too long to
 * keep, and anything after the end of the archive, which some readers take for more entries. Notes in `sizes` how long it
 * takes each entry to be.
 */
function guard(maxBytes: number, sizes: number[]): Transform {
  let total = 0;
  let toSkip = 0;
  let zeroBlocks = 0;
  let partial: Buffer = Buffer.alloc(0);
  /** What passes of a pax header for all entries behind it. */
  let forAll: Buffer[] | undefined;

  function refuse(header: Buffer): ArchiveRefused | undefined {
    const isZero = header.every((byte) => byte === 0);
    if (zeroBlocks >= 2) return isZero ? undefined : new ArchiveRefused('has bytes after its end');
    zeroBlocks = isZero ? zeroBlocks + 1 : 0;
    if (isZero) return undefined;
    const size = sizeIn(header);
    if (size === undefined) return new ArchiveRefused('has an entry without a size');
    const type = String.fromCharCode(header[156] ?? 0);
    if ('xgLK'.includes(type) && size > mostOfHeader)
      return new ArchiveRefused(`has a header longer than ${mostOfHeader} bytes`);
    // The reader takes what comes behind it for a part of it.
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
          // Some readers follow it, others do not.
          if (namesOrSizes.test(Buffer.concat(forAll).toString('latin1')))
            return new ArchiveRefused('has one name or size for all of its entries');
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
      done(isWhole ? null : new ArchiveRefused('is cut short'));
    },
  });
}

/** Octal digits, or a 256-based number behind a byte with the highest bit set (GNU). */
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
