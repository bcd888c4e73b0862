import { posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Bind, Isolation } from '../sandbox.ts';

/** Status of the program when the SQL of a seed cannot be used. */
export const seedRefused = 3;

/** What starts the program of a database: text for a shell, its variables, and what the sandbox must have. */
export type Program = {
  readonly text: string;
  readonly env: Readonly<Record<string, string>>;
  readonly binds: readonly Bind[];
};

const root = fileURLToPath(new URL('../../../../../', import.meta.url));
const program = 'src/features/engine/local/database/program.ts';
/** In the sandbox. The folder of this installation need not be one that commands can see. */
const place = '/run/postern';
const needed = ['package.json', 'node_modules', 'src'];
/** V8 would compile a function of PGlite once more, which takes 600 MB (decision 0044). */
const flags = '--no-wasm-tier-up --no-wasm-dynamic-tiering';

export function programIn(isolation: Isolation, words: string): Program {
  const isPlain = isolation.kind === 'process';
  const env = {
    POSTERN_NODE: isPlain ? process.execPath : `${place}/node`,
    POSTERN_PROGRAM: posix.join(isPlain ? root : place, program),
  };
  const binds = [
    { source: process.execPath, place: `${place}/node` },
    ...needed.map((name) => ({ source: posix.join(root, name), place: `${place}/${name}` })),
  ];
  return { text: `exec "$POSTERN_NODE" ${flags} "$POSTERN_PROGRAM" ${words}`, env, binds };
}
