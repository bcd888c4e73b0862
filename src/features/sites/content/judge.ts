import { setImmediate as othersFirst } from 'node:timers/promises';
import type { Blob } from '../../../platform/blobs/blobs.ts';
import type { KeyFormat } from '../../keys/keys.ts';
import {
  entriesProblem,
  fileProblem,
  type LimitProblem,
  maxProblems,
  totalProblem,
  type UploadLimits,
} from './upload-limits.ts';
import { createNameRegister } from './name-register.ts';
import { extensionProblem, nameEntry, type PathProblemCode } from './paths.ts';

export type UploadProblem = {
  /** Path in the spelling of the upload, shortened; empty for a problem of the whole upload. */
  readonly path: string;
  readonly code:
    | PathProblemCode
    | 'bad_archive'
    | 'bad_entry'
    | 'name_collision'
    | LimitProblem['code']
    | 'too_many_problems'
    | 'credential_in_content'
    | 'wrong_content'
    | 'missing'
    | 'empty';
  /** Completes the sentence "This file …" or "The upload …", and says how to fix the problem. */
  readonly problem: string;
};

export type ProblemText = Omit<UploadProblem, 'path'>;

/** Entries of an upload that are not published. `rule`: the pattern of names that decided. */
export type LeftOut = { readonly rule: string; readonly count: number };

export type Received = {
  /** By path, in code point order. May be published only when `problems` is empty. */
  readonly files: ReadonlyMap<string, Blob>;
  /** Files and folders, including refused and ignored ones. */
  readonly entries: number;
  readonly problems: readonly UploadProblem[];
  readonly leftOut: readonly LeftOut[];
};

/**
 * Judges what may be in an upload, however it arrives: names, counts and sizes. Judging continues after a bad file, so
 * that one response names them all. It stops at once where continuing would cost more than a whole valid upload.
 */
export type Judge = {
  /** The path of a file whose bytes are needed; undefined for a folder or a refused or ignored entry. */
  admit(name: string, problem?: string): string | undefined;
  /** Counts bytes of all files together. Refuses the upload and stops judging it when they exceed the limit. */
  weigh(bytes: number): void;
  /** Judges the bytes read of one file so far. */
  fileProblem(bytes: number): LimitProblem | undefined;
  keep(path: string, blob: Blob): void;
  refuse(name: string, problem: ProblemText): void;
};

export type JudgeDeps = {
  readonly format: KeyFormat;
  /** Called with each Postern key in the upload. */
  readonly onKey: (value: string) => void;
};

/** Names judged again before other tasks get a turn. */
const namesAtOnce = 100;

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
  const leftOut = new Map<string, number>();
  let files = new Map<string, Blob>();
  let entries = 0;
  let bytes = 0;

  function refuse(path: string, { code, problem }: ProblemText): undefined {
    problems.push({ path: shown(path, format), code, problem });
    if (problems.length < maxProblems) return undefined;
    problems.push({ path: '', code: 'too_many_problems', problem: 'has more problems than this list shows' });
    throw new Stop();
  }

  function stop(problem: ProblemText): never {
    refuse('', problem);
    throw new Stop();
  }

  const judge: Judge = {
    refuse,
    admit(name, problem) {
      entries += 1;
      const tooMany = entriesProblem(entries, limits);
      if (tooMany !== undefined) stop(tooMany);
      const named = nameEntry(name);
      if (named.kind === 'ignored') {
        leftOut.set(named.rule, (leftOut.get(named.rule) ?? 0) + 1);
        return undefined;
      }
      for (const value of format.valuesIn(name)) {
        onKey(value);
        return refuse(name, keyInName);
      }
      if (named.kind === 'refused') return refuse(name, named);
      if (problem !== undefined) return refuse(name, { code: 'bad_entry', problem });
      const clash = register.add(named.kind, named.path);
      if (clash !== undefined) return refuse(name, { code: 'name_collision', problem: clash });
      if (named.kind === 'directory') return undefined;
      const wrongKind = extensionProblem(named.path, limits);
      return wrongKind === undefined ? named.path : refuse(name, wrongKind);
    },
    weigh(more) {
      bytes += more;
      const tooLarge = totalProblem(bytes, limits);
      if (tooLarge !== undefined) stop(tooLarge);
    },
    fileProblem: (own) => fileProblem(own, limits),
    keep: (path, blob) => void files.set(path, blob),
  };

  /** Checks that need the complete upload. */
  async function finish(): Promise<void> {
    if (files.size === 0 && problems.length === 0) stop({ code: 'empty', problem: 'contains no files' });
    const before = files;
    files = new Map([...unpacked(before)].sort(([one], [other]) => (one < other ? -1 : 1)));
    let seen = 0;
    for (const path of files.keys()) {
      if (before.has(path)) continue;
      if (seen % namesAtOnce === 0) await othersFirst();
      seen += 1;
      const named = nameEntry(path);
      if (named.kind === 'refused') refuse(path, named);
    }
  }

  try {
    await work(judge);
    await finish();
  } catch (error) {
    if (!(error instanceof Stop)) throw error;
  }
  return { files, entries, problems, leftOut: Array.from(leftOut, ([rule, count]) => ({ rule, count })) };
}

/** Checks the upload's own name, as its client sent it. */
export function keyInNameProblems(name: string, { format, onKey }: JudgeDeps): UploadProblem[] {
  const values = format.valuesIn(name);
  for (const value of values) onKey(value);
  return values.length === 0 ? [] : [{ path: shown(name, format), ...keyInName }];
}

export const keyInContent = {
  code: 'credential_in_content',
  problem: 'contains an API key; revoke that key and remove it',
} as const;

const keyInName = {
  code: 'credential_in_content',
  problem: 'has an API key in its name; revoke that key and rename the file',
} as const;

/** Makes a name fit to show: invisible characters are spelled out, and a key in it is masked. */
function shown(path: string, format: KeyFormat): string {
  let text = path.length > 200 ? `${path.slice(0, 200)}…` : path;
  for (const value of format.valuesIn(text)) text = text.replace(value, `${format.prefixOf('personal')}…`);
  return text.toWellFormed().replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, (character) => {
    const code = (character.codePointAt(0) ?? 0).toString(16).padStart(4, '0');
    return `\\u{${code}}`;
  });
}
