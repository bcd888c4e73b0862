import { rename } from 'node:fs/promises';
import { join } from 'node:path';
import { type Plugin, rolldown } from 'rolldown';

/**
 * Bundles the command line into cli/dist/postern.mjs, one file that needs nothing but Node: npm run build:cli.
 * The file appears whole or not at all, as ui/dist does.
 */
export const bundled = join(import.meta.dirname, 'dist/postern.mjs');

/**
 * Imports of Node's modules would move to the top of the file, also those of verbs that are loaded when they run; most of
 * the time to start would be theirs.
 */
const nodeModules: Plugin = {
  name: 'node-modules-when-needed',
  resolveId(id, importer = '') {
    // commander loads it for programs that are commands, of which there are none.
    if (id === 'node:child_process' && importer.includes('commander')) return '\0nothing';
    return id.startsWith('node:') ? `\0${id}` : undefined;
  },
  async load(id) {
    if (id === '\0nothing') return 'export default {};';
    if (!id.startsWith('\0node:')) return undefined;
    const name = id.slice(1);
    const names = Object.keys(await import(name)).filter((one) => /^(?!default$)\w+$/.test(one));
    return `const module = process.getBuiltinModule('${name}');
export default module;
${names.map((one) => `export const ${one} = /* @__PURE__ */ (() => module.${one})();`).join('\n')}`;
  },
};

export default async function buildCli(): Promise<void> {
  const fresh = `${bundled}.${process.pid}`;
  const bundle = await rolldown({
    input: join(import.meta.dirname, 'src/main.ts'),
    platform: 'node',
    plugins: [nodeModules],
  });
  await bundle.write({ file: fresh, format: 'esm', codeSplitting: false, minify: true });
  await rename(fresh, bundled);
}

if (import.meta.main) await buildCli();
