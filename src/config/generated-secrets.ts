import { randomBytes, randomUUID } from 'node:crypto';
import {
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { flushNamesNow } from '../platform/flush-names.ts';
import { ConfigError } from './config-error.ts';
import { fileTrouble } from './file-trouble.ts';
import { listOf, minSecretLength } from './settings.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** Returns the values of a secret that is not set, newest first: new data uses the first, all are accepted. */
export type SecretSource = (name: string, dataDir: string) => readonly string[];

const secretsFolder = 'secrets';

/**
 * Generates a secret once and stores it next to the data, readable by this user only. An existing secret is used only
 * when no other user can have written or read it: anyone who knows these secrets can sign in as any user. @throws
 * ConfigError
 */
export function generatedSecrets(name: string, dataDir: string): string[] {
  return listOf(secretIn(dataDir, name, makeSecret));
}

/** The same, but generates nothing, for commands that must not; empty when there is none yet. @throws ConfigError */
export function existingSecrets(name: string, dataDir: string): string[] {
  if (!existsSync(join(dataDir, secretsFolder))) return [];
  return listOf(secretIn(dataDir, name, () => undefined) ?? '');
}

/** Whether the environment sets the secret; then the file in DATA_DIR is not used. */
export function isSet(name: string, env: Environment = process.env): boolean {
  return [name, `${name}_FILE`].some((one) => (env[one] ?? '') !== '');
}

/**
 * Replaces generated values atomically; the next start uses the new ones. Returns false when `change` returns null, which
 * keeps the values. @throws ConfigError when the existing file cannot be trusted
 */
export function replaceGenerated(
  name: string,
  dataDir: string,
  change: (values: readonly string[]) => readonly string[] | null,
): boolean {
  const folder = join(dataDir, secretsFolder);
  const path = join(folder, name.toLowerCase());
  const staging = `${path}.next`;
  // Claim first: of two concurrent commands, one would overwrite the other's value.
  claim(name, staging);
  try {
    const values = change(existingSecrets(name, dataDir));
    if (values === null) return false;
    writeFileSync(staging, values.join(','), { flush: true });
    renameSync(staging, path);
    // The new value must be durable before the server encrypts anything with it.
    flushNamesNow(folder);
    return true;
  } finally {
    rmSync(staging, { force: true });
  }
}

/** Creates a file that only this user can read. @throws ConfigError when it exists */
function claim(name: string, staging: string): void {
  try {
    writeFileSync(staging, '', { mode: 0o600, flag: 'wx' });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    throw new ConfigError([
      {
        setting: name,
        problem: `is being changed by another command, which has ${staging}; this command changed nothing`,
        fix: 'Run the command again. If no other command is running, one was killed: remove that file first.',
      },
    ]);
  }
}

export function newSecret(): string {
  return randomBytes(32).toString('base64url');
}

function secretIn<Made extends string | undefined>(
  dataDir: string,
  name: string,
  make: (path: string) => Made,
): string | Made {
  const folder = join(dataDir, secretsFolder);
  const path = join(folder, name.toLowerCase());
  let secret: string | Made;
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    checkIsPrivate(folder, folder);
    secret = readIfThere(path) ?? make(path);
    if (secret === undefined) return secret;
    checkIsPrivate(path, folder);
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    const trouble = fileTrouble('DATA_DIR', error);
    if (trouble === undefined) throw error;
    throw new ConfigError([trouble]);
  }
  if (listOf(secret).every(({ length }) => length >= minSecretLength) && listOf(secret).length > 0)
    return secret;
  throw new ConfigError([
    {
      setting: name,
      problem: `was generated in ${path}, but that file is now shorter than ${minSecretLength} characters`,
      fix: 'Restore the file from a backup of DATA_DIR. Without a backup, remove it: the next start generates a new secret, and the data that the old one protected is lost.',
    },
  ]);
}

/** POSIX only: other systems have no owner and mode to check. @throws ConfigError */
function checkIsPrivate(path: string, folder: string): void {
  const me = process.getuid?.();
  if (me === undefined) return;
  // Checks the owner of a symbolic link and the owner of its target.
  const owners = [lstatSync(path).uid, statSync(path).uid];
  const problem = owners.some((owner) => owner !== me)
    ? `${path} belongs to another user, who may know the secret`
    : (statSync(path).mode & 0o077) === 0
      ? undefined
      : `${path} can be read or written by other users`;
  if (problem === undefined) return;
  throw new ConfigError([
    {
      setting: 'DATA_DIR',
      problem,
      fix: `If no other user can have read it, run: chown -R ${me} ${folder} && chmod -R go= ${folder}. Otherwise remove the folder: the next start generates new secrets, and the data that the old ones protected is lost.`,
    },
  ]);
}

/** The file gets its name when it is complete, so an interrupted start leaves no partial secret. */
function makeSecret(path: string): string {
  const staging = `${path}.${randomUUID()}`;
  const secret = newSecret();
  try {
    writeFileSync(staging, secret, { mode: 0o600, flag: 'wx', flush: true });
    linkSync(staging, path);
    // Durable before anything is encrypted with it.
    flushNamesNow(dirname(path));
    return secret;
  } catch (error) {
    // Another process of this installation was first; its secret is used.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    return readFileSync(path, 'utf8').trim();
  } finally {
    rmSync(staging, { force: true });
  }
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
