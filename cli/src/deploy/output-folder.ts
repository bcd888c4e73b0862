import { realpath, stat } from 'node:fs/promises';
import { isAbsolute, join, relative, resolve, sep } from 'node:path';
import { type Failure, wrongUsage } from '../core/failure.ts';
import type { Io } from '../core/io.ts';

/** Where site generators put their output. */
const usualNames = ['dist', 'build', 'out', 'public', '_site'];

/**
 * The given folder, or the one of `named` (postern.yaml), or the one with a usual name. A folder that the user did not type
 * must lie in the working folder: a link in a repository could lead to private files. @throws Failure of the code 2
 */
export async function outputFolder(
  given: string | undefined,
  { cwd, named }: { readonly cwd: string; readonly named: readonly string[] },
  io: Pick<Io, 'canAsk' | 'ask'>,
): Promise<string> {
  if (given !== undefined) {
    const folder = resolve(cwd, given);
    if (!(await isFolder(folder))) throw await notAFolder(given, folder);
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

async function notAFolder(given: string, path: string): Promise<Failure> {
  const isFile = (await stat(path).catch(() => undefined))?.isFile() ?? false;
  if (!isFile) return wrongUsage(`${given} is not a folder.`);
  const isSent = /\.(?:zip|tar\.gz|tgz|html?)$/i.test(given);
  return wrongUsage(
    `${given} is a file, and postern deploy publishes folders.`,
    isSent
      ? `Publish the file itself: postern sites create --file ${given}, or to a site that exists: postern sites publish ID --file ${given}`
      : 'Name the folder that has it: postern deploy DIR',
  );
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
