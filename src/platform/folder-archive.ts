import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, opendir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { PassThrough, Transform, Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createGzip } from 'node:zlib';
import { extract, pack } from 'tar-stream';

/**
 * Folders and texts in one .tar.gz, whose last entry is a manifest with the size and SHA-256 of every other entry. An
 * archive is read back exactly as written, or refused: gzip's checksum covers what no digest does, and a truncated
 * archive has no manifest. Names, owners and modes inside an archive are never trusted.
 */
export type Part = { readonly path: string; readonly size: number; readonly sha256: string | null };

export class ArchiveSpoiled extends Error {}

const manifestName = 'manifest.json';
/** Paths that this program writes: no `..`, no absolute path, no drive letter, no backslash. */
const pathShape = /^(?:[A-Za-z0-9_-][A-Za-z0-9_.-]*)(?:\/[A-Za-z0-9_-][A-Za-z0-9_.-]*)*$/;

export function writeArchive(to: Writable) {
  const tar = pack();
  const parts: Part[] = [];
  const done = pipeline(tar, createGzip({ level: 1 }), to);
  // A caller that awaits finish() or add…() gets the error. Until then it must not end the process.
  done.catch((error: Error) => tar.destroy(error));

  function entry(path: string, content: string): Promise<void> {
    return new Promise((resolve, reject) => {
      tar.entry({ name: path }, content, (error) => (error ? reject(error) : resolve()));
    });
  }

  async function addFile(path: string, from: string): Promise<Part> {
    const { size } = await stat(from);
    const sum = createHash('sha256');
    const hashing = new Transform({
      transform(chunk: Buffer, _, next) {
        sum.update(chunk);
        next(null, chunk);
      },
    });
    // Fails when the size of the file changed since it was read.
    await pipeline(createReadStream(from), hashing, tar.entry({ name: path, size }));
    const part = { path, size, sha256: sum.digest('hex') };
    parts.push(part);
    return part;
  }

  return {
    async addText(path: string, content: string): Promise<void> {
      await entry(path, content);
      const bytes = Buffer.from(content);
      parts.push({ path, size: bytes.length, sha256: createHash('sha256').update(bytes).digest('hex') });
    },
    /** Adds every entry of a folder that `takes` accepts, and empty folders too. */
    async addFolder(
      path: string,
      from: string,
      takes: (name: string) => boolean = () => true,
    ): Promise<void> {
      await new Promise<void>((resolve, reject) => {
        tar.entry({ name: `${path}/`, type: 'directory' }, (error) => (error ? reject(error) : resolve()));
      });
      parts.push({ path, size: 0, sha256: null });
      for await (const found of await opendir(from)) {
        if (!takes(found.name)) continue;
        if (found.isDirectory()) await this.addFolder(`${path}/${found.name}`, join(from, found.name));
        else if (found.isFile()) await addFile(`${path}/${found.name}`, join(from, found.name));
      }
    },
    /** Writes the manifest and ends the archive. */
    async finish(): Promise<void> {
      await entry(manifestName, JSON.stringify(parts));
      tar.finalize();
      await done;
    },
  };
}

/** Unpacks into an empty folder. @throws ArchiveSpoiled; then the contents of the folder must not be used */
export async function readArchive(file: string, into: string): Promise<readonly Part[]> {
  await checkSum(file);
  const source = createReadStream(file);
  const reader = extract();
  const found = new Map<string, Part>();
  let manifest: string | undefined;
  const feeding = pipeline(source, createGunzip(), reader);
  feeding.catch(() => undefined);
  try {
    for await (const entry of reader) {
      const { name, type, size } = entry.header;
      const path = name.replace(/\/$/, '');
      if (manifest !== undefined || !pathShape.test(path) || found.has(path))
        throw new ArchiveSpoiled(`it contains an unexpected entry: ${name}`);
      if (type === 'directory') {
        await mkdir(join(into, path), { recursive: true, mode: 0o700 });
        entry.resume();
        found.set(path, { path, size: 0, sha256: null });
      } else if (type !== 'file') {
        throw new ArchiveSpoiled(`it contains ${name}, which is not a file`);
      } else if (path === manifestName) {
        manifest = await text(entry);
      } else {
        found.set(path, { path, size, sha256: await keep(entry, join(into, path)) });
      }
    }
    await feeding;
  } catch (error) {
    source.destroy();
    // A full disk is not the archive's fault.
    if (error instanceof Error && 'syscall' in error) throw error;
    throw error instanceof ArchiveSpoiled
      ? error
      : new ArchiveSpoiled('it is truncated or changed', { cause: error });
  }
  if (manifest === undefined) throw new ArchiveSpoiled('it is truncated: its manifest is missing');
  checkParts(manifest, found);
  return [...found.values()];
}

/** Reads the file to its end before anything is written: a tar reader can finish before gzip's checksum arrives. */
async function checkSum(file: string): Promise<void> {
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  try {
    await pipeline(createReadStream(file), createGunzip(), nowhere);
  } catch (error) {
    if (error instanceof Error && 'syscall' in error) throw error;
    throw new ArchiveSpoiled('it is truncated or changed', { cause: error });
  }
}

function checkParts(manifest: string, found: ReadonlyMap<string, Part>): void {
  let wanted: Part[];
  try {
    // Compared with the entries below, field by field.
    wanted = JSON.parse(manifest) as Part[];
  } catch (error) {
    throw new ArchiveSpoiled('its manifest was changed', { cause: error });
  }
  if (!Array.isArray(wanted) || wanted.length !== found.size)
    throw new ArchiveSpoiled('parts are missing or were added');
  for (const { path, size, sha256 } of wanted) {
    const part = found.get(path);
    if (part?.size !== size || part.sha256 !== sha256)
      throw new ArchiveSpoiled(`${path} differs from the manifest`);
  }
}

async function keep(entry: AsyncIterable<unknown>, path: string): Promise<string> {
  const sum = createHash('sha256');
  const hashing = new PassThrough().on('data', (chunk: Buffer) => sum.update(chunk));
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  await pipeline(entry, hashing, createWriteStream(path, { flags: 'wx', mode: 0o600, flush: true }));
  return sum.digest('hex');
}
