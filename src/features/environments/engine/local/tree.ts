import { createWriteStream } from 'node:fs';
import { mkdir, symlink } from 'node:fs/promises';
import { join, posix } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { extract } from 'tar-stream';
import type { Blobs } from '../../../../platform/blobs/blobs.ts';
import { staysInside } from '../../../../platform/links.ts';

/**
 * Unpacks an artifact into an empty folder. Throws when it is not as storeOutput() writes it: then nothing of the folder may be
 * used. No entry is written through a link: its folder was an entry too, and no entry replaces another.
 */
export async function unpackTree(digest: string, folder: string, blobs: Pick<Blobs, 'read'>): Promise<void> {
  const reader = extract();
  const feeding = pipeline(await blobs.read(digest), createGunzip(), reader);
  // The await below gets the failure. Until then the rejection must not end the process.
  feeding.catch(() => undefined);
  const folders = new Set(['.']);
  const links: string[] = [];
  for await (const entry of reader) {
    const { name, type, mode, linkname } = entry.header;
    const path = name.replace(/\/$/, '');
    if (path !== posix.normalize(path) || !folders.has(posix.dirname(path)) || path === '..')
      throw new Error(`The artifact has an unexpected entry: ${name}`);
    const at = join(folder, path);
    if (type === 'directory') {
      await mkdir(at, { mode: 0o755 });
      folders.add(path);
      entry.resume();
    } else if (type === 'symlink') {
      await symlink(linkname ?? '', at);
      links.push(path);
      entry.resume();
    } else if (type === 'file') {
      // Never through a link, and never over another entry (open(2), O_EXCL).
      const isProgram = ((mode ?? 0) & 0o111) !== 0;
      await pipeline(entry, createWriteStream(at, { flags: 'wx', mode: isProgram ? 0o755 : 0o644 }));
    } else throw new Error(`The artifact has an entry of the kind ${type}: ${name}`);
  }
  await feeding;
  for (const link of links)
    if (!(await staysInside(folder, link))) throw new Error(`The artifact has a link out of it: ${link}`);
}
