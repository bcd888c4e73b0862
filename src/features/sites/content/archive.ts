import type { Readable } from 'node:stream';

/**
 * One entry as an archive spells it. Nothing is extracted to a disk by name (threat T38): the consumer judges each name
 * and takes the bytes as they arrive.
 */
export type ArchiveEntry<Bytes extends Readable | Buffer = Readable | Buffer> = {
  /** A directory ends in a slash. */
  readonly name: string;
  /** Why this entry cannot be taken, whatever its name: a link, an unknown compression. */
  readonly problem?: string;
  /**
   * The bytes of a file, in one piece when they are few. Rejects or errors with ArchiveRefused when they differ from
   * what the archive states. The consumer must read a stream to its end, or destroy it, before it requests the next
   * entry.
   */
  open(): Promise<Bytes>;
};

/**
 * In bytes: files up to this size are read whole, because a stream for each would cost more than all the other work on
 * it.
 */
export const smallFile = 256 * 1024;

/** Different readers could read different content from this archive, so all of it is refused. */
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

/** What is wrong with an entry of this Unix mode; archives made on other systems have 0. */
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

/** The name without leading `./`, which several programs write before every name. Empty for the root folder of the archive. */
export function withoutDots(name: string, isDirectory: boolean): string {
  const plain = name.replace(/^(?:\.\/)+/, '');
  return isDirectory && plain === '.' ? '' : plain;
}
