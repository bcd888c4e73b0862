import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { findPostgres } from '../../scripts/local-servers.ts';
import { isRedisMissing, type RedisServer, startRedis } from '../contract/kv-redis-server.ts';
import { type PostgresServer, startPostgres } from './postgres-server.ts';
import { freePorts, startProgram } from './program.ts';

// What each workload says when it starts, as real processes.
const bin = findPostgres();
const isMissing = process.env['CI'] !== 'true' && (bin === undefined || isRedisMissing);

describe.skipIf(isMissing)('a start', () => {
  let database: PostgresServer;
  let redis: RedisServer;
  let dataDir: string;
  beforeAll(async () => {
    if (bin === undefined) throw new Error('There is no PostgreSQL here: apt-get install postgresql');
    [database, redis] = await Promise.all([
      startPostgres(bin),
      startRedis('--maxmemory-policy', 'noeviction'),
    ]);
    dataDir = mkdtempSync(join(tmpdir(), 'postern-start-'));
  });
  afterAll(async () => {
    await Promise.all([database.stop(), redis.stop()]);
    rmSync(dataDir, { recursive: true, force: true });
  });

  // In this order: web makes the tables that a gateway reads.
  test.each([
    ['web', 1],
    ['gateway', 1],
    ['worker', 0],
  ] as const)(
    'GW-05 of %s warns of a content domain shared with the web app: %i times',
    async (workload, times) => {
      const settings = {
        SERVICE_UI_URL: 'https://postern.example.com',
        SITES_CONTENT_URL: 'https://sites.example.com',
        KV_URL: redis.url,
      };
      const installation = { dataDir, databaseUrl: database.url, ports: await freePorts(), settings };
      const program = await startProgram(installation, workload);
      onTestFinished(async () => void (await program.end('SIGTERM')));
      const warnings = program.output().match(/"msg":"[^"]*share a registrable domain/g) ?? [];
      expect(warnings).toHaveLength(times);
    },
  );
});
