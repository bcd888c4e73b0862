import { statfs } from 'node:fs/promises';
import { AppError } from '../core/errors.ts';

/** Bytes that this process can still write to the disk of `folder`; Infinity where the file system does not report it. */
export async function freeBytesIn(folder: string): Promise<number> {
  const { blocks, bavail, bsize } = await statfs(folder);
  return blocks === 0 ? Number.POSITIVE_INFINITY : bavail * bsize;
}

/** Whether a disk has less free space than `minBytes`. Checks the disk once a second at most. */
export type SpaceWatch = { isLow(): Promise<boolean> };

const lookEveryMs = 1_000;

export function createSpaceWatch(deps: {
  readonly freeBytes: () => Promise<number>;
  readonly minBytes: number;
  /** Current time in ms. */
  readonly now: () => number;
  readonly onChange: (isLow: boolean, freeBytes: number) => void;
}): SpaceWatch {
  let lookedAt = Number.NEGATIVE_INFINITY;
  let isLow = false;
  return {
    async isLow() {
      if (deps.now() - lookedAt < lookEveryMs) return isLow;
      lookedAt = deps.now();
      // When the file system cannot report its free space, keep the last result.
      const free = await deps.freeBytes().catch(() => undefined);
      if (free === undefined) return isLow;
      if (free < deps.minBytes !== isLow) {
        isLow = !isLow;
        deps.onChange(isLow, free);
      }
      return isLow;
    },
  };
}

/** Rejects with `storage_full` while the disk has too little free space for an upload. */
export type FreeSpaceCheck = () => Promise<void>;

export const unlimitedSpace: FreeSpaceCheck = async () => undefined;

/** Called for every chunk of an upload. The disk itself is checked once a second. */
export function createFreeSpaceCheck(watch: SpaceWatch): FreeSpaceCheck {
  return async () => {
    if (await watch.isLow()) throw new AppError('storage_full');
  };
}
