import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Browser } from '../faults/browser.ts';
import { createDice } from '../faults/ledger.ts';
import { administrator, freePorts, runCommand, startAndKill, startProgram } from '../faults/program.ts';
import { exchangeThroughKills } from './exchanges.ts';
import {
  cleanUpThroughKills,
  cycles,
  isCi,
  liveManyTimes,
  patienceMs,
  publishThroughKills,
  seed,
} from './kills.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'postern-kill-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test(
  `FT-01 FT-02 ${cycles} kills while keys are created, rotated and revoked lose nothing that was acknowledged`,
  async () => {
    const installation = { dataDir: join(folder, 'kills'), ports: await freePorts() };
    const { acknowledged, problems } = await liveManyTimes(installation, cycles, () => 'SIGKILL');
    expect(problems).toEqual([]);
    expect(acknowledged).toBeGreaterThan(cycles);
  },
  patienceMs,
);

test(
  `FT-01 ${cycles} kills while sites are published, replaced and deleted leave the old or the new version whole`,
  async () => {
    const installation = { dataDir: join(folder, 'sites'), ports: await freePorts() };
    const { acknowledged, problems } = await publishThroughKills(installation);
    expect(problems).toEqual([]);
    expect(acknowledged).toBeGreaterThan(cycles);
  },
  patienceMs,
);

test(
  `FT-01 FE-08 ${cycles} kills while ID tokens are exchanged leave each exchange complete or not done`,
  async () => {
    const installation = { dataDir: join(folder, 'exchanges'), ports: await freePorts() };
    const { acknowledged, problems } = await exchangeThroughKills(installation);
    expect(problems).toEqual([]);
    expect(acknowledged).toBeGreaterThan(cycles);
  },
  patienceMs,
);

const cleanUps = isCi ? 4 : 2;
test(
  `FT-01 UP-05 ${cleanUps} kills inside the clean-up lose no needed content, and the next one leaves no unneeded content`,
  async () => {
    const installation = { dataDir: join(folder, 'clean-up'), ports: await freePorts() };
    const { cut, problems } = await cleanUpThroughKills(installation, cleanUps);
    expect(problems).toEqual([]);
    expect(cut).toBeGreaterThan(0);
  },
  patienceMs,
);

test('FT-12 data survives any order of kills and orderly stops, twenty times', async () => {
  const installation = { dataDir: join(folder, 'mixed'), ports: await freePorts() };
  const times = isCi ? 20 : Math.min(cycles, 20);
  const { problems } = await liveManyTimes(installation, times, (cycle) =>
    cycle % 2 === 0 ? 'SIGTERM' : 'SIGKILL',
  );
  expect(problems).toEqual([]);
});

test('FT-12 a first start that is killed at any moment leaves a folder that starts', async () => {
  const dice = createDice(seed);
  for (let round = 0; round < (isCi ? 5 : 1); round += 1) {
    const installation = { dataDir: join(folder, `first-${round}`), ports: await freePorts() };
    for (let kill = 0; kill < 4; kill += 1) await startAndKill(installation, wait(100 + dice.below(3_000)));
    const program = await startProgram(installation);
    const browser = new Browser(program.origin);
    await browser.signIn(administrator.email, administrator.password);
    expect((await browser.api('GET', '/me/tokens')).status).toBe(200);
    browser.disconnect();
    expect((await program.end('SIGTERM')).code).toBe(0);
    expect((await runCommand(installation, ['audit', 'verify'])).code).toBe(0);
  }
});

test('FT-12 a second process on the same folder names the first and refuses; the first goes on', async () => {
  const dataDir = join(folder, 'shared');
  const first = { dataDir, ports: await freePorts() };
  const program = await startProgram(first);
  const second = { dataDir, ports: await freePorts() };
  for (const args of [[], ['migrate'], ['audit', 'verify']]) {
    const refused = await runCommand(second, args);
    expect(refused.code).toBe(1);
    expect(refused.output).toContain(`${dataDir} is in use by process ${program.pid}`);
    expect(refused.output).toContain('DATA_DIR');
  }
  const browser = new Browser(program.origin);
  await browser.signIn(administrator.email, administrator.password);
  browser.disconnect();
  await program.end('SIGKILL');
  // The lock of an ended process belongs to no one.
  await (await startProgram(second)).end('SIGTERM');
});
