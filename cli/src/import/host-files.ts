import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import type { LocalFile } from '../files/folder.ts';
import { wrongUsage } from '../core/failure.ts';
import type { HostFile, Untranslated } from './host-rules.ts';
import { fromNetlify } from './netlify.ts';
import { fromVercel } from './vercel.ts';

export const hostReaders: Readonly<Record<string, (text: string) => HostFile>> = {
  'netlify.toml': fromNetlify,
  'vercel.json': fromVercel,
};

/** What the files of other hosts say about a folder that is published. */
export type OfHosts = {
  /** Their names. */
  readonly names: readonly string[];
  readonly spa: boolean;
  readonly untranslated: readonly Untranslated[];
  /** The lines to add to a file of the site: name → lines. */
  readonly lines: Readonly<Record<string, readonly string[]>>;
};

/** netlify.toml and vercel.json in the folder or next to it, unless they are about another folder. @throws Failure of the code 2 */
export async function ofOtherHosts(folder: string): Promise<OfHosts> {
  const found: { name: string; file: HostFile }[] = [];
  for (const [name, read] of Object.entries(hostReaders)) {
    for (const place of [folder, dirname(folder)]) {
      const text = await readFile(join(place, name), 'utf8').catch(() => undefined);
      if (text === undefined) continue;
      const file = parsed(name, text, read);
      const { directory = '.', output } = file.build;
      if (output === undefined || resolve(place, directory, output) === folder) found.push({ name, file });
      break;
    }
  }
  const all = found.map(({ file }) => file);
  return {
    names: found.map(({ name }) => name),
    spa: all.some(({ spa }) => spa),
    untranslated: all.flatMap(({ untranslated }) => untranslated),
    lines: { _redirects: all.flatMap((one) => one.redirects), _headers: all.flatMap((one) => one.headers) },
  };
}

function parsed(name: string, text: string, read: (text: string) => HostFile): HostFile {
  try {
    return read(text);
  } catch (error) {
    const reason = error instanceof Error ? error.message.split('\n')[0] : '';
    throw wrongUsage(`${name} cannot be read: ${reason}`);
  }
}

/**
 * The files with the lines added behind the site's own, which come first, so that they win. What is added lies in a
 * temporary folder until `remove`.
 */
export async function withLines(
  files: readonly LocalFile[],
  lines: OfHosts['lines'],
): Promise<{ files: LocalFile[]; remove(): Promise<void> }> {
  const added = Object.entries(lines).filter(([, some]) => some.length > 0);
  if (added.length === 0) return { files: [...files], remove: async () => undefined };
  const folder = await mkdtemp(join(tmpdir(), 'postern-'));
  const made = await Promise.all(
    added.map(async ([path, some]) => {
      const own = files.find((one) => one.path === path);
      const text = own === undefined ? '' : `${await readFile(own.file, 'utf8')}\n`;
      const file = join(folder, path);
      await writeFile(file, `${text}${some.join('\n')}\n`);
      return { path, file, size: (await stat(file)).size };
    }),
  );
  return {
    files: [...files.filter(({ path }) => !made.some((one) => one.path === path)), ...made],
    remove: async () => await rm(folder, { recursive: true, force: true }),
  };
}

export function untranslatedText(name: string, untranslated: readonly Untranslated[]): string {
  if (untranslated.length === 0) return '';
  const lines = untranslated.map(({ where, why }) => `  ${where}: ${why}`);
  return [`Not translated, or to be checked, in ${name}:`, ...lines].join('\n');
}
