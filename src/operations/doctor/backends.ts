import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import type { Workload } from '../../config/names.ts';
import { day, systemClock } from '../../core/clock.ts';
import { systemRandom } from '../../core/ids.ts';
import { advice, failed, type Finding, findingOf, ok, type Patient, unknown } from './finding.ts';
import { signInReader } from '../../features/audit/sign-ins.ts';
import { createEncryption } from '../../platform/encryption.ts';
import { canDecryptSigningKeys } from '../../features/oidc-provider/signing-keys.ts';
import { encryptedTables } from '../../composition/encrypted-tables.ts';
import { identityStores } from '../../composition/identity/identity-stores.ts';
import { createReencryption } from '../../platform/reencryption.ts';
import { openDatabaseAlone, openKv, openStoreAlone } from '../../composition/backends/backends.ts';
import { hasDatabase } from '../../platform/data-dir.ts';
import type { Database } from '../../platform/database/database.ts';
import { sql } from '../../platform/database/sql.ts';
import { databaseFacts, unavailableReasonForVersion } from '../../platform/database/facts.ts';
import { excessOf, unavailableReasonForViews } from '../../platform/database/gateway-role.ts';
import { compareMigrations } from '../../platform/database/migrate.ts';
import { createServerClock, maxOffMs } from '../../platform/database/server-clock.ts';
import { createLog } from '../../platform/log.ts';
import { lazyStores } from '../../platform/database/stores.ts';
import { blaming } from '../../composition/backends/start-errors.ts';

/** Checks of the backends: database, key-value store, object store, and the identity provider's keys in the database. */
type Asked = Patient & { readonly workload: Workload };

const log = createLog({ level: 'silent' });

export async function checkDatabase(asked: Asked): Promise<Finding[]> {
  const { config, holder } = asked;
  if (config.databaseUrl === null && holder !== undefined) return [await askServer(asked, holder.pid)];
  if (config.databaseUrl === null && !hasDatabase(config.dataDir))
    return [ok('database', `there is no database in ${config.dataDir} yet; the first start creates it`)];
  try {
    const { database, close } = await openDatabaseAlone(config);
    try {
      return await blaming(config.databaseUrl === null ? 'DATA_DIR' : 'DATABASE_URL', () =>
        examineDatabase(database, asked),
      );
    } finally {
      await close();
    }
  } catch (error) {
    return [findingOf('database', error)];
  }
}

/** The running server has the embedded database open, so its /readyz is the source. */
async function askServer({ config, world }: Asked, pid: number): Promise<Finding> {
  const host = ['0.0.0.0', '::'].includes(config.host) ? '127.0.0.1' : config.host;
  const rest = 'stop the server to check its contents';
  try {
    const { status } = await world.get(`http://${host}:${config.metricsPort}/readyz`);
    if (status === 200) return unknown('database', `process ${pid} uses it and is ready; ${rest}`);
    return failed(
      'database',
      `process ${pid} uses it and is not ready (${status})`,
      'Read its log, and the response of its /readyz.',
    );
  } catch {
    // Also for a server that is just starting.
    return unknown('database', `process ${pid} uses it and does not respond at METRICS_PORT; ${rest}`);
  }
}

async function examineDatabase(database: Database, { config, world, workload }: Asked): Promise<Finding[]> {
  const facts = await databaseFacts(database);
  const unavailableReason = unavailableReasonForVersion(facts);
  if (unavailableReason !== null)
    return [failed('database.version', unavailableReason.problem, unavailableReason.fix)];
  const findings = [
    ok('database.version', `PostgreSQL ${facts.version}${config.databaseUrl === null ? ', embedded' : ''}`),
  ];
  if (config.databaseUrl !== null)
    findings.push(await checkClock('time.database', world.now, database.serverTime));
  if (workload === 'gateway') return [...findings, await checkGatewayRole(database)];
  const migrations = await compareMigrations(database);
  findings.push(checkMigrations(migrations));
  if (config.databaseUrl !== null) findings.push(checkRole(facts));
  findings.push(await checkSearch(database));
  // The checks below read tables of this version.
  if (facts.closedTables.length > 0 || migrations.refusal !== undefined) return findings;
  const { waiting } = migrations;
  // Keycloak signs with its own keys.
  if (config.keycloak === null)
    findings.push(await checkSigningKeys(database, waiting, config.encryptionKeys));
  const encrypted = await checkEncrypted(database, waiting, config.encryptionKeys);
  if (encrypted !== null) findings.push(encrypted);
  const origins = await checkSignInOrigins(database, waiting, world.now());
  if (origins !== null) findings.push(origins);
  return findings;
}

function checkMigrations({
  waiting,
  unknown: newer,
  edited,
  refusal,
}: Awaited<ReturnType<typeof compareMigrations>>): Finding {
  const check = 'database.migrations';
  if (refusal !== undefined) return failed(check, refusal.message, refusal.fix);
  if (edited.length > 0)
    return failed(
      check,
      `these migrations differ from the ones that were applied: ${edited.join(', ')}`,
      'Restore the migration files of this version.',
    );
  // Each migration keeps what the previous release uses (decision 0028).
  if (newer.length > 0)
    return advice(
      check,
      `the database has migrations of a newer version: ${newer.join(', ')}`,
      'If this is the release before that version, it works: finish the update. Otherwise run that version.',
    );
  if (waiting.length > 0)
    return advice(
      check,
      `${waiting.length} ${waiting.length === 1 ? 'migration is' : 'migrations are'} not applied yet`,
      'The next start applies them. To apply them now, run: npm start -- migrate',
    );
  return ok(check, 'the database is up to date');
}

/** Without the indexes of the migration 0011 a search in names reads every name (decision 0043). */
async function checkSearch(database: Database): Promise<Finding> {
  const indexes = ['repositories_name_parts', 'sites_name_parts', 'api_keys_name_parts'];
  const rows = await sql<{ missing: string }>`
    select name as missing from jsonb_array_elements_text(${JSON.stringify(indexes)}::jsonb) name
     where to_regclass(name) is null`.all(database.sql);
  if (rows.length === 0) return ok('database.search', 'searches in names use their indexes');
  return advice(
    'database.search',
    `a search reads every name, because these indexes are missing: ${rows.map(({ missing }) => missing).join(', ')}`,
    'Create the extension pg_trgm and the indexes: docs/how-to/run-the-workloads-apart.md',
  );
}

function checkRole({
  role,
  isSuperuser,
  canCreate,
  closedTables,
}: Awaited<ReturnType<typeof databaseFacts>>): Finding {
  const check = 'database.role';
  if (closedTables.length > 0)
    return failed(
      check,
      `the role ${role} has no permission to read and change ${closedTables.join(', ')}`,
      `Make it the owner of the tables: REASSIGN OWNED BY the_present_owner TO ${role};`,
    );
  if (!canCreate)
    return failed(
      check,
      `the role ${role} has no permission to create tables`,
      `Run: GRANT CREATE, USAGE ON SCHEMA public TO ${role};`,
    );
  if (isSuperuser)
    return advice(
      check,
      `the role ${role} is a superuser`,
      'Use a role that owns this database and has no other privileges.',
    );
  return ok(check, `the role ${role} has the permissions it needs`);
}

async function checkGatewayRole(database: Database): Promise<Finding> {
  const unavailableReason = await unavailableReasonForViews(database);
  if (unavailableReason !== null)
    return failed('database.role', unavailableReason.problem, unavailableReason.fix);
  const excess = await excessOf(database);
  if (excess !== null)
    return advice(
      'database.role',
      `the role of the gateway has permissions that it does not need: ${excess}`,
      'Give the gateway a separate role that can read its views and nothing else.',
    );
  return ok('database.role', 'the role of the gateway can read its views and nothing else');
}

async function checkSigningKeys(
  database: Database,
  waiting: readonly string[],
  keys: readonly string[],
): Promise<Finding> {
  const check = 'identity.signing_keys';
  const { signingKeys } = lazyStores(identityStores(systemClock))(database.sql);
  if (waiting.some((name) => name.includes('identity.')) || (await signingKeys.find()) === undefined)
    return ok(check, 'do not exist yet; the first start creates them');
  if (keys.length === 0)
    return failed(
      check,
      'they exist, and there is no ENCRYPTION_KEY to decrypt them',
      'Restore DATA_DIR/secrets from a backup.',
    );
  if (await canDecryptSigningKeys(signingKeys, createEncryption(keys, systemRandom)))
    return ok(check, 'ENCRYPTION_KEY decrypts the keys of the built-in provider');
  return failed(
    check,
    'ENCRYPTION_KEY decrypts none of them: nobody can sign in',
    'Add the value that encrypted them to the end of ENCRYPTION_KEY.',
  );
}

/** With fewer people the addresses prove nothing. */
const enoughPeople = 3;

/**
 * When TRUSTED_PROXIES does not name a proxy, everyone has the same address. Null before the first sign-in, and when there
 * is no table.
 */
async function checkSignInOrigins(
  database: Database,
  waiting: readonly string[],
  now: number,
): Promise<Finding | null> {
  if (waiting.some((name) => name.includes('audit'))) return null;
  const { people, addresses, address } = await signInReader(database.sql).origins(now - 7 * day);
  if (people < enoughPeople) return null;
  const check = 'identity.addresses';
  const who = `${people} people signed in within seven days, from`;
  if (addresses > 1) return ok(check, `${who} ${addresses} addresses`);
  return advice(
    check,
    `${who} one address: ${address}`,
    'If that is a proxy, add its address to TRUSTED_PROXIES. Until then, all clients share the limits for one address.',
  );
}

/** Whether older values of ENCRYPTION_KEY can be removed. Null when there is only one, or no table yet. */
async function checkEncrypted(
  database: Database,
  waiting: readonly string[],
  keys: readonly string[],
): Promise<Finding | null> {
  if (keys.length < 2 || waiting.some((name) => /identity\.|credentials\./.test(name))) return null;
  const encryption = createEncryption(keys, systemRandom);
  const read = lazyStores(identityStores(systemClock))(database.sql);
  const tables = encryptedTables(database.sql, systemClock);
  const count = await createReencryption({ tables, encryption }).waiting();
  const areKeysOld = (await read.signingKeys.find())?.startsWith(encryption.keyMark) === false;
  const check = 'secrets.sealed';
  if (count === 0 && !areKeysOld)
    return ok(
      check,
      'all data is encrypted with the first value of ENCRYPTION_KEY; you can remove the others',
    );
  return advice(
    check,
    `${count + (areKeysOld ? 1 : 0)} sessions, grants, credentials or keys are encrypted with an older value of ENCRYPTION_KEY`,
    'Keep that value in the list: a running server encrypts them again within minutes.',
  );
}

async function checkClock(
  check: string,
  now: () => number,
  serverTime: () => Promise<number>,
): Promise<Finding> {
  const clock = createServerClock({ local: { now }, serverTime });
  await clock.sync();
  const off = Math.round(clock.offset());
  if (Math.abs(off) <= maxOffMs)
    return ok(check, `differs by ${Math.abs(off)} ms from the clock of this machine`);
  return failed(
    check,
    `is ${(Math.abs(off) / 1000).toFixed(1)} s ${off > 0 ? 'ahead of' : 'behind'} the clock of this machine`,
    'Synchronize both clocks with a time server (NTP): sessions, grants and keys expire by them.',
  );
}

export async function checkKv({ config, world }: Asked): Promise<Finding[]> {
  if (config.kvUrl === null) return [ok('kv', 'in memory, for one process only')];
  try {
    const kv = await openKv(config.kvUrl, log);
    try {
      const servers = await kv.facts();
      const versions = [...new Set(servers.map(({ version }) => version))].join(', ');
      const count = servers.length === 1 ? '' : `${servers.length} servers, `;
      return [
        ok('kv', `${count}Redis ${versions} or a compatible server, noeviction`),
        await checkClock('time.kv', world.now, kv.time),
      ];
    } finally {
      await kv.close();
    }
  } catch (error) {
    return [findingOf('kv', error)];
  }
}

export async function checkObjectStore({ config, workload }: Asked): Promise<Finding> {
  const check = 'object_store';
  const { objectStore, dataDir } = config;
  if (objectStore === null) return ok(check, 'not used: files are in DATA_DIR');
  const blobs = await openStoreAlone(objectStore, dataDir);
  try {
    if (workload === 'gateway') {
      await blaming('OBJECT_STORE_URL', blobs.ping);
      return ok(check, `listed the bucket ${objectStore.bucket}`);
    }
    await blaming('OBJECT_STORE_URL', async () => {
      await blobs.prepare();
      await blobs.begin();
      // Random bytes, so that the blob removed below is not the content of a site.
      const bytes = randomBytes(1024);
      const { digest } = await blobs.write(Readable.from([bytes]));
      try {
        const read = await buffer(await blobs.read(digest));
        if (!read.equals(bytes)) throw new Error('it returned other bytes than were written');
      } finally {
        await blobs.remove(digest);
      }
    });
    return ok(check, `wrote, read and removed a blob in the bucket ${objectStore.bucket}`);
  } catch (error) {
    return findingOf(check, error);
  } finally {
    blobs.close();
  }
}
