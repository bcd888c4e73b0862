import { createHash } from 'node:crypto';
import { closeSync, openSync, readdirSync, readFileSync, readSync, statSync } from 'node:fs';
import { realpath, stat } from 'node:fs/promises';
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
const bytesAtOnce = 1024 * 1024;

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

/**
 * The files of the folder, without what the ignore files in it leave out, and without links, which could lead elsewhere.
 * It asks the disk for one thing after the other: with thousands of small files, promises take ten times as long as the disk.
 */
export function filesOf(
  folder: string,
  leaving: Leaving = ofDeploy,
): { files: LocalFile[]; links: string[] } {
  const files: LocalFile[] = [];
  const links: string[] = [];

  function visit(inside: string, above: string, rules: readonly Rules[]): void {
    const entries = readdirSync(inside, { withFileTypes: true });
    // One set of rules for the folder: .posternignore may publish again what .gitignore leaves out.
    const own = ignore();
    const present = leaving.ignoreFiles.filter((name) => entries.some((entry) => entry.name === name));
    for (const name of present) own.add(textIn(join(inside, name)));
    const all = present.length === 0 ? rules : [...rules, { above, rule: own }];
    for (const entry of entries.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
      const path = `${above}${entry.name}`;
      const suffix = entry.isDirectory() ? '/' : '';
      if (leaving.names.includes(entry.name)) continue;
      if (all.some(({ above: base, rule }) => rule.ignores(path.slice(base.length) + suffix))) continue;
      const file = join(inside, entry.name);
      if (entry.isDirectory()) visit(file, `${path}/`, all);
      else if (entry.isFile()) files.push({ path, file, size: statSync(file).size });
      else links.push(path);
    }
  }

  visit(folder, '', []);
  return { files, links };
}

/** Empty for what is no file, such as a folder or a link to nowhere. */
function textIn(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

/** Of the ignore files of a folder; `above`: that folder, as the paths of files begin. */
type Rules = { readonly above: string; readonly rule: ReturnType<typeof ignore> };

/** With the SHA-256 of each; `size` is what was read. One buffer serves all, and no promise is made: see filesOf(). */
export function hashed(files: readonly LocalFile[]): HashedFile[] {
  const buffer = Buffer.allocUnsafeSlow(bytesAtOnce);
  return files.map((one) => {
    const hash = createHash('sha256');
    const descriptor = openSync(one.file, 'r');
    let size = 0;
    try {
      for (let read = readSync(descriptor, buffer); read > 0; read = readSync(descriptor, buffer)) {
        hash.update(buffer.subarray(0, read));
        size += read;
      }
    } finally {
      closeSync(descriptor);
    }
    return { ...one, size, sha256: hash.digest('hex') };
  });
}
