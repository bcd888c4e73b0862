import { createWriteStream } from 'node:fs';
import { mkdir, symlink } from 'node:fs/promises';
import { join, posix } from 'node:path';
import { type Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setImmediate } from 'node:timers/promises';
import { createGunzip } from 'node:zlib';
import { extract } from 'tar-stream';
import { leadsInside } from '../../platform/links.ts';

/** `outputFiles` includes links and folders. `bytes`: size of the uncompressed tar. */
export type TreeLimits = { readonly outputFiles: number; readonly bytes: number };

/** The tar does not have the form that storeOutput() writes, or exceeds a limit. The message is a sentence for people. */
export class WrongTree extends Error {
  readonly reason: 'unsafe_output' | 'output_too_large';
  constructor(message: string, reason: WrongTree['reason'] = 'unsafe_output') {
    super(message);
    this.reason = reason;
  }
}

export type TreeEntry = { readonly path: string } & (
  | { readonly kind: 'directory' }
  | { readonly kind: 'link'; readonly to: string }
  | {
      readonly kind: 'file';
      readonly isProgram: boolean;
      /** Bytes of the file. */
      readonly size: number;
      /** Unread content is skipped when the next entry is requested. */
      readonly content: AsyncIterable<unknown>;
    }
);

/** Maximum path length of Linux: a longer path could not be unpacked. */
const maxPath = 4_096;
/** Maximum characters of all names and link targets together, so that they fit into memory. */
export const maxNames = 64 * 1024 * 1024;
/** Maximum steps along all links together. A tree with more is meant to keep its reader busy. */
const maxLinkSteps = 500_000;
/** Steps after which the event loop gets a turn. */
const stepsAtOnce = 1_000;

/**
 * Reads an untrusted compressed tar. It checks that the folder of an entry comes before it and that no two entries have the same
 * path. Links are checked after the last entry. Throws WrongTree, and the errors of `source` and of its readers.
 */
export async function* entriesOf(source: Readable, limits: TreeLimits): AsyncGenerator<TreeEntry> {
  const reader = extract();
  // The loop below gets errors. It completes only after gzip has verified the whole content.
  pipeline(source, createGunzip(), atMost(limits.bytes), reader).catch(() => undefined);
  const known = new Map<string, TreeEntry['kind']>([['.', 'directory']]);
  const links = new Map<string, string>();
  let names = 0;
  try {
    for await (const entry of reader) {
      const { name, type, mode, size, linkname } = entry.header;
      const to = linkname ?? '';
      const path = name.replace(/\/$/, '');
      names += path.length + to.length;
      if (known.size > limits.outputFiles)
        throw new WrongTree(`The archive has more than ${limits.outputFiles} files.`, 'output_too_large');
      if (names > maxNames) throw new WrongTree('The names in the archive are too long.', 'output_too_large');
      if (!isPlain(path) || known.get(posix.dirname(path)) !== 'directory' || known.has(path))
        throw new WrongTree(`The archive has an unexpected entry: ${shown(name)}.`);
      if (type === 'directory') yield { kind: type, path };
      else if (type === 'symlink' && to.length <= maxPath) {
        links.set(path, to);
        yield { kind: 'link', path, to };
      } else if (type === 'file')
        yield { kind: type, path, isProgram: ((mode ?? 0) & 0o111) !== 0, size, content: entry };
      else throw new WrongTree(`The archive has an entry of the kind ${type}: ${shown(name)}.`);
      known.set(path, type === 'symlink' ? 'link' : type);
      entry.resume();
    }
  } finally {
    // Bytes behind the end of the archive are never read.
    source.destroy();
  }
  await requireInside(links);
}

function isPlain(path: string): boolean {
  return path === posix.normalize(path) && path !== '..' && path.length <= maxPath && !path.includes('\0');
}

const shown = (name: string) => name.slice(0, 200);

async function requireInside(links: ReadonlyMap<string, string>): Promise<void> {
  let steps = 0;
  const targetOf = async (place: string) => {
    steps += 1;
    if (steps > maxLinkSteps) throw new WrongTree('The archive has too many links.', 'output_too_large');
    if (steps % stepsAtOnce === 0) await setImmediate();
    return links.get(place);
  };
  for (const link of links.keys())
    if (!(await leadsInside(link, targetOf)))
      throw new WrongTree(`The archive has a link that leads out of it: ${shown(link)}.`);
}

/** Fails after this many bytes. */
function atMost(bytes: number): Transform {
  let left = bytes;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      left -= chunk.length;
      if (left >= 0) done(null, chunk);
      else done(new WrongTree(`The archive unpacks to more than ${bytes} bytes.`, 'output_too_large'));
    },
  });
}

const unlimited: TreeLimits = { outputFiles: Number.POSITIVE_INFINITY, bytes: Number.POSITIVE_INFINITY };

/** Unpacks a tar into an empty folder. When it throws an error of entriesOf(), nothing in the folder may be used. */
export async function unpackTree(source: Readable, folder: string): Promise<void> {
  for await (const entry of entriesOf(source, unlimited)) {
    const at = join(folder, entry.path);
    if (entry.kind === 'directory') await mkdir(at, { mode: 0o755 });
    else if (entry.kind === 'link') await symlink(entry.to, at);
    else {
      // Never writes through a link or over another entry (open(2), O_EXCL).
      const mode = entry.isProgram ? 0o755 : 0o644;
      await pipeline(entry.content, createWriteStream(at, { flags: 'wx', mode }));
    }
  }
}
