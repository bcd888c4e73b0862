import type { AppBackends } from '../app-settings.ts';
import type { GatewayBackends } from '../gateway/gateway-alone.ts';
import { ConfigError, type ConfigMistake } from '../../config/config-error.ts';
import type { Config } from '../../config/read.ts';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { hour, systemClock } from '../../core/clock.ts';
import { systemRandom } from '../../core/ids.ts';
import { memorySource, redisSource, withUnknownStamps } from '../../features/rate-limit/rate-limit.ts';
import { networkFetch } from '../../platform/fetch.ts';
import { createGuardedFetch, maxOutboundBytes } from '../../platform/guarded-fetch.ts';
import { gitIn } from '../../platform/git/git.ts';
import { createOutbound } from '../../platform/outbound.ts';
import type { FolderOptions } from '../../platform/staging-folder.ts';
import { fileBlobs } from '../../platform/blobs/file-blobs.ts';
import { databaseFacts, unavailableReasonForVersion } from '../../platform/database/facts.ts';
import { excessOf, unavailableReasonForViews } from '../../platform/database/gateway-role.ts';
import { ensureDatabaseFolder, lockDataDir } from '../../platform/data-dir.ts';
import { type Database, DatabaseUnavailable, openDatabase } from '../../platform/database/database.ts';
import { embeddedDatabase, tidyEmbedded } from '../../platform/database/embedded.ts';
import { memoryKv } from '../../platform/kv/memory-kv.ts';
import type { ObjectStore } from '../../platform/blobs/s3-blobs.ts';
import type { RedisKv } from '../../platform/kv/redis-kv.ts';
import { createLog, type Log } from '../../platform/log.ts';
import { createFreeSpaceCheck, createSpaceWatch, freeBytesIn } from '../../platform/free-space.ts';
import { temporaryFilesIn } from '../../platform/temporary-files.ts';
import { openTracing, type Tracing } from '../../platform/tracing.ts';
import type { Workload } from '../../config/names.ts';
import { openDatabaseServer } from '../environments/environment-databases.ts';
import {
  openEnvironmentEngine,
  type OpenEngine,
  requireMachine,
} from '../environments/environment-engine.ts';
import { awaited, blaming, isInUse, Unprepared } from './start-errors.ts';

/**
 * Opens the backends that the configuration names: the embedded ones, or PostgreSQL and Redis. Part of the composition
 * root.
 */
export type OpenBackends = AppBackends & {
  /** Where the data is, for people. Never an address with a password. */
  readonly description: string;
  /** Stores that were unavailable: a server starts without them and opens them later (decision 0042). */
  readonly missing: readonly MissingStore[];
  /** Bytes that the thread of the embedded database holds. Absent: the database is PostgreSQL. */
  readonly databaseBytes?: () => Promise<number>;
  pingKv(): Promise<void>;
  /** Rejects when the object store cannot be used; the files in DATA_DIR always can. */
  pingBlobs(): Promise<void>;
  close(): Promise<void>;
};

/** The stores by their names in /readyz. */
export type StoreName = 'database' | 'kv' | 'blobs';

type Store = {
  readonly name: StoreName;
  /** Connects, and checks that the store can be used. May be called again until it succeeds. @throws as openBackends() */
  open(): Promise<void>;
};

export type MissingStore = Store & {
  /** The error of the first attempt. */
  readonly found: ConfigMistake;
};

export type OpenGatewayBackends = GatewayBackends &
  Pick<OpenBackends, 'description' | 'missing' | 'pingKv' | 'pingBlobs' | 'close'>;

function openGit({ dataDir, databaseUrl, kvUrl, outbound: { allowsPrivate, caFile }, git }: Config) {
  const { allowsFiles, searchPath } = git;
  return gitIn(join(dataDir, 'git'), {
    isShared: databaseUrl !== null && kvUrl !== null,
    outbound: createOutbound({ allowsPrivate }),
    allowsFiles,
    caFile,
    searchPath,
  });
}

function openOutboundFetch({ outbound: { allowsPrivate, caFile } }: Config) {
  return createGuardedFetch({
    outbound: createOutbound({ allowsPrivate }),
    caFile,
    maxBytes: maxOutboundBytes,
  });
}

/** Tables whose rows are replaced continually. */
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
  'exchanged_tokens',
  'used_id_tokens',
  'sites',
  'site_grants',
  'owner_blobs',
  'owner_storage',
  'site_uploads',
  'build_jobs',
  'build_log_chunks',
  'environment_service_logs',
];

export type OpenOptions = {
  readonly isServer: boolean;
  /** The workload of this server; absent = all of them in this process. */
  readonly workload?: Exclude<Workload, 'gateway'>;
  /** Runs before the embedded database is opened or created. When it rejects, neither happens. */
  readonly beforeDatabase?: () => Promise<void>;
  /** Called while the embedded database opens in its thread: the time to load what else a start needs. */
  readonly onOpening?: () => void;
  /** Called before the database is created, which takes seconds. */
  readonly onFirstStart?: () => void;
};

/**
 * A server gets unavailable stores as `missing`; a command needs all stores. @throws Blamed naming the setting whose
 * engine does not open, ConfigError, DataDirInUse, DatabaseInUse
 */
export async function openBackends(config: Config, options: OpenOptions): Promise<OpenBackends> {
  const { isServer, workload = 'all' } = options;
  if (isServer) requireMachine(config.environments);
  const tracing = isServer ? openTracing(config.trustedProxies) : null;
  // A command prints its result on the standard output; log lines must not mix with it.
  const log = isServer
    ? createLog({ level: config.logLevel, more: tracing?.ids })
    : createLog({ level: 'warn', sink: process.stderr });
  const remoteKv = config.kvUrl === null ? null : await connectKv(config.kvUrl, log);
  const kv = remoteKv === null ? null : around(tracing, 'kv', remoteKv.kv);
  const local = memorySource({ clock: systemClock });
  const content = await openBlobs(config, log);
  const git = openGit(config);
  const temporaryFiles = temporaryFilesIn(join(config.dataDir, 'uploads'), uploadFolders(config));
  const engine =
    config.databaseUrl === null
      ? await openEmbeddedEngine(config, { ...options, log, tracing })
      : await openPostgresEngine(config.databaseUrl, { isAlone: isServer && kv === null, log, tracing });
  let environments: OpenEngine | null = null;
  async function close(): Promise<void> {
    await environments?.stop();
    await kv?.close();
    content.close();
    await engine.close();
  }
  try {
    if (isServer) {
      await content.prepare();
      await blaming('DATA_DIR', temporaryFiles.prepare);
      await blaming('DATA_DIR', git.prepare);
    }
    const blobs = around(tracing, 'blobs', content.blobs);
    environments = isServer
      ? await openEnvironmentEngine(config, {
          database: engine.database,
          blobs,
          clock: systemClock,
          log,
          workload,
        })
      : null;
    const stores = [engine.store, remoteKv, isServer ? content.store : null].filter((one) => one !== null);
    const missing = await openStores(stores, { isServer });
    const databaseServer = isServer ? await openDatabaseServer(config, engine.database, log) : null;
    return {
      clock: systemClock,
      random: systemRandom,
      log,
      tracing,
      kv: kv ?? memoryKv({ clock: systemClock }),
      blobs,
      temporaryFiles,
      git,
      engine: environments?.engine ?? null,
      databaseServer,
      isolation: environments?.isolation ?? null,
      outboundFetch: openOutboundFetch(config),
      ...(tracing === null || config.keycloak === null
        ? {}
        : { identityFetch: tracing.aroundCall('identity fetch', networkFetch) }),
      database: engine.database,
      limitSource:
        kv !== null ? redisSource({ kv }) : engine.isOnlyProcess ? local : withUnknownStamps(local),
      isOnlyProcess: engine.isOnlyProcess,
      ...(engine.tidy === undefined ? {} : { tidy: engine.tidy }),
      ...(engine.databaseBytes === undefined ? {} : { databaseBytes: engine.databaseBytes }),
      description: engine.description,
      missing,
      pingBlobs: content.ping,
      async pingKv() {
        await kv?.ping();
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** For a server, returns the stores that it must wait for. @throws an error that waiting cannot resolve */
async function openStores(
  stores: readonly Store[],
  { isServer }: { isServer: boolean },
): Promise<MissingStore[]> {
  const tried = await Promise.all(
    stores.map(async (store) => {
      try {
        await store.open();
        return [];
      } catch (error) {
        const found = isServer ? awaited(error) : null;
        if (found === null) throw error;
        return [{ ...store, found }];
      }
    }),
  );
  return tried.flat();
}

type Engine = Pick<
  OpenBackends,
  'database' | 'databaseBytes' | 'isOnlyProcess' | 'tidy' | 'description' | 'close'
> & {
  /** Null: already open. */
  readonly store: Store | null;
};

async function openPostgresEngine(
  url: string,
  { isAlone, log, tracing }: { isAlone: boolean; log: Log; tracing: Tracing | null },
): Promise<Engine> {
  const { postgresPool } = await import('../../platform/database/postgres.ts');
  const database = openDatabase(postgresPool(url, { max: 20 }), tracing?.statement);
  let lock: { release(): Promise<void> } | undefined;
  async function open(): Promise<void> {
    await requireVersion(database);
    if (isAlone) lock ??= await blaming('DATABASE_URL', () => lockAlone(url, log));
  }
  return {
    store: { name: 'database', open },
    database,
    isOnlyProcess: false,
    description: 'PostgreSQL',
    async close() {
      await lock?.release();
      await database.close();
    },
  };
}

async function openEmbeddedEngine(
  { dataDir }: Config,
  options: OpenOptions & { log: Log; tracing: Tracing | null },
): Promise<Engine> {
  const lock = await blaming('DATA_DIR', () => lockDataDir(dataDir));
  try {
    await options.beforeDatabase?.();
    const { database, databaseBytes } = await blaming('DATA_DIR', () => openEmbedded(dataDir, options));
    return {
      store: null,
      database,
      databaseBytes,
      isOnlyProcess: true,
      tidy: () => tidyEmbedded(database, busyTables),
      description: dataDir,
      async close() {
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
 * The backends of a standalone gateway: a read-only database, through the views made for it, the key-value store, and the
 * blobs of sites. @throws Blamed or ConfigError naming the setting whose engine does not open
 */
export async function openGatewayBackends(config: Config): Promise<OpenGatewayBackends> {
  const tracing = openTracing(config.trustedProxies);
  const log = createLog({ level: config.logLevel, more: tracing?.ids });
  const { databaseUrl, kvUrl } = config;
  // readConfig() refuses a single workload without them.
  if (databaseUrl === null || kvUrl === null) throw new Error('A gateway needs DATABASE_URL and KV_URL.');
  const remoteKv = await connectKv(kvUrl, log);
  const kv = around(tracing, 'kv', remoteKv.kv);
  const { postgresPool } = await import('../../platform/database/postgres.ts');
  const database = openDatabase(
    postgresPool(databaseUrl, { max: 10, readsOnly: 'gateway' }),
    tracing?.statement,
  );
  async function openViews(): Promise<void> {
    await requireVersion(database);
    const unavailableReason = await blaming('DATABASE_URL', () => unavailableReasonForViews(database));
    if (unavailableReason !== null) throw new Unprepared({ setting: 'DATABASE_URL', ...unavailableReason });
    const excess = await blaming('DATABASE_URL', () => excessOf(database));
    if (excess !== null)
      log.warn({ excess }, 'the role in DATABASE_URL has privileges that a gateway does not need');
  }
  const content = await openBlobs(config, log);
  await content.prepareToRead();
  const stores = [{ name: 'database', open: openViews } as const, remoteKv, content.storeToRead];
  return {
    clock: systemClock,
    random: systemRandom,
    log,
    tracing,
    database,
    kv,
    blobs: around(tracing, 'blobs', content.blobs),
    description: 'PostgreSQL, read only',
    missing: await openStores(
      stores.filter((one) => one !== null),
      { isServer: true },
    ),
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

/** Uploads stop long before the embedded database on the same disk must stop writing, so that a key can still be revoked. */
const uploadReserveBytes = 256 * 1024 ** 2;

/** A single process opens the embedded database, or serves PostgreSQL without a key-value store. */
function uploadFolders({ databaseUrl, kvUrl, dataDir }: Config): FolderOptions {
  if (databaseUrl !== null) return { isShared: kvUrl !== null };
  const watch = createSpaceWatch({
    freeBytes: () => freeBytesIn(dataDir),
    minBytes: uploadReserveBytes,
    now: () => performance.now(),
    onChange: () => undefined,
  });
  return { isShared: false, requireFreeSpace: createFreeSpaceCheck(watch) };
}

/**
 * `prepare` is for a process that writes: it affects DATA_DIR only, and removes uploads that an earlier process did not
 * finish. `store` is the object store, null for files in DATA_DIR. Both have a variant for a process that only reads.
 */
async function openBlobs(config: Config, log: Log) {
  const { objectStore, objectCacheBytes, dataDir } = config;
  const nothing = async () => undefined;
  if (objectStore === null) {
    const files = fileBlobs(join(dataDir, 'blobs'), uploadFolders(config));
    const prepare = () => blaming('DATA_DIR', files.prepare);
    return {
      blobs: files,
      prepare,
      prepareToRead: nothing,
      store: null,
      storeToRead: null,
      ping: nothing,
      close: () => undefined,
    };
  }
  const { cachedBlobs } = await import('../../platform/blobs/cached-blobs.ts');
  const home = join(dataDir, 'object-store');
  const store = await openStoreAlone(objectStore, dataDir, uploadFolders(config));
  const folder = join(home, 'fetched');
  const blobs = cachedBlobs(store, { folder, maxBytes: objectCacheBytes, log });
  const storeWith = (first: () => Promise<void>): Store => ({
    name: 'blobs',
    open: () => blaming('OBJECT_STORE_URL', first),
  });
  const prepareToRead = () =>
    blaming('DATA_DIR', async () => {
      await mkdir(home, { recursive: true, mode: 0o700 });
      await blobs.prepare();
    });
  return {
    blobs,
    async prepare() {
      await prepareToRead();
      await blaming('DATA_DIR', store.prepare);
    },
    prepareToRead,
    store: storeWith(store.begin),
    storeToRead: storeWith(store.ping),
    ping: store.ping,
    close: store.close,
  };
}

/**
 * Only the database, unchanged: no migrations, and no lock against other processes of a PostgreSQL. @throws as
 * openBackends()
 */
export async function openDatabaseAlone(config: Config): Promise<Pick<Engine, 'database' | 'close'>> {
  if (config.databaseUrl === null)
    return await openEmbeddedEngine(config, {
      isServer: false,
      log: createLog({ level: 'silent' }),
      tracing: null,
    });
  const { postgresPool } = await import('../../platform/database/postgres.ts');
  const database = openDatabase(postgresPool(config.databaseUrl, { max: 1 }));
  return { database, close: () => database.close() };
}

/** A migration may build an index over millions of rows, and may have to wait for another process that migrates. */
const migrationMs = hour;

/** The database for migrations: PostgreSQL with a longer time limit, or the embedded database that is already open. */
export async function openForMigration({ databaseUrl }: Config, embedded: Database) {
  if (databaseUrl === null) return { database: embedded, close: async () => undefined };
  const { postgresPool } = await import('../../platform/database/postgres.ts');
  const database = openDatabase(postgresPool(databaseUrl, { max: 1, statementMs: migrationMs }));
  return { database, close: () => database.close() };
}

/** Only the object store, without the local cache. */
export async function openStoreAlone(
  objectStore: ObjectStore,
  dataDir: string,
  { isShared = true }: FolderOptions = {},
) {
  const { s3Blobs } = await import('../../platform/blobs/s3-blobs.ts');
  const folder = join(dataDir, 'object-store', 'outgoing');
  return s3Blobs(objectStore, { folder, isShared, clock: systemClock });
}

/** @throws Blamed, or ConfigError when the server is too old */
async function requireVersion(database: Database): Promise<void> {
  const facts = await blaming('DATABASE_URL', () => databaseFacts(database));
  const unavailableReason = unavailableReasonForVersion(facts);
  if (unavailableReason !== null) throw new ConfigError([{ setting: 'DATABASE_URL', ...unavailableReason }]);
}

async function openEmbedded(
  dataDir: string,
  {
    log,
    onFirstStart,
    onOpening,
    tracing,
  }: Pick<OpenOptions, 'onFirstStart' | 'onOpening'> & { log: Log; tracing: Tracing | null },
) {
  const folder = await ensureDatabaseFolder(dataDir, async (staging) => {
    onFirstStart?.();
    const { createEmbeddedFolder } = await import('../../platform/database/embedded-folder.ts');
    await createEmbeddedFolder(staging);
  });
  const embedded = embeddedDatabase({
    dataDir: folder,
    onSpace(isLow, freeBytes) {
      const told = { dataDir, freeBytes };
      if (isLow) log.error(told, 'the disk is nearly full: Postern refuses changes until space is free');
      else log.warn(told, 'the disk has free space again: Postern accepts changes');
    },
  });
  const opening = embedded.start();
  onOpening?.();
  await opening;
  return {
    database: openDatabase(embedded.pool, tracing?.statement),
    databaseBytes: embedded.threadBytes,
  };
}

async function lockAlone(url: string, log: Log) {
  const { lockDatabase } = await import('../../platform/database/only-process.ts');
  try {
    return await lockDatabase(url, (error) => log.error({ err: error }, 'the lock on the database was lost'));
  } catch (error) {
    // The server responded a moment ago, so this is a lost connection.
    throw isInUse(error) ? error : new DatabaseUnavailable('No connection to the server.', { cause: error });
  }
}

/** Connects or fails; does not keep retrying. For commands. @throws Blamed */
export async function openKv(url: string, log: Log): Promise<RedisKv> {
  const { kv, open } = await connectKv(url, log);
  try {
    await open();
    return kv;
  } catch (error) {
    // Otherwise the client would keep retrying.
    await kv.close();
    throw error;
  }
}

/** Loads the client of Redis only when it is used, so that a start on the embedded backends is faster. */
async function connectKv(url: string, log: Log): Promise<Store & { readonly kv: RedisKv }> {
  const { redisKv } = await import('../../platform/kv/redis-kv.ts');
  // Before the first connection the log stays silent: the caller that waits for the store reports its state.
  let isOpen = false;
  const kv = redisKv({
    url,
    log: {
      debug: (fields, message) => log.debug(fields, message),
      info: (fields, message) => void (isOpen && log.info(fields, message)),
      warn: (fields, message) => void (isOpen && log.warn(fields, message)),
      error: (fields, message) => log.error(fields, message),
    },
  });
  const open = () =>
    blaming('KV_URL', async () => {
      await kv.start();
      isOpen = true;
    });
  return { kv, name: 'kv', open };
}
