import { copyFile, mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { type Plugin, rolldown } from 'rolldown';

/**
 * Bundles the command line into cli/dist/postern.mjs, one file that needs nothing but Node: npm run build:cli.
 * It first writes src/verbs.json, the verbs of the routes. Each file appears whole or not at all, as ui/dist does.
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

/** Parsed as JSON, the verbs take a tenth of the time that they take as JavaScript. */
const verbsAsText: Plugin = {
  name: 'verbs-as-text',
  async load(id) {
    if (!id.endsWith('/verbs.json')) return undefined;
    const text = JSON.stringify(JSON.parse(await readFile(id, 'utf8')));
    return { code: `export default JSON.parse(${JSON.stringify(text)});`, moduleType: 'js' };
  },
};

export default async function buildCli(): Promise<void> {
  const fresh = `${bundled}.${process.pid}`;
  const bundle = await rolldown({
    input: join(import.meta.dirname, 'src/main.ts'),
    platform: 'node',
    plugins: [nodeModules, verbsAsText],
  });
  const { output } = await bundle.generate({ format: 'cjs', minify: true });
  const chunks = output.filter((one) => one.type === 'chunk');
  await mkdir(dirname(fresh), { recursive: true });
  await writeFile(fresh, oneFile(chunks), { mode: 0o755 });
  await rename(fresh, bundled);
  await writeLicenses(chunks.flatMap((one) => one.moduleIds));
}

/**
 * The chunks as texts, of which Node compiles only those that a command needs: compiling all of them would take a quarter of
 * the time to start. The first is the entry.
 */
function oneFile(chunks: readonly { readonly fileName: string; readonly code: string }[]): string {
  const texts = chunks.map(
    ({ fileName, code }) => `  ${JSON.stringify(`./${fileName}`)}: ${JSON.stringify(code)},`,
  );
  return `#!/usr/bin/env node
const { compileFunction } = process.getBuiltinModule('node:vm');
const texts = {
${texts.join('\n')}
};
const loaded = new Map();
function load(name) {
  if (!Object.hasOwn(texts, name)) return process.getBuiltinModule(name);
  let module = loaded.get(name);
  if (module === undefined) {
    module = { exports: {} };
    loaded.set(name, module);
    const run = compileFunction(texts[name], ['require', 'exports', '__filename'], { filename: name });
    run(load, module.exports, import.meta.filename);
  }
  return module.exports;
}
load(${JSON.stringify(`./${chunks[0]?.fileName}`)});
`;
}

/** The licenses of what the bundle contains, for the package: the bundle has no comments. */
async function writeLicenses(modules: readonly string[]): Promise<void> {
  const folders = new Set(
    modules
      .map((id) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(id)?.[0])
      .filter((folder) => folder !== undefined),
  );
  const texts = await Promise.all(
    [...folders].toSorted().map(async (folder) => {
      const file = (await readdir(folder)).find((name) => /^licen[cs]e/i.test(name));
      if (file === undefined) throw new Error(`${folder} has no license to pass on.`);
      return `${basename(folder)}\n\n${await readFile(join(folder, file), 'utf8')}`;
    }),
  );
  await writeFile(join(import.meta.dirname, 'dist/THIRD-PARTY.txt'), texts.join('\n\n'));
  await copyFile(join(import.meta.dirname, '../LICENSE'), join(import.meta.dirname, 'dist/LICENSE'));
}

if (import.meta.main) {
  // Loads the server, which the importers of this file do not need.
  const { writeVerbs } = await import('./generate.ts');
  await writeVerbs();
  await buildCli();
}
