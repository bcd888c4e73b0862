import { access, mkdir, realpath, writeFile } from 'node:fs/promises';
import { dirname, join, sep } from 'node:path';
import { Failure } from '../core/failure.ts';
import type { Result } from '../print/output.ts';

type File = { readonly path: string; readonly content: string };

/** Writes the files of a result into the folder: all of them, or none when one exists. @throws Failure */
export async function writeFiles(result: Result, folder: string): Promise<Result> {
  // The route that this verb calls answers with this shape.
  const { files } = result.data as { readonly files: readonly File[] };
  for (const { path } of files) requireInside(path);
  const present: string[] = [];
  for (const { path } of files) if (await exists(join(folder, path))) present.push(path);
  if (present.length > 0)
    throw new Failure(
      'file_exists',
      6,
      `${folder} already contains ${present.join(', ')}. Nothing was written.`,
      {
        hint: 'Without --write, the command prints the files. Merge them by hand.',
      },
    );
  await mkdir(folder, { recursive: true });
  const root = await realpath(folder);
  for (const { path } of files)
    if (!(await leadsInto(root, dirname(join(folder, path))))) throw outside(path);
  for (const { path, content } of files) {
    const place = join(folder, path);
    await mkdir(dirname(place), { recursive: true });
    await writeFile(place, content, { flag: 'wx' });
  }
  return { ...result, text: files.map(({ path }) => `${path}\n`).join('') };
}

/** The paths come from a server. @throws Failure */
function requireInside(path: string): void {
  const isOutside = path === '' || /^[/\\]|^[a-z]:|(?:^|[/\\])\.\.(?:[/\\]|$)/i.test(path);
  // What is in .git can be a program that git runs.
  if (isOutside || /(?:^|[/\\])\.git(?:[/\\]|$)|\p{Cc}/iu.test(path)) throw outside(path);
}

function outside(path: string): Failure {
  return new Failure(
    'failed',
    1,
    `The server named a file that Postern does not write: ${JSON.stringify(path)}.`,
  );
}

/** Whether the folders of this path that exist are inside of `root`, also when one is a link. */
async function leadsInto(root: string, folder: string): Promise<boolean> {
  let present = folder;
  while (!(await exists(present))) present = dirname(present);
  const own = await realpath(present);
  return own === root || own.startsWith(`${root}${sep}`);
}

async function exists(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  );
}
