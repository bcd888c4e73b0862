import type { Manifest } from './manifest.ts';

/** The differences between two versions, file by file. No I/O: it compares digests. */
export const fileChangeKinds = ['added', 'changed', 'removed'] as const;

export type FileChange = {
  readonly path: string;
  readonly change: (typeof fileChangeKinds)[number];
  /** Bytes of the new file; null when it was removed. */
  readonly size: number | null;
  readonly sizeBefore: number | null;
};

/** By path, in code unit order. Unchanged files are left out. */
export function changesBetween(before: Manifest, after: Manifest): FileChange[] {
  const changes: FileChange[] = [];
  for (const [path, { digest, size }] of after) {
    const old = before.get(path);
    if (old === undefined) changes.push({ path, change: 'added', size, sizeBefore: null });
    else if (old.digest !== digest) changes.push({ path, change: 'changed', size, sizeBefore: old.size });
  }
  for (const [path, { size }] of before) {
    if (!after.has(path)) changes.push({ path, change: 'removed', size: null, sizeBefore: size });
  }
  return changes.sort((one, other) => (one.path < other.path ? -1 : 1));
}
