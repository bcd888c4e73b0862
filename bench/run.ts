import { spawnSync } from 'node:child_process';
import { cpus, loadavg, release, tmpdir, type } from 'node:os';
import { type Bench, type Figure, print } from './figures.ts';
import { keyRequest } from './p1-key-request.ts';
import { verification } from './p2-verification.ts';
import { garbage } from './p3-garbage.ts';
import { publicAsset } from './p4-public-asset.ts';
import { publish } from './p7-publish.ts';
import { redeploy } from './p8-redeploy.ts';
import { privateAsset } from './p5-private-asset.ts';
import { growth } from './p9-growth.ts';
import { start } from './p10-start.ts';
import { apart } from './p11-apart.ts';
import { idleServices } from './p13-idle-services.ts';
import { memory } from './p14-memory.ts';
import { pauses } from './p15-pauses.ts';
import { pipelining } from './r7-pipelining.ts';
import { deploy } from './e1-deploy.ts';
import { throughGateway } from './e2-proxy.ts';
import { environmentsGrowth } from './e3-environments.ts';
import { logReaders } from './e4-log-readers.ts';
import { push } from './e5-push.ts';
import { wake } from './e6-wake.ts';
import { agents } from './m1-agents.ts';
import { exchange } from './k1-exchange.ts';
import { commandLine } from './c1-command-line.ts';
import { uiBudget } from './ui-budget.ts';
import { uiLists } from './ui-lists.ts';

// npm run bench [-- p1 p3 …] [--quick]: runs the named benches, or all of them, and prints one table.
const benches: Record<string, Bench> = {
  p1: keyRequest,
  p2: verification,
  p3: garbage,
  p4: publicAsset,
  p5: privateAsset,
  p7: publish,
  p8: redeploy,
  p9: growth,
  p10: start,
  p11: apart,
  p13: idleServices,
  p14: memory,
  p15: pauses,
  r7: pipelining,
  e1: deploy,
  e2: throughGateway,
  e3: environmentsGrowth,
  e4: logReaders,
  e5: push,
  e6: wake,
  k1: exchange,
  c1: commandLine,
  m1: agents,
  ui: uiBudget,
  lists: uiLists,
};

const words = process.argv.slice(2);
const quick = words.includes('--quick');
// The promises are written in capitals.
const names = words.filter((word) => !word.startsWith('--')).map((word) => word.toLowerCase());
const unknown = names.filter((name) => !(name in benches));
if (unknown.length > 0) {
  console.error(`bench: there is no ${unknown.join(', ')}; there are ${Object.keys(benches).join(', ')}.`);
  process.exit(2);
}

// Figures are recorded with the machine: P4 alone differs by a factor of two between machines.
const [processor] = cpus();
console.log(
  `${processor?.model ?? 'unknown processor'} (${cpus().length}), ${type()} ${release()}, ${fileSystemOf(tmpdir())}, ` +
    `Node ${process.versions.node}, load average ${loadavg()[0]?.toFixed(1)} at the start`,
);

const figures: Figure[] = [];
const failed: string[] = [];
for (const [name, bench] of Object.entries(benches)) {
  if (names.length > 0 && !names.includes(name)) continue;
  console.error(`bench: ${name} …`);
  try {
    figures.push(...(await bench({ quick })));
  } catch (error) {
    // The others take an hour: one that fails must not lose their figures.
    console.error(`bench: ${name} failed:`, error);
    failed.push(name);
  }
}
print(figures);
if (failed.length > 0) console.log(`Failed, without figures: ${failed.join(', ')}`);
/** The type of the file system of `folder`, as GNU coreutils' `stat` names it. */
function fileSystemOf(folder: string): string {
  const { stdout } = spawnSync('stat', ['--file-system', '--format=%T', folder], { encoding: 'utf8' });
  return stdout?.trim() || 'unknown file system';
}

// A short run only tests the benches; its figures mean nothing.
// Not process.exit(): it would cut off a table that is read through a pipe.
if (failed.length > 0 || (!quick && figures.some(({ passes }) => !passes))) process.exitCode = 1;
