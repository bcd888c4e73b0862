// Checks whether ui/dist is up to date with its sources. Plain JavaScript for old Node versions, like run.mjs.
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** Programs that serve or test the web app; the others start without it. */
const servesUi = /^(?:src\/main\.ts|node_modules\/vitest\/|scripts\/with-postgres\.ts|bench\/)/;

export function needsUiBuild(root, program) {
  if (!servesUi.test(program)) return false;
  const built = join(root, 'ui', 'dist', 'index.html');
  if (!existsSync(built)) return true;
  const builtAt = statSync(built).mtimeMs;
  const sources = ['ui/src', 'ui/index.html', 'ui/vite.config.ts', 'ui/build.ts', 'package-lock.json'];
  return sources.some((name) => newest(join(root, name)) > builtAt);
}

/** Includes the folder's own time, which changes when a file is removed. */
function newest(path) {
  const found = statSync(path);
  if (!found.isDirectory()) return found.mtimeMs;
  return Math.max(found.mtimeMs, ...readdirSync(path).map((name) => newest(join(path, name))));
}
