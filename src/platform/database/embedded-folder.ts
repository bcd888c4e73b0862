import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { dataDir } from '@electric-sql/pglite-prepopulatedfs';
import { extract } from 'tar-stream';

/**
 * Creates an empty embedded database in `folder`, which is empty or does not exist, from the archive that PGlite publishes:
 * what its initdb would write, without the seconds and the 600 MB of memory that initdb needs (decision 0044).
 */
export async function createEmbeddedFolder(folder: string): Promise<void> {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const archive = await dataDir();
  const reader = extract();
  const reading = pipeline(Readable.fromWeb(archive.stream()), createGunzip(), reader);
  // The await below gets the failure. Until then the rejection must not end the process.
  reading.catch(() => undefined);
  for await (const entry of reader) {
    const { name, type } = entry.header;
    const path = join(folder, name);
    if (type === 'directory') {
      mkdirSync(path, { recursive: true, mode: 0o700 });
      entry.resume();
    } else {
      // A thousand small files: the thread pool would take three times as long.
      writeFileSync(path, await buffer(entry), { flag: 'wx', mode: 0o600 });
    }
  }
  await reading;
}
