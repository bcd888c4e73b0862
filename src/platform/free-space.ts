import { statfs } from 'node:fs/promises';
import { AppError } from '../core/errors.ts';

/** Bytes that are left for this process on the disk of `folder`; Infinity where the file system does not say. */
export async function freeBytesIn(folder: string): Promise<number> {
  const { blocks, bavail, bsize } = await statfs(folder);
  return blocks === 0 ? Number.POSITIVE_INFINITY : bavail * bsize;
}

/** Whether a disk has less left than `leastBytes`, looked at once a second at most. */
export type SpaceWatch = { isLow(): Promise<boolean> };

const lookEveryMs = 1_000;

export function createSpaceWatch(deps: {
  readonly freeBytes: () => Promise<number>;
  readonly leastBytes: number;
  /** In ms. */
  readonly now: () => number;
  readonly onChange: (isLow: boolean, freeBytes: number) => void;
}): SpaceWatch {
  let lookedAt = Number.NEGATIVE_INFINITY;
  let isLow = false;
  return {
    async isLow() {
      if (deps.now() - lookedAt < lookEveryMs) return isLow;
      lookedAt = deps.now();
      // A disk that does not say how full it is has changed nothing.
      const free = await deps.freeBytes().catch(() => undefined);
      if (free === undefined) return isLow;
      if (free < deps.leastBytes !== isLow) {
        isLow = !isLow;
        deps.onChange(isLow, free);
      }
      return isLow;
    },
  };
}

/** Rejects with `storage_full` while there is too little room for more of an upload. */
export type RoomCheck = () => Promise<void>;

export const roomForAll: RoomCheck = async () => undefined;

/** Asked for every piece of an upload, so the disk itself is looked at once a second. */
export function createRoomCheck(watch: SpaceWatch): RoomCheck {
  return async () => {
    if (await watch.isLow()) throw new AppError('storage_full');
  };
}
