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
import { uiBudget } from './ui-budget.ts';
import { uiLists } from './ui-lists.ts';

// npm run bench [-- p1 p3 …] [--quick]: runs the benches named, or all of them, and prints one table.
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
  ui: uiBudget,
  lists: uiLists,
};

const words = process.argv.slice(2);
const quick = words.includes('--quick');
const names = words.filter((word) => !word.startsWith('--'));
const unknown = names.filter((name) => !(name in benches));
if (unknown.length > 0) {
  console.error(`bench: there is no ${unknown.join(', ')}; there are ${Object.keys(benches).join(', ')}.`);
  process.exit(2);
}

const figures: Figure[] = [];
for (const [name, bench] of Object.entries(benches)) {
  if (names.length > 0 && !names.includes(name)) continue;
  console.error(`bench: ${name} …`);
  figures.push(...(await bench({ quick })));
}
print(figures);
// A short run proves that the benches work; its figures mean nothing.
if (!quick && figures.some(({ passes }) => !passes)) process.exit(1);
