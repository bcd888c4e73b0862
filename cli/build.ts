import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import { rolldown } from 'rolldown';

/**
 * Bundles the command line into cli/dist/postern.mjs, one file that needs nothing but Node: npm run build:cli.
 * The file appears whole or not at all, as ui/dist does.
 */
export const bundled = join(import.meta.dirname, 'dist/postern.mjs');

export default async function buildCli(): Promise<void> {
  const fresh = `${bundled}.${process.pid}`;
  const bundle = await rolldown({
    input: join(import.meta.dirname, 'src/main.ts'),
    platform: 'node',
  });
  await bundle.write({ file: fresh, format: 'esm', codeSplitting: false, minify: true });
  await rename(fresh, bundled);
}

if (import.meta.main) await buildCli();
