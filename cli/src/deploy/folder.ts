import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readdir, readFile, realpath, stat } from 'node:fs/promises';
import { isAbsolute, join, relative, resolve, sep } from 'node:path';
import ignore from 'ignore';
import { wrongUsage } from '../failure.ts';
import type { Io } from '../io.ts';

/** A file to publish. `path` has slashes and starts in the published folder. */
export type LocalFile = { readonly path: string; readonly file: string; readonly size: number };
export type HashedFile = LocalFile & { readonly sha256: string };

/** Where site generators put their output. */
const usualNames = ['dist', 'build', 'out', 'public', '_site'];
const ignoreFiles = ['.gitignore', '.posternignore'];
/** For Postern, other hosts and git; nobody means to publish them. */
const ownFiles = ['.git', 'postern.site.json', 'netlify.toml', 'vercel.json', ...ignoreFiles];

/** Names of the files whose rules leave something out, and what is left out without a rule. */
type Leaving = { readonly ignoreFiles: readonly string[]; readonly names: readonly string[] };
const ofDeploy: Leaving = { ignoreFiles, names: ownFiles };
/** Files whose content is read at the same time. */
const filesAtOnce = 8;

/**
 * The given folder, or the one of `named` (postern.yaml), or the one with a usual name. A folder that nobody typed must lie
 * in the working folder: a link in a repository could lead to private files. @throws Failure of the code 2
 */
export async function outputFolder(
  given: string | undefined,
  { cwd, named }: { readonly cwd: string; readonly named: readonly string[] },
  io: Pick<Io, 'canAsk' | 'ask'>,
): Promise<string> {
  if (given !== undefined) {
    const folder = resolve(cwd, given);
    if (!(await isFolder(folder))) throw wrongUsage('DIR is not a folder.');
    return folder;
  }
  const names = named.length === 0 ? usualNames : named;
  const found: string[] = [];
  for (const name of names) if (await isFolderInside(cwd, name)) found.push(name);
  const [first, ...others] = found;
  const hint = 'Name it: postern deploy DIR';
  if (first === undefined)
    throw wrongUsage(
      named.length === 0
        ? `There is no folder ${usualNames.join(', ')} here.`
        : `postern.yaml names the folder ${named.join(', ')}, which is not here.`,
      named.length === 0 ? hint : `Build it first, or name another. ${hint}`,
    );
  if (others.length === 0) return resolve(cwd, first);
  if (!io.canAsk) throw wrongUsage(`There are several output folders: ${found.join(', ')}.`, hint);
  const answer = (await io.ask(`Which folder? ${found.join(', ')}: `)).trim();
  if (!found.includes(answer)) throw wrongUsage('This is none of the folders.', hint);
  return resolve(cwd, answer);
}

async function isFolderInside(cwd: string, name: string): Promise<boolean> {
  const folder = join(cwd, name);
  if (!(await isFolder(folder))) return false;
  const way = relative(await realpath(cwd), await realpath(folder));
  return way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}

async function isFolder(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isDirectory() ?? false;
}

/** The files of the folder, without what the ignore files in it leave out, and without links, which could lead elsewhere. */
export async function filesOf(
  folder: string,
  leaving: Leaving = ofDeploy,
): Promise<{ files: LocalFile[]; links: string[] }> {
  const files: LocalFile[] = [];
  const links: string[] = [];

  async function visit(
    inside: string,
    rules: readonly { base: string; rule: ReturnType<typeof ignore> }[],
  ): Promise<void> {
    const own = { base: inside, rule: ignore() };
    for (const name of leaving.ignoreFiles)
      own.rule.add(await readFile(join(inside, name), 'utf8').catch(() => ''));
    const all = [...rules, own];
    const entries = await readdir(inside, { withFileTypes: true });
    for (const entry of entries.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
      const file = join(inside, entry.name);
      const suffix = entry.isDirectory() ? '/' : '';
      if (leaving.names.includes(entry.name)) continue;
      if (all.some(({ base, rule }) => rule.ignores(slashes(relative(base, file)) + suffix))) continue;
      if (entry.isDirectory()) await visit(file, all);
      else if (entry.isFile())
        files.push({ path: slashes(relative(folder, file)), file, size: (await stat(file)).size });
      else links.push(slashes(relative(folder, file)));
    }
  }

  await visit(folder, []);
  return { files, links };
}

function slashes(path: string): string {
  return path.split(sep).join('/');
}

/** With the SHA-256 of each; `size` is what was read. */
export async function hashed(files: readonly LocalFile[]): Promise<HashedFile[]> {
  const results: HashedFile[] = [];
  let next = 0;
  const work = async () => {
    for (let at = next++; at < files.length; at = next++) {
      const one = files[at];
      if (one !== undefined) results[at] = await hashOf(one);
    }
  };
  await Promise.all(Array.from({ length: filesAtOnce }, work));
  return results;
}

async function hashOf(one: LocalFile): Promise<HashedFile> {
  const hash = createHash('sha256');
  let size = 0;
  for await (const part of createReadStream(one.file)) {
    hash.update(part);
    size += part.length;
  }
  return { ...one, size, sha256: hash.digest('hex') };
}
