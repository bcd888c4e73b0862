import { createHash, randomBytes, randomUUID, scryptSync } from 'node:crypto';
import { constants, createReadStream, createWriteStream, existsSync } from 'node:fs';
import { access, link, mkdir, readdir, readFile, rename, rm, rmdir, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { version } from './app.ts';
import type { Config } from './config.ts';
import { systemClock, timestamp } from './core/clock.ts';
import { systemRandom } from './core/ids.ts';
import { chainStore } from './features/audit/chain-store.ts';
import { type Anchor, formatTrailReport, verifyTrail } from './features/audit/verify.ts';
import { createSealer } from './features/identity/sealing.ts';
import { signingKeyStore } from './features/identity/provider/signing-key-store.ts';
import { signingKeysOpen } from './features/identity/provider/signing-keys.ts';
import { hasDatabase, lockDataDir } from './platform/data-dir.ts';
import { type Database, openDatabase } from './platform/database/database.ts';
import { embeddedDatabase } from './platform/database/embedded.ts';
import { compareMigrations, migrate } from './platform/database/migrate.ts';
import { flushNames } from './platform/flush-names.ts';
import { ArchiveSpoiled, type Part, readArchive, writeArchive } from './platform/folder-archive.ts';
import { openText, sealingKey, sealText } from './platform/sealed-text.ts';
import { blaming } from './start-errors.ts';

/**
 * `postern backup` and `postern restore` of the embedded mode: one file with the database as it lies on the disk after
 * an orderly end, the files of sites, and, sealed under a passphrase and only when asked for, the generated secrets
 * (decision 0024). Both hold the lock of DATA_DIR; a restore is checked aside to its end before anything has its name.
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
  /** False: they are in an object store, with copies of its own. */
  readonly hasBlobs: boolean;
  readonly auditHead: Anchor | null;
};

const headerName = 'postern-backup.json';
const secretsName = 'secrets.sealed';
const migrations = join(import.meta.dirname, '../migrations');

export async function runBackup(config: Config, file: string, { withSecrets }: { withSecrets: boolean }) {
  return await tellingRefusal('Nothing was written.', async () => {
    const path = resolve(file);
    const { dataDir, backupPassphrase } = config;
    refuseServer(config);
    if (!hasDatabase(dataDir)) throw new Refused(`there is no database in ${dataDir}`, 'Check DATA_DIR.');
    if (withSecrets && backupPassphrase === null)
      throw new Refused(
        'secrets are taken along only under a passphrase, and BACKUP_PASSPHRASE is not set',
        'Set BACKUP_PASSPHRASE or BACKUP_PASSPHRASE_FILE, and keep it apart from the backup.',
      );
    if (existsSync(path)) throw new Refused(`${path} is there already`, 'Choose another name.');
    const lock = await blaming('DATA_DIR', () => lockDataDir(dataDir));
    const aside = `${path}.${randomUUID()}.partial`;
    try {
      const auditHead = await inDatabase(join(dataDir, 'database'), headOfWholeTrail);
      const secrets =
        withSecrets && backupPassphrase !== null ? await sealSecrets(dataDir, backupPassphrase) : null;
      await blaming('FILE', () => writeBackup(aside, config, { auditHead, secrets }));
      // Fails when somebody made the file meanwhile; rename() would replace it.
      await blaming('FILE', () => link(aside, path));
      await flushNames(dirname(path));
      console.log(`sha256 ${await sha256Of(path)}`);
      if (auditHead !== null) console.log(`audit head ${auditHead.seq}:${auditHead.hash}`);
      console.error(
        `Written to ${path}. Keep the lines above apart from it: they prove later that it is this one.`,
      );
      if (!withSecrets)
        console.error(`The secrets are not in it: copy ${join(dataDir, 'secrets')} to another place.`);
      if (config.objectStore !== null)
        console.error('The files of sites are in the object store, and not in it.');
      return 0;
    } finally {
      await rm(aside, { force: true });
      lock.release();
    }
  });
}

async function writeBackup(
  aside: string,
  { dataDir, objectStore }: Config,
  { auditHead, secrets }: { auditHead: Anchor | null; secrets: string | null },
): Promise<void> {
  const archive = writeArchive(createWriteStream(aside, { flags: 'wx', mode: 0o600, flush: true }));
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
    const aside = join(dataDir, `restore.${randomUUID()}`);
    try {
      await refuseFull(dataDir);
      await mkdir(aside, { mode: 0o700 });
      const parts = await readArchive(path, aside);
      const header = await readHeader(aside);
      checkNames(parts);
      const isSecretThere = existsSync(join(dataDir, 'secrets'));
      if (header.hasSecrets) await openSecrets(aside, config, isSecretThere);
      const report = await checkDatabase(aside, config, header);
      await putInPlace(aside, dataDir);
      console.log(report);
      console.error(`Restored ${dataDir} as of ${header.createdAt} (Postern ${header.postern}).`);
      if (!header.hasBlobs)
        console.error('The files of sites were in an object store: put its copy back as well.');
      return 0;
    } catch (error) {
      if (!(error instanceof ArchiveSpoiled)) throw error;
      throw new Refused(
        `${path} cannot be used: ${error.message}`,
        'Take another copy, and compare its sha256.',
      );
    } finally {
      await rm(aside, { recursive: true, force: true });
      lock.release();
      // Made by the lock; it stays when something was put in it.
      if (!wasThere) await rmdir(dataDir).catch(() => undefined);
    }
  });
}

/** Whatever a refused command did is undone when it is told. */
async function tellingRefusal(end: string, work: () => Promise<number>): Promise<number> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    console.error(`postern: ${error.message}.\n  ${error.fix}\n${end}`);
    return 1;
  }
}

function refuseServer({ databaseUrl }: Config): void {
  if (databaseUrl === null) return;
  throw new Refused(
    'this is for the embedded database, and DATABASE_URL is set',
    'Use pg_dump and pg_restore, and the copies of your object store.',
  );
}

/** Empty, but for secrets that were put back first and for the lock. What a killed restore left goes. */
async function refuseFull(dataDir: string): Promise<void> {
  for (const name of await readdir(dataDir)) {
    if (/^restore\.[0-9a-f-]{36}$/.test(name))
      await rm(join(dataDir, name), { recursive: true, force: true });
    else if (name !== 'secrets' && !/^lock(?:\.|$)/.test(name))
      throw new Refused(
        `${dataDir} is not empty: it holds ${name}`,
        'Choose an empty folder with DATA_DIR, or move this one away.',
      );
  }
}

async function inDatabase<T>(folder: string, work: (database: Database) => Promise<T>): Promise<T> {
  const embedded = embeddedDatabase({ dataDir: folder });
  await blaming('DATA_DIR', () => embedded.start());
  const database = openDatabase(embedded.dialect);
  try {
    return await work(database);
  } finally {
    await database.close();
  }
}

async function headOfWholeTrail(database: Database): Promise<Anchor | null> {
  const report = await verifyTrail(chainStore(database.sql));
  if (report.brokenAt === undefined) return report.head;
  throw new Refused(
    formatTrailReport(report),
    'Find out what happened to it first. As evidence, copy the whole of DATA_DIR.',
  );
}

async function readHeader(aside: string): Promise<Header> {
  const text = await readFile(join(aside, headerName), 'utf8').catch(() => {
    throw new ArchiveSpoiled('it is no backup of Postern');
  });
  // Its digest is that of what backup wrote; another format is refused below.
  const header = JSON.parse(text) as Header;
  if (header.format === 1) return header;
  throw new Refused(
    `this backup has the format ${String(header.format)}, which this version does not know`,
    'Restore it with the version that made it, or a newer one.',
  );
}

/** A file of a site is called by its digest: one that was rotten when it was taken is found here. */
function checkNames(parts: readonly Part[]): void {
  for (const { path, sha256 } of parts) {
    // Secrets above all come sealed, or not at all.
    if (path !== headerName && path !== secretsName && !/^(?:database|blobs)(?:\/|$)/.test(path))
      throw new ArchiveSpoiled(`${path} is no part of a backup`);
    const [, shelf, rest] = /^blobs\/([^/]+)\/(.+)$/.exec(path) ?? [];
    if (shelf !== undefined && sha256 !== `${shelf}${rest}`)
      throw new ArchiveSpoiled(`${path} holds other bytes than its name says`);
  }
}

/** Of the newest steps, with its trail whole and signing keys that open. What it says goes to the operator. */
async function checkDatabase(aside: string, { encryptionKeys }: Config, header: Header): Promise<string> {
  const restored = await readFile(join(aside, 'secrets', 'encryption_key'), 'utf8').catch(() => undefined);
  const keys = [...(restored === undefined ? [] : restored.trim().split(',')), ...encryptionKeys];
  return await inDatabase(join(aside, 'database'), async (database) => {
    const { unknown } = await compareMigrations(database, migrations);
    if (unknown.length > 0)
      throw new Refused(
        `this backup was made by a newer version, Postern ${header.postern}`,
        'Restore it with that version, or a newer one.',
      );
    await migrate(database, migrations);
    const sealed = signingKeyStore(database.sql, systemClock);
    const areOpen = keys.length > 0 && (await signingKeysOpen(sealed, createSealer(keys, systemRandom)));
    if (!areOpen && (await sealed.find()) !== undefined)
      throw new Refused(
        'the ENCRYPTION_KEY of this backup is not here, and without it nobody can sign in',
        `Put the folder secrets back into DATA_DIR first, readable by you alone, or set ENCRYPTION_KEY.`,
      );
    const report = await verifyTrail(chainStore(database.sql), header.auditHead ?? undefined);
    if (report.brokenAt !== undefined) throw new ArchiveSpoiled(formatTrailReport(report));
    return formatTrailReport(report);
  });
}

/** The database last: with it, the folder counts as in use. */
async function putInPlace(aside: string, dataDir: string): Promise<void> {
  for (const name of ['secrets', 'blobs', 'database'])
    if (existsSync(join(aside, name))) await rename(join(aside, name), join(dataDir, name));
  await flushNames(dataDir);
}

type SealedSecrets = { readonly salt: string; readonly sealed: string };

/** About a second and 128 MiB a guess (RFC 7914). */
function keyOf(passphrase: string, salt: string): Buffer {
  const derived = scryptSync(passphrase, salt, 32, { N: 2 ** 17, r: 8, p: 1, maxmem: 256 * 1024 ** 2 });
  return sealingKey('postern-backup', derived.toString('base64'));
}

async function sealSecrets(dataDir: string, passphrase: string): Promise<string> {
  const folder = join(dataDir, 'secrets');
  const values: Record<string, string> = {};
  for (const name of await readdir(folder).catch(() => []))
    values[name] = await readFile(join(folder, name), 'utf8');
  const salt = randomBytes(16).toString('base64');
  const sealed = sealText(keyOf(passphrase, salt), JSON.stringify(values), secretsName, randomBytes(12));
  return JSON.stringify({ salt, sealed: sealed.toString('base64') } satisfies SealedSecrets);
}

async function openSecrets(
  aside: string,
  { backupPassphrase }: Config,
  isSecretThere: boolean,
): Promise<void> {
  if (isSecretThere)
    throw new Refused('the backup holds secrets, and there are some in DATA_DIR', 'Move those away first.');
  if (backupPassphrase === null)
    throw new Refused(
      'the backup holds secrets under a passphrase',
      'Set BACKUP_PASSPHRASE or BACKUP_PASSPHRASE_FILE.',
    );
  // Its digest is that of what sealSecrets() wrote.
  const { salt, sealed } = JSON.parse(await readFile(join(aside, secretsName), 'utf8')) as SealedSecrets;
  const opened = openText([keyOf(backupPassphrase, salt)], Buffer.from(sealed, 'base64'), secretsName);
  if (opened === undefined)
    throw new Refused('BACKUP_PASSPHRASE does not open the secrets of this backup', 'Mend it.');
  const folder = join(aside, 'secrets');
  await mkdir(folder, { mode: 0o700 });
  // Sealed by sealSecrets(): names of files in one folder, and their texts.
  for (const [name, value] of Object.entries(JSON.parse(opened) as Record<string, string>))
    if (/^[a-z_]+$/.test(name))
      await writeFile(join(folder, name), value, { mode: 0o600, flag: 'wx', flush: true });
}

async function sha256Of(path: string): Promise<string> {
  const sum = createHash('sha256');
  await pipeline(createReadStream(path), sum);
  return sum.digest('hex');
}
