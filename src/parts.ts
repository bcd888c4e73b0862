import { type AppParts } from './app.ts';
import type { Config } from './config.ts';
import { systemClock } from './core/clock.ts';
import { systemRandom } from './core/ids.ts';
import { memorySource, redisSource, withUnknownMarks } from './features/ratelimit/ratelimit.ts';
import { ensureDatabaseFolder, lockDataDir } from './platform/data-dir.ts';
import { openDatabase } from './platform/database/database.ts';
import { embeddedDatabase, vacuumEmbedded } from './platform/database/embedded.ts';
import { createLog, type Log } from './platform/log.ts';

/** Opens the engines the configuration names: the embedded ones, or PostgreSQL and Redis. Part of the composition root. */
export type OpenParts = AppParts & {
  /** Where the data lives, for people. Never an address with a password. */
  readonly description: string;
  pingKv(): Promise<void>;
  close(): Promise<void>;
};

/** Rows here are replaced all day. */
const busyTables = [
  'changes',
  'job_leases',
  'api_key_last_used',
  'api_key_usage',
  'api_key_counts',
  'browser_sessions',
  'login_attempts',
  'oidc_records',
];

export async function openParts(config: Config, options: { isServer: boolean }): Promise<OpenParts> {
  const log = createLog({ level: options.isServer ? config.logLevel : 'warn' });
  const shared = { clock: systemClock, random: systemRandom, log };
  const kv = config.kvUrl === null ? null : await openKv(config.kvUrl, log);
  await kv?.start();
  const local = memorySource({ clock: systemClock });
  const pingKv = async () => {
    await kv?.ping();
  };

  if (config.databaseUrl !== null) {
    const { postgresDialect } = await import('./platform/database/postgres.ts');
    const database = openDatabase(postgresDialect(config.databaseUrl, { max: 20 }));
    await database.ping();
    const lock = kv === null && options.isServer ? await lockAlone(config.databaseUrl, log) : null;
    return {
      ...shared,
      database,
      limitSource: kv === null ? withUnknownMarks(local) : redisSource({ kv }),
      isOnlyProcess: false,
      description: 'PostgreSQL',
      pingKv,
      async close() {
        await lock?.release();
        await kv?.close();
        await database.close();
      },
    };
  }

  const lock = await lockDataDir(config.dataDir);
  try {
    const folder = await ensureDatabaseFolder(config.dataDir, async (aside) => {
      const first = embeddedDatabase({ dataDir: aside });
      const database = openDatabase(first.dialect);
      await first.start();
      await database.close();
    });
    const embedded = embeddedDatabase({ dataDir: folder });
    await embedded.start();
    const database = openDatabase(embedded.dialect);
    return {
      ...shared,
      database,
      limitSource: kv === null ? local : redisSource({ kv }),
      isOnlyProcess: true,
      tidy: () => vacuumEmbedded(database, busyTables),
      description: config.dataDir,
      pingKv,
      async close() {
        await kv?.close();
        await database.close();
        lock.release();
      },
    };
  } catch (error) {
    lock.release();
    throw error;
  }
}

async function lockAlone(url: string, log: Log) {
  const { lockDatabase } = await import('./platform/database/only-process.ts');
  return await lockDatabase(url, (error) => log.error({ err: error }, 'the lock on the database was lost'));
}

/** The clients of PostgreSQL and Redis are loaded by those who use them: a start on the embedded parts does not wait. */
async function openKv(url: string, log: Log) {
  const { redisKv } = await import('./platform/kv/redis-kv.ts');
  return redisKv({ url, log });
}
