import { access, mkdir, realpath, writeFile } from 'node:fs/promises';
import { dirname, join, sep } from 'node:path';
import { Failure } from './failure.ts';
import type { Result } from './output.ts';

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
  for (const { path, content } of files) {
    const place = join(folder, path);
    await mkdir(dirname(place), { recursive: true });
    const [root, own] = [await realpath(folder), await realpath(dirname(place))];
    if (own !== root && !own.startsWith(`${root}${sep}`)) throw outside(path);
    await writeFile(place, content, { flag: 'wx' });
  }
  return { ...result, text: files.map(({ path }) => `${path}\n`).join('') };
}

/** The paths come from a server. */
function requireInside(path: string): void {
  if (path === '' || /^[/\\]|^[a-z]:|(?:^|[/\\])\.\.(?:[/\\]|$)/i.test(path)) throw outside(path);
}

function outside(path: string): Failure {
  return new Failure('failed', 1, `The server named a file outside of the folder: ${JSON.stringify(path)}.`);
}

async function exists(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  );
}
