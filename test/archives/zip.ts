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
  readonly local?: { name?: string; size?: number; crc?: number; method?: number; flags?: number };
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
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06_05_4b_50, 0);
  end.writeUInt16LE(shape.disk ?? 0, 4);
  end.writeUInt16LE(shape.entries ?? parts.length, 8);
  end.writeUInt16LE(shape.entries ?? parts.length, 10);
  end.writeUInt32LE(whole.length, 12);
  end.writeUInt32LE(at, 16);
  end.writeUInt16LE(comment.length, 20);
  return Buffer.concat([
    ...pieces,
    whole,
    shape.beforeEnd ?? Buffer.alloc(0),
    end,
    comment,
    shape.after ?? Buffer.alloc(0),
  ]);
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
  fields(local, 4, { ...said, ...part.local }, localName.length, extra.length);
  const central = Buffer.alloc(46);
  central.writeUInt32LE(0x02_01_4b_50, 0);
  central.writeUInt16LE(0x03_14, 4);
  fields(central, 6, said, name.length, extra.length);
  central.writeUInt32LE(((part.mode ?? 0) * 0x1_00_00) >>> 0, 38);
  central.writeUInt32LE(part.offset ?? at, 42);
  return {
    local: Buffer.concat([local, localName, extra, data]),
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
