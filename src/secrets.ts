import {
  type Config,
  existingSecrets,
  generatedNames,
  isSecretSet,
  newSecret,
  replaceGenerated,
} from './config.ts';
import { systemClock } from './core/clock.ts';
import { systemRandom } from './core/ids.ts';
import { createResealing } from './features/identity/resealing.ts';
import { createSealer } from './features/identity/sealing.ts';
import { identityStores } from './features/identity/stores.ts';
import { openDatabaseAlone } from './parts.ts';
import { hasDatabase } from './platform/data-dir.ts';

/**
 * `postern secrets rotate|retire NAME`: the generated secrets of DATA_DIR. What is set in the environment is rotated
 * where it is set. No value is ever printed.
 */
type Name = (typeof generatedNames)[number];

export const isGeneratedName = (name: string): name is Name => generatedNames.some((one) => one === name);

/** Beside a running server: it goes on with what it has read. */
export function runRotate({ dataDir }: Config, name: Name): number {
  if (!isOurs(name, dataDir)) return 1;
  replaceGenerated(name, dataDir, (values) => [newSecret(), ...values]);
  const count = existingSecrets(name, dataDir).length;
  console.log(
    `${name} has ${count} values now: from the next start on the first is used for what is new, all are accepted.`,
  );
  return 0;
}

/**
 * Refuses while something would be lost that an older value of ENCRYPTION_KEY sealed, and when another value was put in
 * front since the settings were read: what was looked at then is not sealed under that one.
 */
export async function runRetire(config: Config, name: Name): Promise<number> {
  const { dataDir } = config;
  if (!isOurs(name, dataDir)) return 1;
  const older = existingSecrets(name, dataDir).slice(1);
  if (older.length === 0) {
    console.log(`${name} has one value; there is none to take out.`);
    return 0;
  }
  const waiting = name === 'ENCRYPTION_KEY' ? await waitingIn(config) : 0;
  if (waiting > 0) {
    console.error(`postern: ${waiting} sessions, grants or keys are sealed under an older value of ${name}.`);
    console.error(
      'Nothing was changed. Start the server for a minute or two, stop it, and run the command again.',
    );
    return 1;
  }
  const kept = firstOf(config, name);
  if (
    !replaceGenerated(name, dataDir, ([first]) => (first !== undefined && first === kept ? [first] : null))
  ) {
    console.error(`postern: ${name} was rotated meanwhile, and its newest value is not in use yet.`);
    console.error('Nothing was changed. Go on with step 2 of docs/how-to/rotate-secrets.md.');
    return 1;
  }
  console.log(
    `${name} has one value now: from the next start on ${older.length} older ${older.length === 1 ? 'is' : 'are'} refused.`,
  );
  return 0;
}

function firstOf(config: Config, name: Name): string | undefined {
  const { sessionSecrets, encryptionKeys, grantSecrets } = config;
  return { SESSION_SECRET: sessionSecrets, ENCRYPTION_KEY: encryptionKeys, GRANT_SECRET: grantSecrets }[
    name
  ][0];
}

function isOurs(name: Name, dataDir: string): boolean {
  if (isSecretSet(name)) {
    console.error(
      `postern: ${name} is set, so what is in DATA_DIR is not in use. Rotate it where it is set:`,
    );
    console.error('docs/how-to/rotate-secrets.md');
    return false;
  }
  if (existingSecrets(name, dataDir).length > 0) return true;
  console.error(`postern: there is no ${name} in ${dataDir} yet. Check DATA_DIR.`);
  return false;
}

/** What only older values open: with the database open, so the server is stopped. */
async function waitingIn(config: Config): Promise<number> {
  if (config.databaseUrl === null && !hasDatabase(config.dataDir)) return 0;
  const { database, close } = await openDatabaseAlone(config);
  try {
    const sealer = createSealer(config.encryptionKeys, systemRandom);
    const read = identityStores(database.sql, systemClock);
    const signingKeys = await read.signingKeys.find();
    const isOld = signingKeys !== undefined && !signingKeys.startsWith(sealer.mark);
    return (await createResealing({ read, sealer }).waiting()) + (isOld ? 1 : 0);
  } finally {
    await close();
  }
}
