import { readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { build } from 'vite';
import './api-types.ts';

// Builds the web app into ui/dist, after api-types.ts has written the generated sources. npm run build:ui; npm start does
// it when something changed.
// Beside each file lie its compressed forms, made once here. The folder appears whole or not at all: a server that
// starts meanwhile, or a second build, never meets half of one.
const dist = join(import.meta.dirname, 'dist');
const fresh = `${dist}.${process.pid}`;
const old = `${fresh}.old`;

await build({
  configFile: join(import.meta.dirname, 'vite.config.ts'),
  logLevel: 'warn',
  build: { outDir: fresh },
});
await compressAll(join(fresh, 'assets'));
await rename(dist, old).catch(() => undefined);
await rename(fresh, dist);
await rm(old, { recursive: true, force: true });

async function compressAll(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    const bytes = await readFile(join(folder, name));
    const params = { [constants.BROTLI_PARAM_QUALITY]: 10, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length };
    await writeFile(join(folder, `${name}.br`), await promisify(brotliCompress)(bytes, { params }));
    await writeFile(join(folder, `${name}.gz`), await promisify(gzip)(bytes, { level: 9 }));
  }
}
