import { gzipSync } from 'node:zlib';

/** One entry of a tar made by hand. `type` is the typeflag of POSIX ustar. */
export type TarPart = {
  readonly name: string;
  readonly content?: string | Buffer;
  readonly type?: string;
  readonly mode?: number;
  readonly link?: string;
  /** What the header says instead of the truth. */
  readonly size?: number;
  readonly checksum?: number;
  /** A header of the format v7, which has no magic number. */
  readonly isV7?: true;
};

const block = 512;

/** A tar, block by block, without its end. */
export function tarBlocks(parts: readonly TarPart[]): Buffer {
  return Buffer.concat(
    parts.map((part) => {
      const content = Buffer.from(part.content ?? '');
      const padding = Buffer.alloc((block - (content.length % block)) % block);
      return Buffer.concat([headerOf(part, content.length), content, padding]);
    }),
  );
}

export const tarEnd = Buffer.alloc(2 * block);

export function tarGzOf(parts: readonly TarPart[]): Buffer {
  return gzipSync(Buffer.concat([tarBlocks(parts), tarEnd]));
}

/** A pax header for the entry after it (POSIX.1-2017 pax, section "pax Extended Header"). */
export function paxOf(fields: Readonly<Record<string, string>>): TarPart {
  const lines = Object.entries(fields).map(([name, value]) => {
    const rest = ` ${name}=${value}\n`;
    let length = Buffer.byteLength(rest) + 1;
    while (String(length).length + Buffer.byteLength(rest) !== length) length += 1;
    return `${length}${rest}`;
  });
  return { name: 'PaxHeader/x', type: 'x', content: lines.join('') };
}

function headerOf(part: TarPart, length: number): Buffer {
  const header = Buffer.alloc(block);
  const octal = (value: number, at: number, width: number) =>
    header.write(`${value.toString(8).padStart(width - 1, '0')}\0`, at, 'latin1');
  header.write(part.name, 0, 100);
  octal(part.mode ?? 0o644, 100, 8);
  octal(0, 108, 8);
  octal(0, 116, 8);
  octal(part.size ?? length, 124, 12);
  octal(0, 136, 12);
  if (!part.isV7) header.write(part.type ?? (part.name.endsWith('/') ? '5' : '0'), 156);
  else if (part.type !== undefined) header.write(part.type, 156);
  header.write(part.link ?? '', 157, 100);
  if (!part.isV7) header.write('ustar\u000000', 257, 'latin1');
  header.fill(' ', 148, 156);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${(part.checksum ?? sum).toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return header;
}
