import type { Readable } from 'node:stream';

/**
 * One entry as an archive spells it. Nothing is extracted to a disk by name (threat T38): whoever reads the entries
 * judges each name and takes the bytes as they come.
 */
export type ArchiveEntry<Bytes extends Readable | Buffer = Readable | Buffer> = {
  /** A directory ends in a slash. */
  readonly name: string;
  /** Why this entry cannot be taken, whatever its name: a link, an unknown compression. */
  readonly problem?: string;
  /**
   * The bytes of a file, at once when they are few. Rejects or errors with ArchiveRefused when they are not what the
   * archive says. A stream is to be read to its end, or destroyed, before the next entry is asked for.
   */
  open(): Promise<Bytes>;
};

/** Bytes: files up to here are taken whole. A stream for each of them would cost more than all that is done with it. */
export const smallFile = 256 * 1024;

/** The archive as a whole cannot be trusted to say the same to every reader. */
export class ArchiveRefused extends Error {
  /** `problem` completes the sentence "The archive …". */
  constructor(problem: string, cause?: unknown) {
    super(problem, { cause });
    this.name = 'ArchiveRefused';
  }
}

const fileType = 0o100_000;
const directoryType = 0o040_000;
const typeBits = 0o170_000;
const setIdBits = 0o6_000;

/** What is wrong with an entry of this Unix mode; archives written elsewhere have 0. */
export function modeProblem(mode: number): string | undefined {
  const type = mode & typeBits;
  if (type === 0o120_000) return 'is a symbolic link; put the file itself into the archive';
  if (type !== 0 && type !== fileType && type !== directoryType) return 'is neither a file nor a folder';
  if ((mode & setIdBits) !== 0) return 'has the set-user-ID or set-group-ID bit; clear it';
  return undefined;
}

export function isDirectoryMode(mode: number): boolean {
  return (mode & typeBits) === directoryType;
}
