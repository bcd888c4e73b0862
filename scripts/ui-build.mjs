// Checks whether ui/dist and cli/dist are up to date with their sources. Plain JavaScript for old Node versions, like run.mjs.
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** Programs that serve or test what is built; the others start without it. */
const servesUi = /^(?:src\/main\.ts|node_modules\/vitest\/|scripts\/with-postgres\.ts|bench\/)/;

export function needsUiBuild(root, program) {
  const sources = ['ui/src', 'ui/index.html', 'ui/vite.config.ts', 'ui/build.ts', 'package-lock.json'];
  return servesUi.test(program) && isStale(root, 'ui/dist/index.html', sources);
}

export function needsCliBuild(root, program) {
  const sources = ['cli/src', 'cli/build.ts', 'package-lock.json'];
  return servesUi.test(program) && isStale(root, 'cli/dist/postern.mjs', sources);
}

function isStale(root, result, sources) {
  const built = join(root, result);
  if (!existsSync(built)) return true;
  const builtAt = statSync(built).mtimeMs;
  return sources.some((name) => newest(join(root, name)) > builtAt);
}

/** Includes the folder's own time, which changes when a file is removed. */
function newest(path) {
  const found = statSync(path);
  if (!found.isDirectory()) return found.mtimeMs;
  return Math.max(found.mtimeMs, ...readdirSync(path).map((name) => newest(join(path, name))));
}
