import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { filesOf } from '../files/folder.ts';
import { Failure, wrongUsage } from '../core/failure.ts';
import type { Io } from '../core/io.ts';
import { printable, type Result } from '../print/output.ts';
import { type Finding, findKeys } from './find-keys.ts';

/** Larger files are data rather than sources; one of them would fill the memory. */
const maxBytes = 10 * 1024 ** 2;
/** Like git: a file with a NUL byte near its start is binary. */
const binaryBytes = 8_000;

const ofGit = { ignoreFiles: ['.gitignore'], names: ['.git'] };

type File = { readonly path: string; readonly file: string };

/** `postern scan`: the keys in files and folders. @throws Failure of the code 2 */
export async function scan(paths: readonly string[], word: string, io: Io): Promise<Result> {
  if (!/^[a-z][a-z0-9]{0,15}$/.test(word))
    throw wrongUsage('--prefix must be a letter and up to 15 letters and digits, in lower case.');
  const found: (Finding & { path: string })[] = [];
  const skipped: string[] = [];
  for (const path of paths.length === 0 ? ['.'] : paths) {
    if (path === '-') {
      const text = await io.readInput();
      if (text.slice(0, binaryBytes).includes('\0')) skipped.push('stdin (binary)');
      else add('stdin', text);
      continue;
    }
    const { files, links } = await filesAt(path);
    skipped.push(...links.map((link) => `${link} (no regular file)`));
    for (const one of files) {
      const text = await textOf(one.file);
      if (typeof text === 'string') add(one.path, text);
      else skipped.push(`${one.path} (${text.skipped})`);
    }
  }

  function add(path: string, text: string): void {
    found.push(...findKeys(text, word).map((one) => ({ path, ...one })));
  }

  const lines = found.map(({ path, line, column, key, type, form }) => {
    const noun = type === 'upload' || type === 'exchanged' ? 'token' : 'key';
    return [
      `${printable(path)}:${line}:${column}`,
      `${key}…`,
      `${form === 'older' ? 'older ' : ''}${type} ${noun}`,
    ].join('\t');
  });
  return {
    data: found,
    text: lines.map((line) => `${line}\n`).join(''),
    ...(skipped.length === 0 ? {} : { hint: `Skipped: ${skipped.map(printable).join(', ')}` }),
    ...(found.length === 0 ? {} : { failure: keysFound(found.length) }),
  };
}

function keysFound(count: number): Failure {
  return new Failure('keys_found', 1, `${count === 1 ? 'A key was' : `${count} keys were`} found.`, {
    hint: 'Replace each key and revoke it: whoever has read the file can use it.',
  });
}

async function filesAt(path: string): Promise<{ files: File[]; links: string[] }> {
  const at = await stat(path).catch(() => undefined);
  if (at === undefined) throw wrongUsage(`${path} cannot be read.`);
  if (at.isFile()) return { files: [{ path, file: path }], links: [] };
  if (!at.isDirectory()) throw wrongUsage(`${path} is neither a file nor a folder.`);
  const { files, links, unreadable } = filesOf(path, ofGit);
  const named = (inside: string) => join(path, inside);
  return {
    files: files.map((one) => ({ ...one, path: named(one.path) })),
    links: [...links, ...unreadable].map(named),
  };
}

async function textOf(file: string): Promise<string | { readonly skipped: string }> {
  try {
    const { size } = await stat(file);
    if (size > maxBytes) return { skipped: 'more than 10 MiB' };
    const bytes = await readFile(file);
    if (bytes.subarray(0, binaryBytes).includes(0)) return { skipped: 'binary' };
    return bytes.toString();
  } catch {
    return { skipped: 'cannot be read' };
  }
}
