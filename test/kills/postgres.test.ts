import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findPostgres } from '../../scripts/local-servers.ts';
import { createDatabase, type PostgresServer, startPostgres } from '../faults/postgres-server.ts';
import { freePorts, type Installation } from '../faults/program.ts';
import { exchangeThroughKills } from './exchanges.ts';
import { cycles, isCi, liveManyTimes, patienceMs, publishThroughKills } from './kills.ts';

let folder: string;
let postgres: PostgresServer | undefined;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'postern-kill-'));
  const bin = findPostgres();
  if (bin !== undefined) postgres = await startPostgres(bin);
  else if (isCi) throw new Error('There is no PostgreSQL here: apt-get install postgresql');
});
afterAll(async () => {
  await postgres?.stop();
  rmSync(folder, { recursive: true, force: true });
});

describe.skipIf(!isCi && findPostgres() === undefined)('PostgreSQL', () => {
  /** Each has a separate database, so that one test's sites are not in the other's audit log. */
  async function installationOn(name: string): Promise<Installation> {
    // Started above, or these tests are skipped.
    const url = new URL(postgres?.url ?? '');
    await createDatabase(url.href, name);
    url.pathname = `/${name}`;
    return { dataDir: join(folder, name), ports: await freePorts(), databaseUrl: url.href };
  }

  test(
    `FT-01 FT-02 ${cycles} kills while keys are created, rotated and revoked lose nothing that was acknowledged`,
    async () => {
      const installation = await installationOn('killed_keys');
      const { acknowledged, problems } = await liveManyTimes(installation, cycles, () => 'SIGKILL');
      expect(problems).toEqual([]);
      expect(acknowledged).toBeGreaterThan(cycles);
    },
    patienceMs,
  );

  test(
    `FT-01 ${cycles} kills while sites are published, replaced and deleted leave the old or the new version whole`,
    async () => {
      const { acknowledged, problems } = await publishThroughKills(await installationOn('killed_sites'));
      expect(problems).toEqual([]);
      expect(acknowledged).toBeGreaterThan(cycles);
    },
    patienceMs,
  );

  test(
    `FT-01 FE-08 ${cycles} kills while ID tokens are exchanged leave each exchange complete or not done`,
    async () => {
      const { acknowledged, problems } = await exchangeThroughKills(await installationOn('killed_exchanges'));
      expect(problems).toEqual([]);
      expect(acknowledged).toBeGreaterThan(cycles);
    },
    patienceMs,
  );
});
