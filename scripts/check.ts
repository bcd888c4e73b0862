import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

// npm run check [-- types lint …]: runs every part, then names those that failed.
const root = join(import.meta.dirname, '..');
const parts: Record<string, string[]> = {
  types: ['typescript/bin/tsc', '-p', '.'],
  'types-ui': ['typescript/bin/tsc', '-p', 'ui'],
  lint: ['oxlint/bin/oxlint', '--type-aware'],
  format: ['@biomejs/biome/bin/biome', 'format'],
  unused: ['knip/bin/knip.js'],
  house: ['vitest/vitest.mjs', 'run', '--project', 'house'],
};

const asked = process.argv.slice(2);
const unknown = asked.filter((name) => !(name in parts));
if (unknown.length > 0) {
  console.error(
    `check: there is no part ${unknown.join(', ')}; the parts are ${Object.keys(parts).join(', ')}.`,
  );
  process.exit(2);
}

const failed: string[] = [];
for (const [name, [program = '', ...options]] of Object.entries(parts)) {
  if (asked.length > 0 && !asked.includes(name)) continue;
  const startedAt = performance.now();
  const { status } = spawnSync(process.execPath, [join(root, 'node_modules', program), ...options], {
    cwd: root,
    stdio: 'inherit',
  });
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  console.log(`check: ${name} ${status === 0 ? 'passed' : 'FAILED'} (${seconds} s)`);
  if (status !== 0) failed.push(name);
}
if (failed.length > 0) {
  console.error(`check: FAILED: ${failed.join(', ')}. One part alone: npm run check -- ${failed[0]}`);
  process.exit(1);
}
console.log('check: everything passed');
