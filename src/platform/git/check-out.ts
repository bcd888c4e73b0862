import { open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { staysInside } from '../links.ts';
import { failed, failedRun, type GitAnswer, ok } from './answers.ts';
import { gitOf, type MirrorAccess, reach } from './mirror.ts';
import type { GitRun } from './run-git.ts';

/** Files of a commit. */
export type Selection = {
  readonly branch: string;
  /** A commit of the branch, in full. */
  readonly sha: string;
  /** From the root of the repository, as gitglossary(7) says of `glob`: `*` stays in a folder, `**` does not. */
  readonly patterns: readonly string[];
  /** Patterns of files to leave out. */
  readonly except?: readonly string[];
};

/** `tree`: git's hash of a folder with these files alone, in hexadecimal digits. */
export type Selected = { readonly tree: string };

type Limits = { readonly maxFiles: number; readonly maxBytes: number };
type Entry = { readonly mode: string; readonly blob: string; readonly path: string };

const maxListBytes = 32 * 1024 * 1024;
/** A pointer is shorter (https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md). */
const maxPointerBytes = 1_024;
const pointerStart = 'version https://git-lfs.github.com/spec/v1\n';

/**
 * Finds the files of a selection, and without content computes their tree. With `folder`, an empty one, it also writes them
 * there. Git writes them, so its own protection against hostile paths applies; attributes that need a program do nothing.
 */
export async function select(
  mirror: string,
  selection: Selection,
  folder: string | null,
  access: MirrorAccess,
  limits: Limits,
): Promise<GitAnswer<Selected>> {
  const index = join(mirror, 'index');
  const git = gitOf(mirror, access);
  const inIndex = (args: readonly string[], input = '') =>
    git(['--work-tree', folder ?? mirror, ...args], {
      input,
      maxBytes: maxListBytes,
      env: { GIT_INDEX_FILE: index },
    });

  const reached = await reach(mirror, selection, access);
  if (reached.kind === 'failed') return reached;
  await rm(index, { force: true });
  const read = await inIndex(['read-tree', selection.sha]);
  if (read.kind !== 'done') return failedRun(read);
  const pathspecs = [
    ...selection.patterns.map((pattern) => `:(top,glob)${pattern}`),
    ...(selection.except ?? []).map((pattern) => `:(top,glob,exclude)${pattern}`),
  ];
  const listed = await inIndex(['ls-files', '--stage', '-z', '--', ...pathspecs]);
  if (listed.kind !== 'done') return failedRun(listed);
  const entries = entriesIn(listed.output.toString());
  const problem = problemOf(entries, limits);
  if (problem !== undefined) return problem;

  // A second index, with the selected files alone.
  await rm(index, { force: true });
  const kept = await inIndex(['update-index', '-z', '--index-info'], listed.output.toString());
  if (kept.kind !== 'done') return failedRun(kept);
  const written = await inIndex(['write-tree', '--missing-ok']);
  if (written.kind !== 'done') return failedRun(written);
  const tree = written.output.toString().trim();
  if (folder === null) return ok({ tree });

  const blobs = [...new Set(entries.map(({ blob }) => blob))];
  const fetched = await fetchMissing(blobs, git, limits);
  if (fetched !== undefined) return fetched;
  const checkedOut = await inIndex(['checkout-index', '--all', '--quiet']);
  if (checkedOut.kind !== 'done') return failedRun(checkedOut);
  return (await problemInFiles(entries, folder)) ?? ok({ tree });
}

function entriesIn(listing: string): Entry[] {
  return listing.split('\0').flatMap((line) => {
    const [, mode = '', blob = '', path = ''] = /^(\d+) ([0-9a-f]+) 0\t([^]*)$/.exec(line) ?? [];
    return path === '' ? [] : [{ mode, blob, path }];
  });
}

function problemOf(entries: readonly Entry[], { maxFiles }: Limits): GitAnswer<never> | undefined {
  if (entries.length === 0) return failed('no_such_files');
  if (entries.length > maxFiles) return failed('too_large');
  const submodule = entries.find(({ mode }) => mode === '160000');
  return submodule === undefined ? undefined : failed('submodule', submodule.path);
}

type RunGit = ReturnType<typeof gitOf>;

/** One request for all content. Git itself would ask for the files one by one. Undefined: everything is there. */
async function fetchMissing(
  blobs: readonly string[],
  git: RunGit,
  { maxBytes }: Limits,
): Promise<GitAnswer<never> | undefined> {
  const input = `${blobs.join('\n')}\n`;
  const options = { input, maxBytes: maxListBytes, isOffline: true };
  const known = await git(['cat-file', '--batch-check=%(objectsize)'], options);
  if (known.kind !== 'done') return failedRun(known);
  const missing = linesOf(known).filter((line) => line.endsWith(' missing'));
  if (missing.length > 0) {
    const fetched = await git(
      ['fetch', '--quiet', '--no-tags', '--no-write-fetch-head', '--filter=blob:none', '--stdin', 'origin'],
      {
        input: `${missing.map((line) => line.split(' ')[0]).join('\n')}\n`,
        // Nothing that is here helps the server: it is asked for objects, not for the way to them.
        config: { 'fetch.negotiationAlgorithm': 'noop' },
      },
    );
    if (fetched.kind !== 'done') return failedRun(fetched);
  }
  const sizes = await git(['cat-file', '--batch-check=%(objectsize)'], options);
  if (sizes.kind !== 'done') return failedRun(sizes);
  const bytes = linesOf(sizes).reduce((sum, line) => sum + Number(line), 0);
  // Not a number: the server left content out.
  return bytes <= maxBytes ? undefined : failed(Number.isNaN(bytes) ? 'unreachable' : 'too_large');
}

function linesOf(run: GitRun & { kind: 'done' }): string[] {
  return run.output.toString().trim().split('\n');
}

async function problemInFiles(
  entries: readonly Entry[],
  folder: string,
): Promise<GitAnswer<never> | undefined> {
  for (const { mode, path } of entries) {
    if (mode === '120000') {
      if (!(await staysInside(folder, path))) return failed('link_outside', path);
    } else if (await isPointer(join(folder, path))) return failed('lfs_pointer', path);
  }
  return undefined;
}

async function isPointer(file: string): Promise<boolean> {
  const handle = await open(file);
  try {
    if ((await handle.stat()).size > maxPointerBytes) return false;
    return (await handle.readFile('latin1')).startsWith(pointerStart);
  } finally {
    await handle.close();
  }
}
