import { posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Bind, Isolation } from '../sandbox.ts';

/** Exit status when the SQL of a seed cannot be used. */
export const seedRefused = 3;

/** How to start the program of a database: a shell command, its variables, and the mounts of the sandbox. */
export type Program = {
  readonly text: string;
  readonly env: Readonly<Record<string, string>>;
  readonly binds: readonly Bind[];
};

const root = fileURLToPath(new URL('../../../../../', import.meta.url));
const program = 'src/features/engine/local/database/program.ts';
/** Path in the sandbox, from which this installation's own folder may not be visible. */
const place = '/run/postern';
const needed = ['package.json', 'node_modules', 'src'];
/** Otherwise V8 would compile a function of PGlite a second time, which takes 600 MB (decision 0044). */
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
