import { lstat, readlink } from 'node:fs/promises';
import { join } from 'node:path';

/** Maximum links, as in the kernel (path_resolution(7)). */
const maxLinks = 40;

/**
 * Whether a path below `root` leads to a place in `root`, whatever symbolic links are on the way. Also answers for links
 * without a target, which realpath(3) does not. Nothing may change in `root` meanwhile.
 */
export async function staysInside(root: string, path: string): Promise<boolean> {
  return await leadsInside(path, (place) => targetOf(join(root, place)));
}

/** Checks links that need not be on a disk. `targetOf` returns the target of a path; undefined: it is no link. */
export async function leadsInside(
  path: string,
  targetOf: (place: string) => Promise<string | undefined>,
): Promise<boolean> {
  const ahead = path.split('/');
  const place: string[] = [];
  let links = 0;
  for (let segment = ahead.shift(); segment !== undefined; segment = ahead.shift()) {
    if (segment === '' || segment === '.') continue;
    if (segment === '..') {
      if (place.pop() === undefined) return false;
      continue;
    }
    place.push(segment);
    const target = await targetOf(place.join('/'));
    if (target === undefined) continue;
    links += 1;
    if (links > maxLinks || target.startsWith('/')) return false;
    place.pop();
    ahead.unshift(...target.split('/'));
  }
  return true;
}

/** Undefined: the path is no link, or does not exist. */
async function targetOf(path: string): Promise<string | undefined> {
  const found = await lstat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return undefined;
    throw error;
  });
  return found?.isSymbolicLink() ? await readlink(path) : undefined;
}
