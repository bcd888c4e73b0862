import { createHash, randomBytes, randomUUID, scryptSync } from 'node:crypto';
import { constants, createReadStream, createWriteStream, existsSync } from 'node:fs';
import { access, link, mkdir, readdir, readFile, rename, rm, rmdir, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { Config } from '../../config/read.ts';
import { systemClock, timestamp } from '../../core/clock.ts';
import { systemRandom } from '../../core/ids.ts';
import { chainStore } from '../../features/audit/chain-store.ts';
import { type Anchor, formatAuditReport, verifyAuditLog } from '../../features/audit/verify.ts';
import { createEncryption } from '../../platform/encryption.ts';
import { signingKeyStore } from '../../features/oidc-provider/signing-key-store.ts';
import { canDecryptSigningKeys } from '../../features/oidc-provider/signing-keys.ts';
import { hasDatabase, lockDataDir } from '../../platform/data-dir.ts';
import { type Database, openDatabase } from '../../platform/database/database.ts';
import { embeddedDatabase } from '../../platform/database/embedded.ts';
import { compareMigrations, migrate, MigrationRefused } from '../../platform/database/migrate.ts';
import { flushNames } from '../../platform/flush-names.ts';
import { ArchiveSpoiled, type Part, readArchive, writeArchive } from '../../platform/folder-archive.ts';
import { decryptText, encryptionKeyOf, encryptText } from '../../platform/encrypted-text.ts';
import { version } from '../../platform/version.ts';
import { blaming } from '../../composition/backends/start-errors.ts';

/**
 * `npm start -- backup` and `npm start -- restore` for the embedded mode (decision 0024). One file contains the database as it is
 * on disk after a clean shutdown, and the files of sites. It contains the generated secrets only on request, encrypted
 * with a passphrase. Both commands hold the lock of DATA_DIR. A restore verifies the whole backup in a temporary folder
 * before it moves anything into place.
 */
class Refused extends Error {
  readonly fix: string;
  constructor(problem: string, fix: string) {
    super(problem);
    this.fix = fix;
  }
}

type Header = {
  readonly format: 1;
  readonly postern: string;
  readonly createdAt: string;
  readonly hasSecrets: boolean;
  /** False: blobs are in an object store, which has its own backups. */
  readonly hasBlobs: boolean;
  readonly auditHead: Anchor | null;
};

const headerName = 'postern-backup.json';
const secretsName = 'secrets.sealed';

export async function runBackup(config: Config, file: string, { withSecrets }: { withSecrets: boolean }) {
  return await tellingRefusal('Nothing was written.', async () => {
    const path = resolve(file);
    const { dataDir, backupPassphrase } = config;
    refuseServer(config);
    if (!hasDatabase(dataDir)) throw new Refused(`there is no database in ${dataDir}`, 'Check DATA_DIR.');
    if (withSecrets && backupPassphrase === null)
      throw new Refused(
        '--with-secrets encrypts the secrets with a passphrase, and BACKUP_PASSPHRASE is not set',
        'Set BACKUP_PASSPHRASE or BACKUP_PASSPHRASE_FILE, and store the passphrase apart from the backup.',
      );
    if (existsSync(path)) throw new Refused(`${path} already exists`, 'Choose another name.');
    const lock = await blaming('DATA_DIR', () => lockDataDir(dataDir));
    const staging = `${path}.${randomUUID()}.partial`;
    try {
      const auditHead = await inDatabase(join(dataDir, 'database'), headOfWholeAuditLog);
      const secrets =
        withSecrets && backupPassphrase !== null ? await encryptSecrets(dataDir, backupPassphrase) : null;
      await blaming('FILE', () => writeBackup(staging, config, { auditHead, secrets }));
      // link() fails when the file was created meanwhile; rename() would replace it.
      await blaming('FILE', () => link(staging, path));
      await flushNames(dirname(path));
      console.log(`sha256 ${await sha256Of(path)}`);
      if (auditHead !== null) console.log(`audit head ${auditHead.seq}:${auditHead.hash}`);
      console.error(
        `Wrote ${path}. Store the lines above apart from it: they prove later that the file is unchanged.`,
      );
      if (!withSecrets)
        console.error(
          `The backup does not contain the secrets: copy ${join(dataDir, 'secrets')} to another place.`,
        );
      if (config.objectStore !== null)
        console.error('The backup does not contain the files of sites: they are in the object store.');
      return 0;
    } finally {
      await rm(staging, { force: true });
      lock.release();
    }
  });
}

async function writeBackup(
  staging: string,
  { dataDir, objectStore }: Config,
  { auditHead, secrets }: { auditHead: Anchor | null; secrets: string | null },
): Promise<void> {
  const archive = writeArchive(createWriteStream(staging, { flags: 'wx', mode: 0o600, flush: true }));
  const blobs = join(dataDir, 'blobs');
  const header: Header = {
    format: 1,
    postern: version,
    createdAt: timestamp(systemClock.now()),
    hasSecrets: secrets !== null,
    hasBlobs: objectStore === null,
    auditHead,
  };
  await archive.addText(headerName, JSON.stringify(header));
  if (secrets !== null) await archive.addText(secretsName, secrets);
  await archive.addFolder('database', join(dataDir, 'database'));
  if (objectStore === null && existsSync(blobs))
    await archive.addFolder('blobs', blobs, (name) => /^[0-9a-f]{2}$/.test(name));
  await archive.finish();
}

export async function runRestore(config: Config, file: string): Promise<number> {
  return await tellingRefusal('Nothing was restored.', async () => {
    const { dataDir } = config;
    refuseServer(config);
    const path = resolve(file);
    await blaming('FILE', () => access(path, constants.R_OK));
    const wasThere = existsSync(dataDir);
    const lock = await blaming('DATA_DIR', () => lockDataDir(dataDir));
    const staging = join(dataDir, `restore.${randomUUID()}`);
    try {
      await refuseFull(dataDir);
      await mkdir(staging, { mode: 0o700 });
      const parts = await readArchive(path, staging);
      const header = await readHeader(staging);
      checkNames(parts);
      const isSecretThere = existsSync(join(dataDir, 'secrets'));
      if (header.hasSecrets) await decryptSecrets(staging, config, isSecretThere);
      const report = await checkDatabase(staging, config, header);
      await putInPlace(staging, dataDir);
      console.log(report);
      console.error(`Restored ${dataDir} as of ${header.createdAt} (Postern ${header.postern}).`);
      if (!header.hasBlobs)
        console.error('The files of sites were in an object store: restore its backup too.');
      return 0;
    } catch (error) {
      if (!(error instanceof ArchiveSpoiled)) throw error;
      throw new Refused(
        `${path} cannot be restored: ${error.message}`,
        'Use another copy of the file, and compare its sha256.',
      );
    } finally {
      await rm(staging, { recursive: true, force: true });
      lock.release();
      // The lock created the folder. It stays if it is no longer empty.
      if (!wasThere) await rmdir(dataDir).catch(() => undefined);
    }
  });
}

/** By the time a refusal is reported, the command has undone its changes. */
async function tellingRefusal(end: string, work: () => Promise<number>): Promise<number> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Refused || error instanceof MigrationRefused)) throw error;
    console.error(`postern: ${error.message}.\n  ${error.fix}\n${end}`);
    return 1;
  }
}

function refuseServer({ databaseUrl }: Config): void {
  if (databaseUrl === null) return;
  throw new Refused(
    'the command is for the embedded database, and DATABASE_URL is set',
    'Use pg_dump and pg_restore, and the backups of your object store.',
  );
}

/** Requires a folder that is empty but for secrets restored first and for the lock. Removes what a killed restore left. */
async function refuseFull(dataDir: string): Promise<void> {
  for (const name of await readdir(dataDir)) {
    if (/^restore\.[0-9a-f-]{36}$/.test(name))
      await rm(join(dataDir, name), { recursive: true, force: true });
    else if (name !== 'secrets' && !/^lock(?:\.|$)/.test(name))
      throw new Refused(
        `${dataDir} is not empty: it contains ${name}`,
        'Set DATA_DIR to an empty folder, or move this folder away.',
      );
  }
}

async function inDatabase<T>(folder: string, work: (database: Database) => Promise<T>): Promise<T> {
  const embedded = embeddedDatabase({ dataDir: folder });
  await blaming('DATA_DIR', () => embedded.start());
  const database = openDatabase(embedded.pool);
  try {
    return await work(database);
  } finally {
    await database.close();
  }
}

async function headOfWholeAuditLog(database: Database): Promise<Anchor | null> {
  const report = await verifyAuditLog(chainStore(database.sql));
  if (report.brokenAt === undefined) return report.head;
  throw new Refused(formatAuditReport(report), 'Find the cause first. As evidence, copy the whole DATA_DIR.');
}

async function readHeader(staging: string): Promise<Header> {
  const text = await readFile(join(staging, headerName), 'utf8').catch(() => {
    throw new ArchiveSpoiled('it is not a backup of Postern');
  });
  // The digest proves that backup wrote it; another format is refused below.
  const header = JSON.parse(text) as Header;
  if (header.format === 1) return header;
  throw new Refused(
    `the backup has the format ${String(header.format)}, which this version of Postern cannot read`,
    'Restore it with the version that wrote it, or a newer one.',
  );
}

/** A site's file is named by its digest, so content that was corrupt at the time of the backup is found here. */
function checkNames(parts: readonly Part[]): void {
  for (const { path, sha256 } of parts) {
    // Secrets in particular must be encrypted, or absent.
    if (path !== headerName && path !== secretsName && !/^(?:database|blobs)(?:\/|$)/.test(path))
      throw new ArchiveSpoiled(`${path} is not part of a backup`);
    const [, shelf, rest] = /^blobs\/([^/]+)\/(.+)$/.exec(path) ?? [];
    if (shelf !== undefined && sha256 !== `${shelf}${rest}`)
      throw new ArchiveSpoiled(`the content of ${path} does not match its name`);
  }
}

/**
 * Requires the newest migrations, an intact audit log and signing keys that can be decrypted. Returns a text for the
 * operator.
 */
async function checkDatabase(staging: string, { encryptionKeys }: Config, header: Header): Promise<string> {
  const restored = await readFile(join(staging, 'secrets', 'encryption_key'), 'utf8').catch(() => undefined);
  const keys = [...(restored === undefined ? [] : restored.trim().split(',')), ...encryptionKeys];
  return await inDatabase(join(staging, 'database'), async (database) => {
    const { unknown } = await compareMigrations(database);
    if (unknown.length > 0)
      throw new Refused(
        `a newer version wrote the backup: Postern ${header.postern}`,
        'Restore it with that version, or a newer one.',
      );
    await migrate(database);
    const keyStore = signingKeyStore(database.sql, systemClock);
    const areOpen =
      keys.length > 0 && (await canDecryptSigningKeys(keyStore, createEncryption(keys, systemRandom)));
    if (!areOpen && (await keyStore.find()) !== undefined)
      throw new Refused(
        'the ENCRYPTION_KEY of the backup is missing, and without it nobody can sign in',
        'Restore the folder secrets into DATA_DIR first, readable by you alone, or set ENCRYPTION_KEY.',
      );
    const report = await verifyAuditLog(chainStore(database.sql), header.auditHead ?? undefined);
    if (report.brokenAt !== undefined) throw new ArchiveSpoiled(formatAuditReport(report));
    return formatAuditReport(report);
  });
}

/** Moves the database last: from then on the folder counts as used. */
async function putInPlace(staging: string, dataDir: string): Promise<void> {
  for (const name of ['secrets', 'blobs', 'database'])
    if (existsSync(join(staging, name))) await rename(join(staging, name), join(dataDir, name));
  await flushNames(dataDir);
}

/** The form in a backup: every release must read what an older one wrote. */
type EncryptedSecrets = { readonly salt: string; readonly sealed: string };

/** About a second and 128 MiB for each guess (RFC 7914). */
function keyOf(passphrase: string, salt: string): Buffer {
  const derived = scryptSync(passphrase, salt, 32, { N: 2 ** 17, r: 8, p: 1, maxmem: 256 * 1024 ** 2 });
  return encryptionKeyOf('postern-backup', derived.toString('base64'));
}

async function encryptSecrets(dataDir: string, passphrase: string): Promise<string> {
  const folder = join(dataDir, 'secrets');
  const values: Record<string, string> = {};
  for (const name of await readdir(folder).catch(() => []))
    values[name] = await readFile(join(folder, name), 'utf8');
  const salt = randomBytes(16).toString('base64');
  const encrypted = encryptText(
    keyOf(passphrase, salt),
    JSON.stringify(values),
    secretsName,
    randomBytes(12),
  );
  return JSON.stringify({ salt, sealed: encrypted.toString('base64') } satisfies EncryptedSecrets);
}

async function decryptSecrets(
  staging: string,
  { backupPassphrase }: Config,
  isSecretThere: boolean,
): Promise<void> {
  if (isSecretThere)
    throw new Refused(
      'the backup contains secrets, and so does DATA_DIR',
      'Move DATA_DIR/secrets away first.',
    );
  if (backupPassphrase === null)
    throw new Refused(
      'the backup contains secrets, encrypted with a passphrase, and BACKUP_PASSPHRASE is not set',
      'Set BACKUP_PASSPHRASE or BACKUP_PASSPHRASE_FILE.',
    );
  // The digest proves that encryptSecrets() wrote it.
  const { salt, sealed } = JSON.parse(await readFile(join(staging, secretsName), 'utf8')) as EncryptedSecrets;
  const opened = decryptText([keyOf(backupPassphrase, salt)], Buffer.from(sealed, 'base64'), secretsName);
  if (opened === undefined)
    throw new Refused(
      'BACKUP_PASSPHRASE does not decrypt the secrets of the backup',
      'Set the passphrase that the backup was written with.',
    );
  const folder = join(staging, 'secrets');
  await mkdir(folder, { mode: 0o700 });
  // encryptSecrets() encrypted it: file names in one folder, and their contents.
  for (const [name, value] of Object.entries(JSON.parse(opened) as Record<string, string>))
    if (/^[a-z_]+$/.test(name))
      await writeFile(join(folder, name), value, { mode: 0o600, flag: 'wx', flush: true });
}

async function sha256Of(path: string): Promise<string> {
  const sum = createHash('sha256');
  await pipeline(createReadStream(path), sum);
  return sum.digest('hex');
}
