import { Transform } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { ArchiveRefused } from './archive.ts';
import type { KeyFormat } from '../../keys/keys.ts';

/**
 * Looks for our own keys in what is uploaded (threat T37): as they are, with a zero byte beside each character (UTF-16),
 * and inside gzip. Only values whose checksum is right are reported, so prose and examples pass.
 */
export type Found = (value: string) => void;

/** Bytes: more than the longest key as UTF-16; as much of one piece is kept until the next has come. */
const overlap = 192;
/** What may still be unpacked of the gzip files of one upload, only to look at it. */
export type LookBudget = {
  readonly most: number;
  /** False: that is more than was left. */
  take(bytes: number): boolean;
};

/** A small archive could otherwise make a server unpack for hours (threat T51). In bytes. */
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

/** Hands the bytes on unchanged. Fails with ArchiveRefused on gzip that cannot be looked into, or not to its end. */
export function keyScan(format: KeyFormat, found: Found, budget: LookBudget): Transform {
  const plain = textScan(format, found);
  let inside: Unpacking | null | undefined;
  /** The first bytes, until there are enough to tell what they are. */
  let head: Buffer = Buffer.alloc(0);

  /** What is to be looked into, of the bytes so far; null when there is nothing. */
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

/** Looks into bytes that are there whole. False: they are packed, so only keyScan() sees what is in them. */
export function scanned(bytes: Buffer, format: KeyFormat, found: Found): boolean {
  if (bytes.subarray(0, gzipMagic.length).equals(gzipMagic)) return false;
  textScan(format, found)(bytes);
  return true;
}

/** RFC 1952 section 2.3.1. */
const gzipMagic = Buffer.from([0x1f, 0x8b]);

/** `next` is called when the bytes are unpacked and looked at, so that a bomb costs time and not memory. */
type Unpacking = { write(chunk: Buffer, next: Next): void; end(next: Next): void };
type Next = (problem: ArchiveRefused | null) => void;

/**
 * What is broken, cut or followed by other bytes is refused: readers differ in how much of it they unpack, and what we
 * cannot see we do not publish.
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
      `cannot be looked through for API keys: all gzip files of an upload may unpack to ${budget.most} bytes; leave it out, or pack it otherwise`,
    );
    over();
  });
  gunzip.on('error', () => {
    problem = new ArchiveRefused('is a broken gzip file; pack it again');
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

const marks = ['_pat_', '_svc_'];
const wideMarks = marks.map((mark) => Buffer.from(mark, 'utf16le').subarray(0, -1));

/** Looks for the marks in the bytes, which is quick, and only where there is one at the text around it. */
function textScan(format: KeyFormat, found: Found): (chunk: Buffer) => void {
  let rest: Buffer = Buffer.alloc(0);
  return (chunk) => {
    if (chunk.length < overlap) {
      const window = Buffer.concat([rest, chunk]);
      look(window);
      rest = window.subarray(-overlap);
      return;
    }
    // The seam and the piece each for itself: joining them would copy everything that is uploaded.
    if (rest.length > 0) look(Buffer.concat([rest, chunk.subarray(0, overlap)]));
    look(chunk);
    rest = Buffer.from(chunk.subarray(-overlap));
  };

  function look(window: Buffer): void {
    if (marks.some((mark) => window.includes(mark))) tell(window.toString('latin1'));
    if (wideMarks.some((mark) => window.includes(mark)))
      tell(Buffer.from(window.filter((byte) => byte !== 0)).toString('latin1'));
  }

  function tell(text: string): void {
    for (const value of keysIn(text, format)) found(value);
  }
}

/** Values with a right checksum in `text`, also where letters follow without a break. */
export function keysIn(text: string, format: KeyFormat): string[] {
  if (!marks.some((mark) => text.includes(mark))) return [];
  const whole = format.prefixOf('personal').length + 50;
  return format
    .findAll(text)
    .map((candidate) => candidate.slice(0, whole))
    .filter((candidate) => format.parse(candidate).kind === 'key');
}
