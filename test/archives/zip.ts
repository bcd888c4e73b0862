import { crc32, deflateRawSync } from 'node:zlib';

/** One entry of a ZIP made by hand. Everything that a header says can be made to lie. */
export type ZipPart = {
  readonly name: string | Buffer;
  readonly content?: string | Buffer;
  /** Unix mode with its type bits; 0 = not said. */
  readonly mode?: number;
  readonly stored?: boolean;
  readonly flags?: number;
  readonly method?: number;
  readonly extra?: Buffer;
  /** What the headers say instead of the truth. */
  readonly size?: number;
  readonly compressedSize?: number;
  readonly crc?: number;
  /** The local header alone says otherwise. */
  readonly local?: {
    name?: string;
    size?: number;
    compressedSize?: number;
    crc?: number;
    method?: number;
    flags?: number;
    extra?: Buffer;
  };
  /** Where the directory says that the local header is. */
  readonly offset?: number;
};

export type ZipShape = {
  readonly before?: Buffer;
  readonly after?: Buffer;
  readonly beforeDirectory?: Buffer;
  readonly beforeEnd?: Buffer;
  readonly comment?: Buffer;
  readonly entries?: number;
  readonly disk?: number;
  /** With a Zip64 end (4.3.14, 4.3.15): what its fields say instead of the truth. */
  readonly zip64?: Partial<Zip64End>;
};

export type Zip64End = {
  readonly signature: number;
  readonly length: number;
  readonly disk: number;
  readonly directoryDisk: number;
  readonly entriesHere: number;
  readonly entries: number;
  readonly directorySize: number;
  readonly directoryAt: number;
  readonly locatorSignature: number;
  readonly recordDisk: number;
  readonly recordAt: number;
  readonly disks: number;
  /** Values of the end record, which otherwise refer to the Zip64 record. */
  readonly endEntries: number;
  readonly endDirectorySize: number;
  readonly endDirectoryAt: number;
};

/** A ZIP file, byte by byte (PKWARE APPNOTE 4.3). */
export function zipOf(parts: readonly ZipPart[], shape: ZipShape = {}): Buffer {
  const pieces: Buffer[] = [shape.before ?? Buffer.alloc(0)];
  const directory: Buffer[] = [];
  let at = pieces[0]?.length ?? 0;
  for (const part of parts) {
    const { local, central } = entryOf(part, at);
    pieces.push(local);
    directory.push(central);
    at += local.length;
  }
  pieces.push(shape.beforeDirectory ?? Buffer.alloc(0));
  at += shape.beforeDirectory?.length ?? 0;
  const whole = Buffer.concat(directory);
  const comment = shape.comment ?? Buffer.alloc(0);
  const said = {
    entries: shape.zip64 ? (shape.zip64.endEntries ?? 0xff_ff) : (shape.entries ?? parts.length),
    directorySize: shape.zip64 ? (shape.zip64.endDirectorySize ?? 0xff_ff_ff_ff) : whole.length,
    directoryAt: shape.zip64 ? (shape.zip64.endDirectoryAt ?? 0xff_ff_ff_ff) : at,
  };
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06_05_4b_50, 0);
  end.writeUInt16LE(shape.disk ?? 0, 4);
  end.writeUInt16LE(said.entries, 8);
  end.writeUInt16LE(said.entries, 10);
  end.writeUInt32LE(said.directorySize, 12);
  end.writeUInt32LE(said.directoryAt, 16);
  end.writeUInt16LE(comment.length, 20);
  const directoryOf = { entries: parts.length, directorySize: whole.length, directoryAt: at };
  return Buffer.concat([
    ...pieces,
    whole,
    ...(shape.zip64 ? [zip64EndOf(directoryOf, shape.zip64)] : []),
    shape.beforeEnd ?? Buffer.alloc(0),
    end,
    comment,
    shape.after ?? Buffer.alloc(0),
  ]);
}

/** Field 0x0001 (4.5.3): of size, packed size and offset those whose own field is full, in this order. */
export function zip64Field(...values: readonly number[]): Buffer {
  const field = Buffer.alloc(4 + 8 * values.length);
  field.writeUInt16LE(1, 0);
  field.writeUInt16LE(8 * values.length, 2);
  for (const [at, value] of values.entries()) field.writeBigUInt64LE(BigInt(value), 4 + 8 * at);
  return field;
}

/** The record and its locator. */
function zip64EndOf(
  truth: { entries: number; directorySize: number; directoryAt: number },
  lies: Partial<Zip64End>,
): Buffer {
  const said = { ...truth, ...lies };
  const record = Buffer.alloc(56);
  record.writeUInt32LE(lies.signature ?? 0x06_06_4b_50, 0);
  record.writeBigUInt64LE(BigInt(lies.length ?? 44), 4);
  record.writeUInt16LE(0x03_2d, 12);
  record.writeUInt16LE(45, 14);
  record.writeUInt32LE(lies.disk ?? 0, 16);
  record.writeUInt32LE(lies.directoryDisk ?? 0, 20);
  record.writeBigUInt64LE(BigInt(lies.entriesHere ?? said.entries), 24);
  record.writeBigUInt64LE(BigInt(said.entries), 32);
  record.writeBigUInt64LE(BigInt(said.directorySize), 40);
  record.writeBigUInt64LE(BigInt(said.directoryAt), 48);
  const locator = Buffer.alloc(20);
  locator.writeUInt32LE(lies.locatorSignature ?? 0x07_06_4b_50, 0);
  locator.writeUInt32LE(lies.recordDisk ?? 0, 4);
  locator.writeBigUInt64LE(BigInt(lies.recordAt ?? truth.directoryAt + truth.directorySize), 8);
  locator.writeUInt32LE(lies.disks ?? 1, 16);
  return Buffer.concat([record, locator]);
}

function entryOf(part: ZipPart, at: number): { local: Buffer; central: Buffer } {
  const name = Buffer.isBuffer(part.name) ? part.name : Buffer.from(part.name);
  const content = Buffer.from(part.content ?? '');
  const isStored = part.stored === true || content.length === 0;
  const data = isStored ? content : deflateRawSync(content);
  const said = {
    flags: part.flags ?? 0x08_00,
    method: part.method ?? (isStored ? 0 : 8),
    crc: part.crc ?? crc32(content),
    compressedSize: part.compressedSize ?? data.length,
    size: part.size ?? content.length,
  };
  const extra = part.extra ?? Buffer.alloc(0);
  const localName = part.local?.name === undefined ? name : Buffer.from(part.local.name);
  const local = Buffer.alloc(30);
  local.writeUInt32LE(0x04_03_4b_50, 0);
  const localExtra = part.local?.extra ?? extra;
  fields(local, 4, { ...said, ...part.local }, localName.length, localExtra.length);
  const central = Buffer.alloc(46);
  central.writeUInt32LE(0x02_01_4b_50, 0);
  central.writeUInt16LE(0x03_14, 4);
  fields(central, 6, said, name.length, extra.length);
  central.writeUInt32LE(((part.mode ?? 0) * 0x1_00_00) >>> 0, 38);
  central.writeUInt32LE(part.offset ?? at, 42);
  return {
    local: Buffer.concat([local, localName, localExtra, data]),
    central: Buffer.concat([central, name, extra]),
  };
}

function fields(
  header: Buffer,
  at: number,
  said: { flags: number; method: number; crc: number; compressedSize: number; size: number },
  nameLength: number,
  extraLength: number,
): void {
  header.writeUInt16LE(20, at);
  header.writeUInt16LE(said.flags, at + 2);
  header.writeUInt16LE(said.method, at + 4);
  header.writeUInt32LE(said.crc, at + 10);
  header.writeUInt32LE(said.compressedSize, at + 14);
  header.writeUInt32LE(said.size, at + 18);
  header.writeUInt16LE(nameLength, at + 22);
  header.writeUInt16LE(extraLength, at + 24);
}
