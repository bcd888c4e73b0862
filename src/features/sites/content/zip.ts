import { type FileHandle, open } from 'node:fs/promises';
import { type Readable, Transform } from 'node:stream';
import { crc32, inflateRawSync } from 'node:zlib';
import { type Entry, fromFdPromise, type LocalFileHeader, type ZipFile } from 'yauzl';
import {
  type ArchiveEntry,
  ArchiveRefused,
  isDirectoryMode,
  modeProblem,
  smallFile,
  withoutDots,
} from './archive.ts';
import { notUtf8 } from './paths.ts';

/**
 * Reads a ZIP file from disk (PKWARE APPNOTE 6.3.10). Strict where readers differ (threats T40, T41). The file consists
 * of local headers, central directory and one end record without a byte between them. No two entries share bytes, and
 * both descriptions of an entry agree. Files of at most `wholeUpTo` bytes are returned whole.
 */
export async function* readZip(
  path: string,
  maxEntries: number,
  wholeUpTo = smallFile,
): AsyncGenerator<ArchiveEntry> {
  const file = await open(path, 'r');
  try {
    const { size } = await file.stat();
    const end = await readEnd(file, size);
    if (end.entries > maxEntries) throw new ArchiveRefused(`has more than ${maxEntries} entries`);
    // The whole directory is held in memory at once.
    if (end.directorySize > maxHeaders(end.entries))
      throw new ArchiveRefused('has a central directory that is too long; pack it again without comments');
    const zip = await refused(() => fromFdPromise(file.fd, { decodeStrings: false, autoClose: false }));
    const entries = await readDirectory(zip, end);
    const headers = await checkLayout(zip, entries, end.directoryAt);
    for (const [index, entry] of entries.entries()) {
      const described = describe({ file, zip, wholeUpTo }, entry, headers[index]);
      if (described !== undefined) yield described;
    }
  } finally {
    await file.close();
  }
}

type Opened = { readonly file: FileHandle; readonly zip: ZipFile; readonly wholeUpTo: number };

type End = { readonly entries: number; readonly directoryAt: number; readonly directorySize: number };

const endSignature = Buffer.from('PK\x05\x06', 'latin1');
const endLength = 22;
const maxCommentBytes = 65_535;

/** Finds the end record, section 4.3.16. It fixes the only place where the central directory can be. */
async function readEnd(file: FileHandle, size: number): Promise<End> {
  const tail = await readAt(file, Math.max(0, size - endLength - maxCommentBytes), size);
  const at = tail.lastIndexOf(endSignature);
  if (at < 0 || at + endLength > tail.length) throw new ArchiveRefused('is not a ZIP file, or is truncated');
  const after = at + endLength + tail.readUInt16LE(at + 20);
  if (after !== tail.length) throw new ArchiveRefused(afterEndProblem(tail.subarray(after)));
  const endAt = size - (tail.length - at);
  const isZip64 = tail.readUInt32LE(at + 16) === 0xff_ff_ff_ff || tail.readUInt16LE(at + 10) === 0xff_ff;
  const end = isZip64 ? await readZip64End(file, endAt) : plainEnd(tail, at, endAt);
  const isSame = (old: number, full: number, value: number) => old === full || old === value;
  if (
    !isSame(tail.readUInt16LE(at + 10), 0xff_ff, end.entries) ||
    !isSame(tail.readUInt32LE(at + 12), 0xff_ff_ff_ff, end.directorySize) ||
    !isSame(tail.readUInt32LE(at + 16), 0xff_ff_ff_ff, end.directoryAt)
  )
    throw new ArchiveRefused('has two end records that differ; pack it again');
  if (end.directoryAt + end.directorySize !== end.endsAt)
    throw new ArchiveRefused('has bytes between its central directory and its end record; pack it again');
  return end;
}

/** bsdtar fills a ZIP that it writes to a pipe up to a whole block, as a tar is filled. */
function afterEndProblem(bytes: Buffer): string {
  return bytes.length > 0 && bytes.every((byte) => byte === 0)
    ? 'is padded with zero bytes, as bsdtar pads a ZIP that it writes to a pipe; let it write to a file: tar -a -cf site.zip .'
    : 'has bytes after its end record; pack it again';
}

function plainEnd(tail: Buffer, at: number, endsAt: number): End & { endsAt: number } {
  const isOneDisk = tail.readUInt16LE(at + 4) === 0 && tail.readUInt16LE(at + 6) === 0;
  const entries = tail.readUInt16LE(at + 10);
  if (!isOneDisk || entries !== tail.readUInt16LE(at + 8))
    throw new ArchiveRefused('is one part of a multi-part archive; pack it as one file');
  return {
    entries,
    directorySize: tail.readUInt32LE(at + 12),
    directoryAt: tail.readUInt32LE(at + 16),
    endsAt,
  };
}

const locatorLength = 20;
const zip64EndLength = 56;

/**
 * Sections 4.3.14 and 4.3.15; the record lies directly before its locator, and the locator directly before the end
 * record.
 */
async function readZip64End(file: FileHandle, endAt: number): Promise<End & { endsAt: number }> {
  const endsAt = endAt - locatorLength - zip64EndLength;
  if (endsAt < 0) throw new ArchiveRefused('has an invalid Zip64 end record; pack it again');
  const record = await readAt(file, endsAt, endAt);
  const locator = record.subarray(zip64EndLength);
  const isWhole =
    record.readUInt32LE(0) === 0x06_06_4b_50 &&
    Number(record.readBigUInt64LE(4)) === zip64EndLength - 12 &&
    locator.readUInt32LE(0) === 0x07_06_4b_50 &&
    Number(locator.readBigUInt64LE(8)) === endsAt &&
    locator.readUInt32LE(4) === 0 &&
    locator.readUInt32LE(16) <= 1;
  if (!isWhole) throw new ArchiveRefused('has an invalid Zip64 end record; pack it again');
  const isOneDisk = record.readUInt32LE(16) === 0 && record.readUInt32LE(20) === 0;
  const entries = Number(record.readBigUInt64LE(32));
  if (!isOneDisk || entries !== Number(record.readBigUInt64LE(24)))
    throw new ArchiveRefused('is one part of a multi-part archive; pack it as one file');
  return {
    entries,
    directorySize: Number(record.readBigUInt64LE(40)),
    directoryAt: Number(record.readBigUInt64LE(48)),
    endsAt,
  };
}

async function readAt(file: FileHandle, from: number, to: number): Promise<Buffer> {
  const bytes = Buffer.alloc(to - from);
  const { bytesRead } = await file.read(bytes, 0, bytes.length, from);
  if (bytesRead !== bytes.length) throw new ArchiveRefused('is truncated; pack it again');
  return bytes;
}

const directoryHeaderLength = 46;
/** Maximum bytes that describe this many entries: the longest name with its dates and owners for each, plus a margin. */
const maxHeaders = (entries: number) => entries * 2_048 + 1_048_576;

async function readDirectory(zip: ZipFile, { entries, directorySize }: End): Promise<Entry[]> {
  const found: Entry[] = [];
  let bytes = 0;
  await refused(async () => {
    for await (const entry of zip.eachEntry()) {
      found.push(entry);
      bytes +=
        directoryHeaderLength + entry.fileNameLength + entry.extraFieldLength + entry.fileCommentLength;
    }
  });
  if (found.length !== entries || bytes !== directorySize)
    throw new ArchiveRefused('has a central directory that differs from its end record; pack it again');
  return found;
}

/** Lengths of the data descriptor, section 4.3.9: with or without signature, with sizes of 4 or 8 bytes. */
const descriptorLengths = new Set([12, 16, 20, 24]);
const hasDescriptor = 0x08;

/**
 * Every byte belongs to exactly one entry: flat bombs share bytes between entries, and hidden parts lie outside all of
 * them.
 */
async function checkLayout(
  zip: ZipFile,
  entries: readonly Entry[],
  directoryAt: number,
): Promise<LocalFileHeader[]> {
  const headers: LocalFileHeader[] = [];
  let bytes = 0;
  for (const entry of entries) {
    const header = await refused(() => zip.readLocalFileHeaderPromise(entry));
    bytes += header.fileName.length + header.extraField.length;
    if (bytes > maxHeaders(entries.length))
      throw new ArchiveRefused('has headers that are too long; pack it again');
    headers.push(header);
  }
  const order = entries
    .map((entry, index) => ({ entry, header: headers[index] }))
    .sort((one, other) => one.entry.relativeOffsetOfLocalHeader - other.entry.relativeOffsetOfLocalHeader);
  let at = 0;
  let mayGap = false;
  for (const { entry, header } of order) {
    const gap = entry.relativeOffsetOfLocalHeader - at;
    if (gap !== 0 && !(mayGap && descriptorLengths.has(gap))) throw new ArchiveRefused(gapProblem(gap));
    at = (header?.fileDataStart ?? 0) + entry.compressedSize;
    mayGap = (entry.generalPurposeBitFlag & hasDescriptor) !== 0;
  }
  const rest = directoryAt - at;
  if (rest !== 0 && !(mayGap && descriptorLengths.has(rest))) throw new ArchiveRefused(gapProblem(rest));
  return headers;
}

function gapProblem(gap: number): string {
  return gap < 0
    ? 'has entries that overlap; pack it again'
    : 'has bytes that belong to no entry; pack it again';
}

function describe(
  opened: Opened,
  entry: Entry,
  header: LocalFileHeader | undefined,
): ArchiveEntry | undefined {
  const mode = entry.externalFileAttributes >>> 16;
  const { whole, problem } = decodeName(entry);
  const isDirectory = whole.endsWith('/');
  const name = withoutDots(whole, isDirectory);
  const found =
    problem ??
    modeProblem(mode) ??
    (isDirectoryMode(mode) !== isDirectory && mode >>> 12 !== 0
      ? 'is both a folder and a file; pack it again'
      : undefined) ??
    (isDirectory && entry.uncompressedSize > 0 ? 'is a folder with content; pack it again' : undefined) ??
    codingProblem(entry) ??
    (header === undefined ? undefined : differenceProblem(entry, header));
  // Only the root folder needs no name. A file without one is refused, because its content would be lost.
  if (name === '' && isDirectory && found === undefined) return undefined;
  return {
    name,
    ...(found === undefined ? {} : { problem: found }),
    open: () => openEntry(opened, entry, header),
  };
}

const utf8 = new TextDecoder('utf-8', { ignoreBOM: true });
const unicodePathField = 0x70_75;

/** Names are UTF-8, declared or not, because readers guess older code pages differently. U+FFFD stands for other bytes. */
function decodeName(entry: Entry): { whole: string; problem?: string } {
  const { fileNameRaw } = entry;
  // Info-ZIP's second name (4.6.9): version, CRC-32, then UTF-8.
  const second = entry.extraFields.find(({ id }) => id === unicodePathField)?.data.subarray(5);
  const isTwofold = second !== undefined && !second.equals(fileNameRaw);
  const whole = utf8.decode(fileNameRaw);
  if (whole.includes('\ufffd')) return { whole, problem: notUtf8 };
  return isTwofold ? { whole, problem: 'has two different names; pack it again' } : { whole };
}

const isEncrypted = 0x20_41;

function codingProblem({ generalPurposeBitFlag, compressionMethod }: Entry): string | undefined {
  if ((generalPurposeBitFlag & isEncrypted) !== 0) return 'is encrypted; pack it without a password';
  if (compressionMethod !== 0 && compressionMethod !== 8)
    return `uses compression method ${compressionMethod}; use deflate or no compression`;
  return undefined;
}

const zip64Field = 0x00_01;

/** Sizes of a local header: from its Zip64 field when one of them does not fit its own field (section 4.5.3). */
function localSizes({ uncompressedSize, compressedSize, extraField }: LocalFileHeader) {
  if (uncompressedSize !== 0xff_ff_ff_ff && compressedSize !== 0xff_ff_ff_ff)
    return { uncompressedSize, compressedSize };
  for (let at = 0; at + 4 <= extraField.length; at += 4 + extraField.readUInt16LE(at + 2)) {
    const isWhole = extraField.readUInt16LE(at + 2) >= 16 && at + 20 <= extraField.length;
    if (extraField.readUInt16LE(at) !== zip64Field || !isWhole) continue;
    return {
      uncompressedSize: Number(extraField.readBigUInt64LE(at + 4)),
      compressedSize: Number(extraField.readBigUInt64LE(at + 12)),
    };
  }
  return undefined;
}

/** A local header may leave size and CRC to the data descriptor (bit 3). */
function differenceProblem(entry: Entry, header: LocalFileHeader): string | undefined {
  const sizes = localSizes(header);
  const isSame = (local: number | undefined, central: number) =>
    local === central || ((header.generalPurposeBitFlag & hasDescriptor) !== 0 && local === 0);
  const agrees =
    header.fileName.equals(entry.fileNameRaw) &&
    header.compressionMethod === entry.compressionMethod &&
    header.generalPurposeBitFlag === entry.generalPurposeBitFlag &&
    isSame(header.crc32, entry.crc32) &&
    isSame(sizes?.compressedSize, entry.compressedSize) &&
    isSame(sizes?.uncompressedSize, entry.uncompressedSize);
  return agrees ? undefined : 'has a local header that differs from the central directory; pack it again';
}

async function openEntry(
  { file, zip, wholeUpTo }: Opened,
  entry: Entry,
  header: LocalFileHeader | undefined,
): Promise<Readable | Buffer> {
  const isSmall = Math.max(entry.compressedSize, entry.uncompressedSize) <= wholeUpTo;
  if (isSmall && header !== undefined) return await readWhole(file, entry, header.fileDataStart);
  const bytes = await refused(() => zip.openReadStreamPromise(entry));
  let sum = 0;
  const checked = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      sum = crc32(chunk, sum);
      done(null, chunk);
    },
    flush(done) {
      done(sum === entry.crc32 ? null : new ArchiveRefused('does not match its checksum; pack it again'));
    },
  });
  // Broken deflate data and wrong sizes are the archive's fault; a disk failure is not.
  bytes.on('error', (error: Error) => checked.destroy(isOfDisk(error) ? error : cannotUnpack(error)));
  // A consumer that abandons the entry also releases the file.
  checked.on('close', () => bytes.destroy());
  return bytes.pipe(checked);
}

/** Reads the entry in one piece, with the declared size as the limit, so that a bomb stays small too. */
async function readWhole(file: FileHandle, entry: Entry, at: number): Promise<Buffer> {
  const packed = await readAt(file, at, at + entry.compressedSize);
  const bytes = entry.compressionMethod === 0 ? packed : inflated(packed, entry.uncompressedSize);
  if (bytes.length !== entry.uncompressedSize)
    throw new ArchiveRefused('has another size than its header states; pack it again');
  if (crc32(bytes) !== entry.crc32) throw new ArchiveRefused('does not match its checksum; pack it again');
  return bytes;
}

function inflated(packed: Buffer, size: number): Buffer {
  try {
    // One byte more than expected: a single step then suffices, and excess output is detected.
    return inflateRawSync(packed, { chunkSize: Math.max(64, size + 1), maxOutputLength: size + 1 });
  } catch (error) {
    throw cannotUnpack(error as Error);
  }
}

function cannotUnpack(error: Error): ArchiveRefused {
  return new ArchiveRefused('cannot be unpacked; pack it again', error);
}

/** Errors of the operating system have a system call (EIO, EMFILE); zlib errors have only a code. */
function isOfDisk(error: Error): boolean {
  return 'syscall' in error;
}

/** Errors of yauzl are problems of the archive, not defects of Postern. */
async function refused<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ArchiveRefused || (error instanceof Error && isOfDisk(error))) throw error;
    throw new ArchiveRefused('is not a ZIP file that can be read; pack it again', error);
  }
}
