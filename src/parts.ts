import type { AppParts } from './app.ts';
import type { GatewayAloneParts } from './app-gateway-alone.ts';
import { type Config, ConfigError } from './config.ts';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { hour, systemClock } from './core/clock.ts';
import { systemRandom } from './core/ids.ts';
import { memorySource, redisSource, withUnknownMarks } from './features/ratelimit/ratelimit.ts';
import { overNetwork } from './features/identity/keycloak/over-network.ts';
import type { FolderOptions } from './platform/aside-folder.ts';
import { fileBlobs } from './platform/blobs/file-blobs.ts';
import { databaseFacts, type Obstacle, obstacleToVersion } from './platform/database/facts.ts';
import { excessOf, obstacleToViews } from './platform/database/gateway-role.ts';
import { ensureDatabaseFolder, lockDataDir } from './platform/data-dir.ts';
import { type Database, openDatabase } from './platform/database/database.ts';
import { embeddedDatabase, vacuumEmbedded } from './platform/database/embedded.ts';
import { memoryKv } from './platform/kv/memory-kv.ts';
import type { ObjectStore } from './platform/blobs/s3-blobs.ts';
import type { RedisKv } from './platform/kv/redis-kv.ts';
import { createLog, type Log } from './platform/log.ts';
import { createRoomCheck, createSpaceWatch, freeBytesIn } from './platform/free-space.ts';
import { fileSpool } from './platform/spool.ts';
import { openTracing, type Tracing } from './platform/tracing.ts';
import { Blamed, blaming } from './start-errors.ts';

/** Opens the engines the configuration names: the embedded ones, or PostgreSQL and Redis. Part of the composition root. */
export type OpenParts = AppParts & {
  /** Where the data lives, for people. Never an address with a password. */
  readonly description: string;
  pingKv(): Promise<void>;
  /** Rejects when the object store cannot be used; the files in DATA_DIR always can. */
  pingBlobs(): Promise<void>;
  close(): Promise<void>;
};

export type OpenGatewayParts = GatewayAloneParts &
  Pick<OpenParts, 'description' | 'pingKv' | 'pingBlobs' | 'close'>;

/** Rows here are replaced all day. */
const busyTables = [
  'changes',
  'job_leases',
  'api_key_last_used',
  'api_key_usage',
  'api_key_counts',
  'api_key_usage_totals',
  'audit_counts',
  'browser_sessions',
  'login_attempts',
  'oidc_records',
  'sites',
  'site_grants',
  'owner_blobs',
  'owner_storage',
  'site_uploads',
];

export type OpenOptions = {
  readonly isServer: boolean;
  /** Told before the database is made, which takes seconds. */
  readonly onFirstStart?: () => void;
};

/** @throws Blamed naming the setting whose engine does not open, DataDirInUse, DatabaseInUse */
export async function openParts(config: Config, options: OpenOptions): Promise<OpenParts> {
  const tracing = options.isServer ? openTracing(config.trustedProxies) : null;
  // What a command answers goes to the standard output; its log must not come between.
  const log = options.isServer
    ? createLog({ level: config.logLevel, more: tracing?.ids })
    : createLog({ level: 'warn', sink: process.stderr });
  const kv = config.kvUrl === null ? null : around(tracing, 'kv', await openKv(config.kvUrl, log));
  const local = memorySource({ clock: systemClock });
  const content = await openBlobs(config, log);
  const spool = fileSpool(join(config.dataDir, 'uploads'), uploadFolders(config));
  const shared = {
    clock: systemClock,
    random: systemRandom,
    log,
    tracing,
    kv: kv ?? memoryKv({ clock: systemClock }),
    blobs: around(tracing, 'blobs', content.blobs),
    spool,
    ...(tracing === null || config.keycloak === null
      ? {}
      : { identityFetch: tracing.aroundCall('identity fetch', overNetwork) }),
    pingBlobs: content.ping,
    async pingKv() {
      await kv?.ping();
    },
  };
  const prepare = async () => {
    await content.prepare();
    await blaming('DATA_DIR', spool.prepare);
  };

  const url = config.databaseUrl;
  if (url !== null) {
    const { postgresDialect } = await import('./platform/database/postgres.ts');
    const database = openDatabase(postgresDialect(url, { max: 20 }), tracing?.statement);
    const lock = await blaming('DATABASE_URL', async () => {
      refuse('DATABASE_URL', obstacleToVersion(await databaseFacts(database)));
      return kv === null && options.isServer ? await lockAlone(url, log) : null;
    });
    if (options.isServer) await prepare();
    return {
      ...shared,
      database,
      limitSource: kv === null ? withUnknownMarks(local) : redisSource({ kv }),
      isOnlyProcess: false,
      description: 'PostgreSQL',
      async close() {
        await lock?.release();
        await kv?.close();
        content.close();
        await database.close();
      },
    };
  }

  const lock = await blaming('DATA_DIR', () => lockDataDir(config.dataDir));
  try {
    const database = await blaming('DATA_DIR', () =>
      openEmbedded(config.dataDir, { ...options, log, tracing }),
    );
    if (options.isServer) await prepare();
    return {
      ...shared,
      database,
      limitSource: kv === null ? local : redisSource({ kv }),
      isOnlyProcess: true,
      tidy: () => vacuumEmbedded(database, busyTables),
      description: config.dataDir,
      async close() {
        await kv?.close();
        content.close();
        await database.close();
        lock.release();
      },
    };
  } catch (error) {
    lock.release();
    throw error;
  }
}

/**
 * What a gateway on its own stands on: a database it only reads, through the views made for it, the key-value store, and
 * the bytes of sites. @throws Blamed naming the setting whose engine does not open
 */
export async function openGatewayParts(config: Config): Promise<OpenGatewayParts> {
  const tracing = openTracing(config.trustedProxies);
  const log = createLog({ level: config.logLevel, more: tracing?.ids });
  const { databaseUrl, kvUrl } = config;
  // readConfig() refuses a single workload without them.
  if (databaseUrl === null || kvUrl === null) throw new Error('A gateway needs DATABASE_URL and KV_URL.');
  const kv = around(tracing, 'kv', await openKv(kvUrl, log));
  const { postgresDialect } = await import('./platform/database/postgres.ts');
  const database = openDatabase(
    postgresDialect(databaseUrl, { max: 10, readsOnly: 'gateway' }),
    tracing?.statement,
  );
  const ask = async () =>
    obstacleToVersion(await databaseFacts(database)) ?? (await obstacleToViews(database));
  refuse('DATABASE_URL', await blaming('DATABASE_URL', ask));
  const excess = await excessOf(database);
  if (excess !== null) log.warn({ excess }, 'the role in DATABASE_URL reaches what a gateway does not need');
  const content = await openBlobs(config, log);
  await content.prepareToRead();
  return {
    clock: systemClock,
    random: systemRandom,
    log,
    tracing,
    database,
    kv,
    blobs: around(tracing, 'blobs', content.blobs),
    description: 'PostgreSQL, read only',
    pingKv: () => kv.ping(),
    pingBlobs: content.ping,
    async close() {
      await kv.close();
      content.close();
      await database.close();
    },
  };
}

function around<Part extends object>(tracing: Tracing | null, name: string, part: Part): Part {
  return tracing === null ? part : tracing.around(name, part);
}

/** Uploads stop long before the embedded database on the same disk has to: then a key can still be revoked. */
const uploadReserveBytes = 256 * 1024 ** 2;

/** Only one process opens the embedded database, or serves PostgreSQL without a key-value store. */
function uploadFolders({ databaseUrl, kvUrl, dataDir }: Config): FolderOptions {
  if (databaseUrl !== null) return { isShared: kvUrl !== null };
  const watch = createSpaceWatch({
    freeBytes: () => freeBytesIn(dataDir),
    leastBytes: uploadReserveBytes,
    now: () => performance.now(),
    onChange: () => undefined,
  });
  return { isShared: false, requireRoom: createRoomCheck(watch) };
}

/** `prepare` is for who writes, and removes what an earlier process was still receiving. */
async function openBlobs(config: Config, log: Log) {
  const { objectStore, objectCacheBytes, dataDir } = config;
  const nothing = async () => undefined;
  if (objectStore === null) {
    const files = fileBlobs(join(dataDir, 'blobs'), uploadFolders(config));
    const prepare = () => blaming('DATA_DIR', files.prepare);
    return { blobs: files, prepare, prepareToRead: nothing, ping: nothing, close: () => undefined };
  }
  const { cachedBlobs } = await import('./platform/blobs/cached-blobs.ts');
  const home = join(dataDir, 'object-store');
  const store = await openStoreAlone(objectStore, dataDir);
  const folder = join(home, 'fetched');
  const blobs = cachedBlobs(store, { folder, mostBytes: objectCacheBytes, log });
  const prepareWith = (first: () => Promise<void>) => async () => {
    await blaming('DATA_DIR', async () => void (await mkdir(home, { recursive: true, mode: 0o700 })));
    await blaming('OBJECT_STORE_URL', first);
    await blaming('DATA_DIR', blobs.prepare);
  };
  return {
    blobs,
    prepare: prepareWith(store.prepare),
    prepareToRead: prepareWith(store.ping),
    ping: store.ping,
    close: store.close,
  };
}

/** The database alone, as it is: no steps, no lock against other processes of a PostgreSQL. @throws as openParts() */
export async function openDatabaseAlone({ databaseUrl, dataDir }: Config) {
  if (databaseUrl !== null) {
    const { postgresDialect } = await import('./platform/database/postgres.ts');
    const database = openDatabase(postgresDialect(databaseUrl, { max: 1 }));
    return { database, close: () => database.close() };
  }
  const lock = await blaming('DATA_DIR', () => lockDataDir(dataDir));
  try {
    const database = await blaming('DATA_DIR', () =>
      openEmbedded(dataDir, { log: createLog({ level: 'silent' }), tracing: null }),
    );
    async function close(): Promise<void> {
      await database.close();
      lock.release();
    }
    return { database, close };
  } catch (error) {
    lock.release();
    throw error;
  }
}

/** A step may build an index over millions of rows, and another process may be at it already. */
const migrationMs = hour;

/** For steps of the schema: PostgreSQL with time for them; the embedded database is the one that is open. */
export async function openForMigration({ databaseUrl }: Config, embedded: Database) {
  if (databaseUrl === null) return { database: embedded, close: async () => undefined };
  const { postgresDialect } = await import('./platform/database/postgres.ts');
  const database = openDatabase(postgresDialect(databaseUrl, { max: 1, statementMs: migrationMs }));
  return { database, close: () => database.close() };
}

/** The object store alone, without the folder of what was fetched. */
export async function openStoreAlone(objectStore: ObjectStore, dataDir: string) {
  const { s3Blobs } = await import('./platform/blobs/s3-blobs.ts');
  return s3Blobs(objectStore, { folder: join(dataDir, 'object-store', 'outgoing'), clock: systemClock });
}

/** @throws ConfigError when there is an obstacle */
function refuse(setting: string, obstacle: Obstacle | null): void {
  if (obstacle !== null) throw new ConfigError([{ setting, ...obstacle }]);
}

async function openEmbedded(
  dataDir: string,
  { log, onFirstStart, tracing }: Pick<OpenOptions, 'onFirstStart'> & { log: Log; tracing: Tracing | null },
) {
  const folder = await ensureDatabaseFolder(dataDir, async (aside) => {
    onFirstStart?.();
    const first = embeddedDatabase({ dataDir: aside });
    const database = openDatabase(first.dialect);
    await first.start();
    await database.close();
  });
  const embedded = embeddedDatabase({
    dataDir: folder,
    onSpace(isLow, freeBytes) {
      const told = { dataDir, freeBytes };
      if (isLow) log.error(told, 'the disk is nearly full: until there is room, nothing is changed');
      else log.warn(told, 'there is room on the disk again');
    },
  });
  await embedded.start();
  return openDatabase(embedded.dialect, tracing?.statement);
}

async function lockAlone(url: string, log: Log) {
  const { lockDatabase } = await import('./platform/database/only-process.ts');
  return await lockDatabase(url, (error) => log.error({ err: error }, 'the lock on the database was lost'));
}

/** The clients of PostgreSQL and Redis are loaded by those who use them: a start on the embedded parts does not wait. */
export async function openKv(url: string, log: Log) {
  const { redisKv } = await import('./platform/kv/redis-kv.ts');
  // While it connects, the client tells the log why it cannot; start() only says that there was no answer in time.
  let reason: unknown;
  let isOpen = false;
  const listening: Log = {
    debug: (fields, message) => log.debug(fields, message),
    info: (fields, message) => log.info(fields, message),
    warn(fields, message) {
      if (isOpen) log.warn(fields, message);
      else if ('err' in fields) reason ??= fields.err;
    },
    error: (fields, message) => log.error(fields, message),
  };
  let kv: RedisKv | undefined;
  try {
    kv = redisKv({ url, log: listening });
    await kv.start();
    isOpen = true;
    return kv;
  } catch (error) {
    // Otherwise it would go on trying.
    await kv?.close();
    throw new Blamed('KV_URL', reason ?? error);
  }
}
