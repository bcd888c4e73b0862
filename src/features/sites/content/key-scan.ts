import { Transform } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { ArchiveRefused } from './archive.ts';
import { keyInfixes } from '../../../core/key-shape.ts';
import type { KeyFormat } from '../../keys/keys.ts';

/**
 * Scans uploads for our own keys (threat T37): as plain text, with a zero byte next to each character (UTF-16), and
 * inside gzip. In today's form, only values with a correct checksum are reported, so prose and examples pass. The older
 * form, which `keys import` brings, has no checksum, so every match is reported.
 */
export type Found = (value: string) => void;

/** In bytes: more than the longest key as UTF-16. This much of each piece is kept until the next one arrives. */
const overlap = 192;
/** How many bytes the scan may still unpack from all gzip files of one upload. */
export type LookBudget = {
  readonly most: number;
  /** False when this is more than was left. */
  take(bytes: number): boolean;
};

/** In bytes. Without this limit, a small archive could make a server unpack for hours (threat T51). */
export function lookBudget(most: number): LookBudget {
  let left = most;
  return {
    most,
    take(bytes) {
      left -= bytes;
      return left >= 0;
    },
  };
}

/** Passes the bytes on unchanged. Fails with ArchiveRefused on gzip that cannot be unpacked to its end. */
export function keyScan(format: KeyFormat, found: Found, budget: LookBudget): Transform {
  const plain = textScan(format, found);
  let inside: Unpacking | null | undefined;
  /** The first bytes, until there are enough to recognise the format. */
  let head: Buffer = Buffer.alloc(0);

  /** The bytes so far that have to be unpacked; null when there are none. */
  function packedOf(chunk: Buffer): Buffer | null {
    if (inside !== undefined) return inside && chunk;
    head = head.length === 0 ? chunk : Buffer.concat([head, chunk]);
    if (head.length < gzipMagic.length) return null;
    inside = head.subarray(0, gzipMagic.length).equals(gzipMagic)
      ? unpack(textScan(format, found), budget)
      : null;
    return inside && head;
  }

  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      plain(chunk);
      const packed = packedOf(chunk);
      if (packed === null || !inside) done(null, chunk);
      else inside.write(packed, (problem) => done(problem, chunk));
    },
    flush(done) {
      if (inside) inside.end(done);
      else done();
    },
  });
}

/** Scans content that is in memory as a whole. False for gzip, which only keyScan() can scan. */
export function scanned(bytes: Buffer, format: KeyFormat, found: Found): boolean {
  if (bytes.subarray(0, gzipMagic.length).equals(gzipMagic)) return false;
  textScan(format, found)(bytes);
  return true;
}

/** RFC 1952 section 2.3.1. */
const gzipMagic = Buffer.from([0x1f, 0x8b]);

/** `next` is called after the bytes are unpacked and scanned, so that a bomb costs time and not memory. */
type Unpacking = { write(chunk: Buffer, next: Next): void; end(next: Next): void };
type Next = (problem: ArchiveRefused | null) => void;

/**
 * Refuses gzip that is broken, truncated or followed by other bytes: readers differ in how much of it they unpack. What
 * the scan cannot see is not published.
 */
function unpack(scan: (chunk: Buffer) => void, budget: LookBudget): Unpacking {
  const gunzip = createGunzip();
  let isOver = false;
  let problem: ArchiveRefused | null = null;
  let waiting: Next | undefined;

  function goOn(): void {
    const next = waiting;
    waiting = undefined;
    next?.(problem);
  }
  function over(): void {
    isOver = true;
    gunzip.destroy();
    goOn();
  }

  gunzip.on('data', (chunk: Buffer) => {
    if (isOver) return;
    if (budget.take(chunk.length)) return scan(chunk);
    problem = new ArchiveRefused(
      `cannot be scanned for API keys: all gzip files of an upload together may unpack to ${budget.most} bytes; leave it out, or do not compress it`,
    );
    over();
  });
  gunzip.on('error', () => {
    problem = new ArchiveRefused('is a corrupt gzip file; compress it again');
    over();
  });
  gunzip.on('end', over).on('close', over);
  return {
    write(chunk, next) {
      if (isOver) return next(problem);
      waiting = next;
      gunzip.write(chunk, goOn);
    },
    end(next) {
      if (isOver) return next(problem);
      waiting = next;
      gunzip.end();
    },
  };
}

const wideInfixes = keyInfixes.map((infix) => Buffer.from(infix, 'utf16le').subarray(0, -1));

/** Searches for the fixed parts of a key first, which is fast, and examines the text only around a match. */
function textScan(format: KeyFormat, found: Found): (chunk: Buffer) => void {
  let rest: Buffer = Buffer.alloc(0);
  return (chunk) => {
    if (chunk.length < overlap) {
      const window = Buffer.concat([rest, chunk]);
      look(window);
      rest = window.subarray(-overlap);
      return;
    }
    // Scans the seam and the piece separately: joining them would copy every uploaded byte.
    if (rest.length > 0) look(Buffer.concat([rest, chunk.subarray(0, overlap)]));
    look(chunk);
    rest = Buffer.from(chunk.subarray(-overlap));
  };

  function look(window: Buffer): void {
    if (keyInfixes.some((infix) => window.includes(infix))) tell(window.toString('latin1'));
    if (wideInfixes.some((infix) => window.includes(infix)))
      tell(Buffer.from(window.filter((byte) => byte !== 0)).toString('latin1'));
  }

  function tell(text: string): void {
    for (const value of format.valuesIn(text)) found(value);
  }
}
