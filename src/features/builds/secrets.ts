import { constants } from 'node:fs';
import { type FileHandle, lstat, open, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError } from '../../core/errors.ts';
import { staysInside } from '../../platform/links.ts';
import type { Repository } from '../repositories/repositories.ts';

/**
 * Secrets that an operator stores for one repository, as files: SECRETS_DIR/{repository id}/{name}. Postern reads nothing
 * above that folder, and no message contains a value.
 */
export type Secrets = {
  /**
   * The values of `references` (variable or file → name of the secret) for a branch that may use them.
   * @throws AppError store_unavailable when a file exists and cannot be read
   */
  read(
    repositoryId: string,
    references: Readonly<Record<string, string>>,
  ): Promise<
    | { readonly kind: 'read'; readonly values: Readonly<Record<string, string>> }
    /** Messages for people. A retry does not help until the secrets change. */
    | { readonly kind: 'missing'; readonly message: string; readonly fix: string }
  >;
  /**
   * The values of all `names` that are stored: logs must not show them.
   * @throws AppError store_unavailable, as read()
   */
  readStored(repositoryId: string, names: readonly string[]): Promise<readonly string[]>;
};

const maxBytes = 64 * 1024;
/** Shape of ids and names, which become parts of a path. */
const plainName = /^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$/;

/** `folder`: SECRETS_DIR; null when it is not set. */
export function secretsIn(folder: string | null): Secrets {
  return {
    async read(repositoryId, references) {
      const values: [string, string][] = [];
      for (const [variable, name] of Object.entries(references)) {
        const found = await readSecret(folder, repositoryId, name);
        if ('fix' in found) return { kind: 'missing', ...found };
        values.push([variable, found.value]);
      }
      return { kind: 'read', values: Object.fromEntries(values) };
    },
    async readStored(repositoryId, names) {
      const found = await Promise.all(names.map((name) => readSecret(folder, repositoryId, name)));
      return found.flatMap((one) => ('value' in one ? [one.value] : []));
    },
  };
}

/** `environmentDefaults.secretBranches`: names of branches, separated by commas. Default: only the default branch. */
export function mayUseSecrets(
  { defaultBranch, environmentDefaults }: Pick<Repository, 'defaultBranch' | 'environmentDefaults'>,
  branch: string,
): boolean {
  const { secretBranches } = environmentDefaults ?? {};
  if (secretBranches === undefined || secretBranches === null) return branch === defaultBranch;
  if (typeof secretBranches !== 'string') return false;
  return secretBranches.split(',').some((name) => name.trim() === branch);
}

/** The failure of a branch that references secrets without permission. */
export function secretsRefused(branch: string, references: Readonly<Record<string, string>>) {
  const names = [...new Set(Object.values(references))].join(', ');
  return {
    message: `The branch ${branch} may not use stored secrets, and its postern.yaml references ${names}.`,
    fix: 'Deploy the default branch, or add the branch to secretBranches in the Environment defaults of the repository.',
  };
}

type Words = { readonly message: string; readonly fix: string };

async function readSecret(
  folder: string | null,
  repositoryId: string,
  name: string,
): Promise<{ readonly value: string } | Words> {
  if (folder === null)
    return {
      message: `The secret ${name} cannot be read: SECRETS_DIR is not set.`,
      fix: `An operator sets SECRETS_DIR, and stores the value in the file ${repositoryId}/${name} below it.`,
    };
  const unusable = (problem: string): Words => ({
    message: `The secret ${name} ${problem}.`,
    fix: `An operator stores its value in the file ${repositoryId}/${name} below SECRETS_DIR.`,
  });
  if (![repositoryId, name].every((part) => plainName.test(part))) return unusable('has no valid name');
  const own = join(folder, repositoryId);
  try {
    // A link in place of the folder could lead to the secrets of another repository.
    if (!(await lstat(own)).isDirectory()) return unusable('is not stored for this repository');
    if (!(await staysInside(own, name)))
      return unusable('is a link that leads out of the folder of this repository');
    // Without O_NONBLOCK, a pipe would block this process.
    const file = await open(await realpath(join(own, name)), constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      return await readText(file, unusable);
    } finally {
      await file.close();
    }
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? '';
    if (code === 'ENOENT' || code === 'ENOTDIR') return unusable('is not stored for this repository');
    if (code === 'EACCES' || code === 'EPERM') return unusable('may not be read by the user of Postern');
    throw new AppError('store_unavailable', { cause: error });
  }
}

async function readText(
  file: FileHandle,
  unusable: (problem: string) => Words,
): Promise<{ readonly value: string } | Words> {
  if (!(await file.stat()).isFile()) return unusable('is not a file');
  const buffer = Buffer.alloc(maxBytes + 1);
  let length = 0;
  for (let read = 1; read > 0 && length < buffer.length; length += read)
    ({ bytesRead: read } = await file.read(buffer, length, buffer.length - length));
  if (length > maxBytes) return unusable(`has more than ${maxBytes} bytes`);
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(buffer.subarray(0, length));
  } catch {
    return unusable('is not UTF-8');
  }
  // No variable can contain NUL.
  if (text.includes('\0')) return unusable('contains a NUL character');
  return { value: text.replace(/\r?\n$/, '') };
}
