import { copyFile, readdir, readFile, rename, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
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

/** Its libraries are half of the file. As a text they cost the start of other verbs nothing; as code, V8 would scan it. */
const decryption = join(import.meta.dirname, 'src/sealed/decrypt.ts');
const form = { format: 'esm', codeSplitting: false, minify: true } as const;

export default async function buildCli(): Promise<void> {
  const fresh = `${bundled}.${process.pid}`;
  const inner = await rolldown({ input: decryption, platform: 'node', plugins: [nodeModules] });
  const { output: ofInner } = await inner.generate(form);
  const decryptionAsText: Plugin = {
    name: 'decryption-as-text',
    load: (id) => (id === decryption ? asText(ofInner[0].code) : undefined),
  };
  const bundle = await rolldown({
    input: join(import.meta.dirname, 'src/main.ts'),
    platform: 'node',
    plugins: [nodeModules, decryptionAsText],
  });
  const { output } = await bundle.write({ ...form, file: fresh });
  await rename(fresh, bundled);
  await writeLicenses([...output, ...ofInner].flatMap((one) => (one.type === 'chunk' ? one.moduleIds : [])));
}

/** A module that becomes code when its function is called. */
function asText(code: string): string {
  return `const code = ${JSON.stringify(code)};
export async function decrypt(...given) {
  const address = 'data:text/javascript;base64,' + Buffer.from(code).toString('base64');
  return await (await import(address)).decrypt(...given);
}`;
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

if (import.meta.main) await buildCli();
