import { readFileSync } from 'node:fs';
import type { Call } from '../http/call.ts';
import { Failure } from '../core/failure.ts';
import { findKeys } from '../scan/find-keys.ts';
import type { HashedFile } from '../files/folder.ts';

/**
 * What the server would refuse, found before a site is created and before a byte is sent: all problems at once. The server
 * judges again. Names are judged here only where every version of the server refuses them.
 */
export type FileProblem = { readonly path: string; readonly code: string; readonly problem: string };

export type Capabilities = {
  readonly upload: {
    readonly maxFileBytes: number;
    readonly maxExtractedBytes: number;
    readonly maxFiles: number;
    /** Empty: any. */
    readonly allowedExtensions: readonly string[];
    readonly forbiddenExtensions?: readonly string[];
  };
  readonly ttl: { readonly enabled: boolean; readonly maxHours: number };
};

/** The maximum that a response of the server names, too. */
const maxProblems = 100;
const maxSegmentBytes = 255;
const maxPathBytes = 1_024;
const maxFolders = 32;

/** @throws Failure that names every problem */
export async function checkFiles(
  files: readonly HashedFile[],
  { unreadable, word, call }: { unreadable: readonly string[]; word: string; call: Call },
): Promise<Capabilities> {
  const capabilities = await call<Capabilities>('GET', '/sites/capabilities');
  const notUtf8 = unreadable.map((path) => ({
    path,
    code: 'bad_path',
    problem: 'has a name that is not UTF-8; rename it',
  }));
  const problems = [...notUtf8, ...problemsOf(files, capabilities.upload, word)];
  if (problems.length === 0) return capabilities;
  throw refusal(problems);
}

function refusal(problems: readonly FileProblem[]): Failure {
  const hasKey = problems.some(({ code }) => code === 'credential_in_content');
  const count = problems.length === 1 ? 'One problem was' : `${problems.length} problems were`;
  return new Failure(
    hasKey ? 'credential_in_content' : 'upload_rejected',
    1,
    `${count} found in the files. Nothing was sent.`,
    {
      hint: 'Correct the files below, or leave them out with .posternignore.',
      details: { files: problems.slice(0, maxProblems) },
    },
  );
}

export function problemsOf(
  files: readonly HashedFile[],
  limits: Capabilities['upload'],
  word: string,
): FileProblem[] {
  const entries = files.length + foldersOf(files).size;
  const bytes = files.reduce((total, { size }) => total + size, 0);
  return [
    ...problem(
      '',
      'too_many_files',
      entries > limits.maxFiles && `has ${entries} files and folders; ${limits.maxFiles} are allowed`,
    ),
    ...problem(
      '',
      'upload_too_large',
      bytes > limits.maxExtractedBytes && `has ${bytes} bytes; ${limits.maxExtractedBytes} are allowed`,
    ),
    ...files.flatMap((file) => [
      ...problem(file.path, 'bad_path', nameProblem(file.path)),
      ...problem(file.path, 'private_file', secretProblem(file.path)),
      ...problem(file.path, 'extension_not_allowed', extensionProblem(file.path, limits)),
      ...problem(
        file.path,
        'file_too_large',
        file.size > limits.maxFileBytes && `has ${file.size} bytes; ${limits.maxFileBytes} are allowed`,
      ),
      ...problem(
        file.path,
        'credential_in_content',
        hasKey(file, word) && 'contains an API key; revoke that key and remove it',
      ),
    ]),
  ];
}

function problem(path: string, code: string, text: string | false): FileProblem[] {
  return text === false ? [] : [{ path, code, problem: text }];
}

function foldersOf(files: readonly HashedFile[]): Set<string> {
  const folders = new Set<string>();
  for (const { path } of files) {
    for (let slash = path.indexOf('/'); slash >= 0; slash = path.indexOf('/', slash + 1))
      folders.add(path.slice(0, slash));
  }
  return folders;
}

function nameProblem(path: string): string | false {
  const segments = path.split('/');
  if (/%(?:2e|2f|5c|00|25)/i.test(path)) return 'contains an encoded dot, slash or percent sign; rename it';
  if (path.includes('\\')) return 'contains a backslash; rename it';
  if (/\p{Cc}/u.test(path)) return 'contains a control character; rename it';
  if (segments.length > maxFolders) return `is more than ${maxFolders} folders deep`;
  if (Buffer.byteLength(path) > maxPathBytes) return `has a path longer than ${maxPathBytes} bytes`;
  const isLong = segments.some((segment) => Buffer.byteLength(segment) > maxSegmentBytes);
  return isLong && `has a name longer than ${maxSegmentBytes} bytes`;
}

/** Without dots and spaces at the end, which Windows strips. */
function bareName(name: string): string {
  return name.replace(/(?<![. ])[. ]+$/, '');
}

/** Only a file can be an example; a folder of this name contains something else. */
const exampleName = /^\.env\.(?:example|sample|template)$/i;
const secretNames =
  /^(?:\.env(?:\..*)?|\.git|\.svn|\.hg|\.ssh|\.aws|\.gnupg|\.npmrc|\.netrc|\.pgpass|\.htpasswd|id_rsa|id_ed25519)$/i;

function secretProblem(path: string): string | false {
  const segments = path.split('/').map(bareName);
  const secret = segments.find(
    (segment, at) => secretNames.test(segment) && !(at === segments.length - 1 && exampleName.test(segment)),
  );
  return (
    secret !== undefined && `${secret} usually contains secrets or history and is not published; leave it out`
  );
}

function extensionProblem(
  path: string,
  { allowedExtensions, forbiddenExtensions }: Capabilities['upload'],
): string | false {
  const extension = /[^/]\.([^./]+)$/.exec(bareName(path))?.[1]?.toLowerCase();
  if (extension === undefined) return false;
  const isAllowed = allowedExtensions.length === 0 || allowedExtensions.includes(extension);
  if (isAllowed && !forbiddenExtensions?.includes(extension)) return false;
  return `ends in .${extension}, which is not allowed here`;
}

/** Searches only files in which hashed() found a part that every key has. */
function hasKey({ file, mayHaveKey }: HashedFile, word: string): boolean {
  return (
    mayHaveKey && findKeys(readFileSync(file, 'latin1'), word).some(({ key }) => key.startsWith(`${word}_`))
  );
}
