import { stat } from 'node:fs/promises';
import { Failure } from '../core/failure.ts';
import type { Io } from '../core/io.ts';
import type { Result } from '../print/output.ts';
import { filesOf } from '../files/folder.ts';

/** Milliseconds between two reads of the folder. It is not watched: a build may remove it and make it again. */
const everyMs = 500;

/** Changes with the files to publish; undefined = there is none, as during a build. */
export async function fingerprintOf(folder: string): Promise<string | undefined> {
  try {
    const { files } = filesOf(folder);
    const parts = files.map(async ({ path, file, size }) => [path, size, (await stat(file)).mtimeMs]);
    return files.length === 0 ? undefined : JSON.stringify(await Promise.all(parts));
  } catch {
    // A file or the folder was removed while it was read.
    return undefined;
  }
}

/** Publishes now and after each change, once the folder has stayed the same for a moment. @throws Failure */
export async function* onEachChange(
  look: () => Promise<string | undefined>,
  publish: () => Promise<Result>,
  io: Pick<Io, 'err' | 'wait'>,
): AsyncGenerator<Result | Failure> {
  for (;;) {
    // Before, so that what changes during the publish is published next.
    const published = await look();
    yield await publish().catch((error: unknown) => {
      if (error instanceof Failure && mayPass(error)) return error;
      throw error;
    });
    io.err('Waiting for changes.\n');
    for (let last = published; ; ) {
      await io.wait(everyMs);
      const seen = await look();
      if (seen !== undefined && seen !== published && seen === last) break;
      last = seen;
    }
  }
}

/** Another content or another moment can succeed; another command line, site or credential is needed for the rest. */
function mayPass({ exitCode }: Failure): boolean {
  return exitCode === 1 || exitCode >= 5;
}
