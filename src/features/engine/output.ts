import { createReadStream } from 'node:fs';
import { lstat, readdir, readlink, realpath } from 'node:fs/promises';
import { join, posix } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { pack } from 'tar-stream';
import type { Blobs } from '../../platform/blobs/blobs.ts';
import { staysInside } from '../../platform/links.ts';
import type { Artifact, BuildFailure, BuildJob } from './contract.ts';
import { maxNames } from './tree.ts';

type Problem = Omit<BuildFailure, 'lastLines'>;
type Entry = { readonly name: string } & (
  | { readonly kind: 'directory' }
  | { readonly kind: 'link'; readonly to: string }
  | { readonly kind: 'file'; readonly size: number; readonly isProgram: boolean }
);
type Output = { readonly kind: 'found'; readonly folder: string; readonly entries: readonly Entry[] };

/** Maximum output of a build. `outputFiles` includes folders. */
export const maxOutput = { outputFiles: 200_000, bytes: 10 * 1024 ** 3 } as const;

/** The folder `path` in `root`. Undefined: it does not exist, or a link leads out of `root`. */
async function folderIn(root: string, path: string): Promise<string | undefined> {
  if (!(await staysInside(root, path))) return undefined;
  const folder = await realpath(join(root, path)).catch(() => undefined);
  return folder !== undefined && (await lstat(folder)).isDirectory() ? folder : undefined;
}

/** Folder in which the command of a build runs. `root`: folder of the inputs. */
export async function directoryIn(
  root: string,
  { directory }: Pick<BuildJob, 'directory'>,
): Promise<string | Problem> {
  const folder = await folderIn(root, directory);
  if (folder !== undefined) return folder;
  return {
    kind: 'failed',
    reason: 'no_directory',
    message: `The inputs of the build have no folder ${directory}.`,
    fix: 'Correct build.directory, or add the folder to build.inputs.',
  };
}

/** Folder of the output after the command has ended. */
export async function outputIn(
  root: string,
  { directory, output }: Pick<BuildJob, 'directory' | 'output'>,
): Promise<string | Problem> {
  const folder = await folderIn(root, posix.join(directory, output));
  if (folder !== undefined) return folder;
  return {
    kind: 'failed',
    reason: 'no_output',
    message: `The build made no folder ${output} in ${directory}.`,
    fix: 'Set build.output to the folder that the command makes.',
  };
}

/** Reads the output of a build. Every process of the build has ended, so nothing changes meanwhile. */
export async function findOutput(
  folder: string,
  { outputFiles, nameChars = maxNames }: { readonly outputFiles: number; readonly nameChars?: number },
): Promise<Output | Problem> {
  const entries: Entry[] = [];
  let names = 0;
  const ahead = [''];
  for (let at = ahead.shift(); at !== undefined; at = ahead.shift()) {
    // A fixed order, so that the same files give the same tar.
    for (const base of (await readdir(join(folder, at))).toSorted()) {
      const name = join(at, base);
      // Node decodes bytes that are not UTF-8 to this character.
      if (base.includes('\ufffd')) return unsafe(name, 'has a name that is not UTF-8');
      if (entries.length >= outputFiles) return tooLarge(`more than ${outputFiles} files`);
      names += name.length;
      if (names > nameChars) return tooLarge(namesTooLong(nameChars));
      const found = await lstat(join(folder, name));
      if (found.isDirectory()) {
        entries.push({ kind: 'directory', name });
        ahead.push(name);
      } else if (found.isSymbolicLink()) {
        if (!(await staysInside(folder, name))) return unsafe(name, 'is a link that leads out of the output');
        const to = await readlink(join(folder, name));
        names += to.length;
        if (names > nameChars) return tooLarge(namesTooLong(nameChars));
        entries.push({ kind: 'link', name, to });
      } else if (found.isFile())
        entries.push({ kind: 'file', name, size: found.size, isProgram: (found.mode & 0o111) !== 0 });
      else return unsafe(name, 'is neither a file, a folder nor a link');
    }
  }
  return { kind: 'found', folder, entries };
}

const namesTooLong = (chars: number) =>
  `names of files and links with more than ${chars} characters together`;

function tooLarge(problem: string): Problem {
  return {
    kind: 'failed',
    reason: 'output_too_large',
    message: `The output has ${problem}.`,
    fix: 'Set build.output to the folder with the result alone.',
  };
}

function unsafe(name: string, problem: string): Problem {
  return {
    kind: 'failed',
    reason: 'unsafe_output',
    message: `${name} in the output ${problem}.`,
    fix: 'Remove it at the end of the build, or put a copy of the file in its place.',
  };
}

export async function storeOutput(
  { folder, entries }: Output,
  blobs: Pick<Blobs, 'write'>,
): Promise<Artifact> {
  const tar = pack();
  // `stored` rejects with this error. Without a listener, it would end the process.
  tar.on('error', () => undefined);
  const compressed = tar.pipe(createGzip());
  const stored = blobs.write(compressed);
  // Awaited below. Until then it must not end the process.
  stored.catch((error: unknown) => tar.destroy(error instanceof Error ? error : undefined));
  try {
    for (const entry of entries) await add(entry);
    tar.finalize();
  } catch (error) {
    compressed.destroy(error instanceof Error ? error : undefined);
    await stored;
    throw error;
  }
  const files = entries.filter(({ kind }) => kind !== 'directory').length;
  const bytes = entries.reduce((sum, entry) => sum + (entry.kind === 'file' ? entry.size : 0), 0);
  return { ...(await stored), files, bytes };

  async function add(entry: Entry): Promise<void> {
    const { name } = entry;
    const always = { name, mtime: new Date(0), uid: 0, gid: 0 };
    if (entry.kind === 'file') {
      const mode = entry.isProgram ? 0o755 : 0o644;
      const place = tar.entry({ ...always, mode, size: entry.size });
      await pipeline(createReadStream(join(folder, name)), place);
    } else
      await new Promise<void>((resolve, reject) => {
        const header =
          entry.kind === 'link'
            ? { ...always, type: 'symlink' as const, linkname: entry.to, mode: 0o777 }
            : { ...always, name: `${name}/`, type: 'directory' as const, mode: 0o755 };
        tar.entry(header, (error) => (error ? reject(error) : resolve()));
      });
  }
}
