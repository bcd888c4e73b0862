import type { Blob } from '../../../platform/blobs/blobs.ts';
import type { KeyFormat } from '../../keys/keys.ts';
import { createNameRegister, nameEntry, type PathProblemCode } from './paths.ts';

/**
 * What may be in an upload, however it arrives: names, counts and sizes. Judging continues after a bad file, so that
 * one response names them all. It stops at once where continuing would cost more than a whole valid upload.
 */
export type UploadLimits = {
  /** Files and folders. */
  readonly maxFiles: number;
  readonly maxFileBytes: number;
  /** All files together, unpacked. */
  readonly maxExtractedBytes: number;
  /** Lower case, without the dot. A name without an extension is always taken. */
  readonly allowedExtensions: readonly string[];
};

export type UploadProblem = {
  /** As the upload spells it, shortened; empty for a problem of the whole upload. */
  readonly path: string;
  readonly code:
    | PathProblemCode
    | 'bad_archive'
    | 'bad_entry'
    | 'name_collision'
    | 'extension_not_allowed'
    | 'file_too_large'
    | 'upload_too_large'
    | 'too_many_files'
    | 'too_many_problems'
    | 'credential_in_content'
    | 'wrong_content'
    | 'missing'
    | 'bad_rule'
    | 'empty';
  /** Completes the sentence "This file …" or "The upload …", and says how to fix the problem. */
  readonly problem: string;
};

export type Received = {
  /** By path, in code point order. May be published only when `problems` is empty. */
  readonly files: ReadonlyMap<string, Blob>;
  /** Files and folders, including refused and ignored ones. */
  readonly entries: number;
  readonly problems: readonly UploadProblem[];
};

export type Judge = {
  /** The path of a file whose bytes are wanted; undefined for an entry that is a folder, refused or ignored. */
  admit(name: string, problem?: string): string | undefined;
  /** Counts bytes of all files together. False when they exceed the limit. */
  weigh(bytes: number): boolean;
  /** Whether the bytes read of one file so far exceed its limit. */
  isTooLong(bytes: number): boolean;
  keep(path: string, blob: Blob): void;
  refuse(name: string, code: UploadProblem['code'], problem: string): void;
  refuseTooLong(name: string): void;
  /** Refuses the upload and stops judging it. */
  stopTooHeavy(): never;
};

export type JudgeDeps = {
  readonly format: KeyFormat;
  /** Called with each of our keys that the upload contains. */
  readonly onKey: (value: string) => void;
};

export const maxProblems = 100;

/** Thrown after its problem is recorded; judging of this upload stops. */
class Stop extends Error {}

/**
 * Runs `work`, which shows every entry to a judge, and returns the result. `unpacked` may rename the kept files once
 * all are there; the names are then judged again.
 */
export async function judged(
  limits: UploadLimits,
  { format, onKey }: JudgeDeps,
  work: (judge: Judge) => Promise<void> | void,
  unpacked: (files: ReadonlyMap<string, Blob>) => ReadonlyMap<string, Blob> = (files) => files,
): Promise<Received> {
  const problems: UploadProblem[] = [];
  const register = createNameRegister();
  let files = new Map<string, Blob>();
  let entries = 0;
  let bytes = 0;

  function refuse(path: string, code: UploadProblem['code'], problem: string): undefined {
    problems.push({ path: shown(path, format), code, problem });
    if (problems.length < maxProblems) return undefined;
    problems.push({ path: '', code: 'too_many_problems', problem: 'has more problems than this list shows' });
    throw new Stop();
  }

  function stop(code: UploadProblem['code'], problem: string): never {
    refuse('', code, problem);
    throw new Stop();
  }

  const judge: Judge = {
    refuse,
    admit(name, problem) {
      entries += 1;
      if (entries > limits.maxFiles)
        stop('too_many_files', `has more than ${limits.maxFiles} files and folders`);
      const named = nameEntry(name);
      if (named.kind === 'ignored') return undefined;
      for (const value of format.valuesIn(name)) {
        onKey(value);
        return refuse(name, 'credential_in_content', keyInName);
      }
      if (named.kind === 'refused') return refuse(name, named.code, named.problem);
      if (problem !== undefined) return refuse(name, 'bad_entry', problem);
      const clash = register.add(named.kind, named.path);
      if (clash !== undefined) return refuse(name, 'name_collision', clash);
      if (named.kind === 'directory') return undefined;
      const problemOfKind = extensionProblem(named.path, limits);
      if (problemOfKind !== undefined) return refuse(name, 'extension_not_allowed', problemOfKind);
      return named.path;
    },
    weigh(more) {
      bytes += more;
      return bytes <= limits.maxExtractedBytes;
    },
    isTooLong: (own) => own > limits.maxFileBytes,
    keep: (path, blob) => void files.set(path, blob),
    refuseTooLong: (name) => refuse(name, 'file_too_large', `is larger than ${limits.maxFileBytes} bytes`),
    stopTooHeavy: () => stop('upload_too_large', `unpacks to more than ${limits.maxExtractedBytes} bytes`),
  };

  /** Checks that need the complete upload. */
  function finish(): void {
    if (files.size === 0 && problems.length === 0) stop('empty', 'contains no files');
    const before = files;
    files = new Map([...unpacked(before)].sort(([one], [other]) => (one < other ? -1 : 1)));
    for (const path of files.keys()) {
      if (before.has(path)) continue;
      const named = nameEntry(path);
      if (named.kind === 'refused') refuse(path, named.code, named.problem);
    }
  }

  try {
    await work(judge);
    finish();
  } catch (error) {
    if (!(error instanceof Stop)) throw error;
  }
  return { files, entries, problems };
}

/** Undefined when a file may have this name. */
export function extensionProblem(
  path: string,
  { allowedExtensions }: Pick<UploadLimits, 'allowedExtensions'>,
): string | undefined {
  const extension = extensionOf(path);
  if (extension === undefined || allowedExtensions.includes(extension)) return undefined;
  return `ends in .${extension}, which is not allowed here`;
}

/** Checks the upload's own name, as its client sent it. */
export function keyInNameProblems(name: string, { format, onKey }: JudgeDeps): UploadProblem[] {
  const values = format.valuesIn(name);
  for (const value of values) onKey(value);
  return values.length === 0
    ? []
    : [{ path: shown(name, format), code: 'credential_in_content', problem: keyInName }];
}

const keyInName = 'has an API key in its name; revoke that key and rename the file';

/** Undefined for names without an extension, such as `LICENSE` and `.nojekyll`. */
function extensionOf(path: string): string | undefined {
  return /[^/]\.([^./]+)$/.exec(path)?.[1]?.toLowerCase();
}

/** Makes a name fit to show: invisible characters are spelled out, and a key in it is masked. */
function shown(path: string, format: KeyFormat): string {
  let text = path.length > 200 ? `${path.slice(0, 200)}…` : path;
  for (const value of format.valuesIn(text)) text = text.replace(value, `${format.prefixOf('personal')}…`);
  return text.toWellFormed().replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (character) => {
    const code = (character.codePointAt(0) ?? 0).toString(16).padStart(4, '0');
    return `\\u{${code}}`;
  });
}
