import { maskKeys } from '../core/key-shape.ts';
import type { ConfigMistake } from './config-error.ts';

/** What is wrong with a file or folder that a setting names, derived from the file system's error. */
export type Words = readonly [problem: string, fix: string];

const fileWords: Readonly<Record<string, Words>> = {
  EACCES: [
    'this user may not read and write there',
    'Give the user of this process the folder and all in it.',
  ],
  EPERM: ['this user may not do that there', 'Give the user of this process the folder and all in it.'],
  EROFS: ['lies on a file system that is read-only', 'Choose a folder that can be written.'],
  ENOSPC: ['lies on a disk that is full', 'Make room on it.'],
  EDQUOT: ['lies on a disk whose quota is used up', 'Make room on it.'],
  ENOTDIR: ['leads through a file as if it were a folder', 'Fix the path.'],
  EEXIST: ['is a file, and should be a folder', 'Choose a folder.'],
  ELOOP: ['leads in a circle of links', 'Fix the links.'],
  ENAMETOOLONG: ['is too long a path', 'Choose a shorter one.'],
  ENOENT: ['lacks a file that should be there', 'Choose a folder, or restore it from a copy.'],
};

const namedFileWords: Readonly<Record<string, Words>> = {
  ENOENT: ['there is no such file', 'Fix the path; it counts from the folder that package.json is in.'],
  EISDIR: ['is a folder', 'Name the file itself.'],
  ENOTDIR: ['leads through a file as if it were a folder', 'Fix the path.'],
  EACCES: ['this user may not read it', 'Give the user of this process the right to.'],
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
