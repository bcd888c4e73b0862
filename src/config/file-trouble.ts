import { maskKeys } from '../core/key-shape.ts';
import type { ConfigMistake } from './config-error.ts';

/** What is wrong with a file or folder that a setting names, derived from the file system's error. */
export type Words = readonly [problem: string, fix: string];

const fileWords: Readonly<Record<string, Words>> = {
  EACCES: [
    'this user may not read and write in this folder',
    'Make the user of this process the owner of the folder and of everything in it.',
  ],
  EPERM: [
    'this user does not have the required permission in this folder',
    'Make the user of this process the owner of the folder and of everything in it.',
  ],
  EROFS: ['is on a read-only file system', 'Choose a folder in which this process can write.'],
  ENOSPC: ['is on a full disk', 'Free some space on the disk.'],
  EDQUOT: ['is on a disk whose quota is used up', 'Free some space, or raise the quota.'],
  ENOTDIR: ['has a file in its path where a folder is needed', 'Fix the path.'],
  EEXIST: ['is a file; it must be a folder', 'Choose a folder.'],
  ELOOP: ['contains symbolic links that form a loop', 'Fix the links.'],
  ENAMETOOLONG: ['has a path that is too long', 'Choose a shorter path.'],
  ENOENT: ['lacks a required file', 'Choose another folder, or restore this one from a backup.'],
};

const namedFileWords: Readonly<Record<string, Words>> = {
  ENOENT: [
    'there is no such file',
    'Fix the path. A relative path starts at the folder that contains package.json.',
  ],
  EISDIR: ['is a folder', 'Give the path of a file.'],
  ENOTDIR: ['has a file in its path where a folder is needed', 'Fix the path.'],
  EACCES: ['this user may not read the file', 'Give the user of this process permission to read it.'],
};

/** What is wrong with a file or folder; undefined when the error is not from the file system. */
export function fileTrouble(setting: string, error: unknown): ConfigMistake | undefined {
  const words = setting === 'FILE' ? namedFileWords : fileWords;
  for (const one of causesOf(error)) {
    const found = words[codeOf(one)];
    if (found) return { setting, problem: `${found[0]} (${withoutSecrets(one.message)})`, fix: found[1] };
  }
  return undefined;
}

/** The error and its causes, outermost first; for several attempts (IPv6, IPv4) the errors of each. */
export function causesOf(error: unknown): Error[] {
  if (!(error instanceof Error)) return [];
  const attempts = error instanceof AggregateError ? error.errors : [];
  return [error, ...attempts.flatMap(causesOf), ...causesOf(error.cause)].filter(
    (one) => one.message !== '' || codeOf(one) !== '',
  );
}

export function codeOf(error: Error): string {
  return 'code' in error && typeof error.code === 'string' ? error.code : '';
}

/** One line, without keys and without the text before an @ in an address. */
export function withoutSecrets(text: string): string {
  return maskKeys(text.replaceAll(/\/\/[^\s/]*@/g, '//…@').replaceAll(/\s+/g, ' ')).trim();
}
