import { existingSecrets, isSet, newSecret, replaceGenerated } from '../config/generated-secrets.ts';
import type { GeneratedName } from '../config/names.ts';
import type { Config } from '../config/read.ts';
import { systemClock } from '../core/clock.ts';
import { systemRandom } from '../core/ids.ts';
import { createEncryption } from '../platform/encryption.ts';
import { encryptedTables } from '../composition/encrypted-tables.ts';
import { identityStores } from '../composition/identity/identity-stores.ts';
import { createReencryption } from '../platform/reencryption.ts';
import { openDatabaseAlone } from '../composition/backends/backends.ts';
import { hasDatabase } from '../platform/data-dir.ts';
import { lazyStores } from '../platform/database/stores.ts';

/**
 * `npm start -- secrets rotate|retire NAME`: the generated secrets of DATA_DIR. A secret from the environment must be rotated
 * there. Never prints a value.
 */

/** Safe next to a running server, which continues to use the values it has read. */
export function runRotate({ dataDir }: Config, name: GeneratedName): number {
  if (!isOurs(name, dataDir)) return 1;
  replaceGenerated(name, dataDir, (values) => [newSecret(), ...values]);
  const count = existingSecrets(name, dataDir).length;
  console.log(
    `${name} has ${count} values now. From its next start, the server uses the first for new data and accepts all.`,
  );
  return 0;
}

/**
 * Refuses while data remains that only an older value of ENCRYPTION_KEY can decrypt. Also refuses when a new value was
 * added after the settings were read: the check did not cover that value.
 */
export async function runRetire(config: Config, name: GeneratedName): Promise<number> {
  const { dataDir } = config;
  if (!isOurs(name, dataDir)) return 1;
  const older = existingSecrets(name, dataDir).slice(1);
  if (older.length === 0) {
    console.log(`${name} has one value: there is no older value to remove.`);
    return 0;
  }
  const waiting = name === 'ENCRYPTION_KEY' ? await waitingIn(config) : 0;
  if (waiting > 0) {
    console.error(
      `postern: ${waiting} sessions, grants or keys are still encrypted with an older value of ${name}.`,
    );
    console.error('Nothing was changed. Run the server for two minutes, stop it, and run the command again.');
    return 1;
  }
  const kept = firstOf(config, name);
  if (
    !replaceGenerated(name, dataDir, ([first]) => (first !== undefined && first === kept ? [first] : null))
  ) {
    console.error(
      `postern: ${name} was rotated while this command ran, and its newest value is not in use yet.`,
    );
    console.error('Nothing was changed. Continue with step 2 of docs/how-to/rotate-secrets.md.');
    return 1;
  }
  console.log(
    `${name} has one value now. From its next start, the server refuses the ${older.length === 1 ? 'older value' : `${older.length} older values`}.`,
  );
  return 0;
}

function firstOf(config: Config, name: GeneratedName): string | undefined {
  const { sessionSecrets, encryptionKeys, grantSecrets } = config;
  return { SESSION_SECRET: sessionSecrets, ENCRYPTION_KEY: encryptionKeys, GRANT_SECRET: grantSecrets }[
    name
  ][0];
}

function isOurs(name: GeneratedName, dataDir: string): boolean {
  if (isSet(name)) {
    console.error(
      `postern: ${name} is set in the environment, so the server does not use the value in DATA_DIR.`,
    );
    console.error('Rotate it where it is set: docs/how-to/rotate-secrets.md');
    return false;
  }
  if (existingSecrets(name, dataDir).length > 0) return true;
  console.error(`postern: there is no ${name} in ${dataDir}. Check DATA_DIR.`);
  return false;
}

/** Counts what only older values can decrypt. Opens the database: with the embedded one, the server must be stopped. */
async function waitingIn(config: Config): Promise<number> {
  if (config.databaseUrl === null && !hasDatabase(config.dataDir)) return 0;
  const { database, close } = await openDatabaseAlone(config);
  try {
    const encryption = createEncryption(config.encryptionKeys, systemRandom);
    const read = lazyStores(identityStores(systemClock))(database.sql);
    const signingKeys = await read.signingKeys.find();
    const isOld = signingKeys !== undefined && !signingKeys.startsWith(encryption.keyMark);
    const tables = encryptedTables(database.sql, systemClock);
    const reencryption = createReencryption({ tables, encryption });
    return (await reencryption.waiting()) + (isOld ? 1 : 0);
  } finally {
    await close();
  }
}
