import { createHash } from 'node:crypto';
import { closeSync, existsSync, openSync, readdirSync, readFileSync, readSync, statSync } from 'node:fs';
import { join } from 'node:path';
import ignore from 'ignore';
import { printable } from '../print/output.ts';

/** A file to publish. `path` has slashes and starts in the published folder. */
export type LocalFile = { readonly path: string; readonly file: string; readonly size: number };
export type HashedFile = LocalFile & {
  readonly sha256: string;
  /** Whether it contains what every key has after its product word. */
  readonly mayHaveKey: boolean;
};

/** Files for Postern, other hosts, git and file managers, which are published only by mistake. */
const neverPublished = [
  '.git',
  '.gitignore',
  '.posternignore',
  'postern.site.json',
  'netlify.toml',
  'vercel.json',
  '.DS_Store',
  '__MACOSX',
  'Thumbs.db',
  'desktop.ini',
];

/** Names of the files whose rules leave something out, and what is left out without a rule. */
type Leaving = { readonly ignoreFiles: readonly string[]; readonly names: readonly string[] };

/** Files and folders that are not published, and the rule that decided it. */
export type LeftOut = {
  /** Such as `.posternignore: *.map`. */
  readonly rule: string;
  readonly count: number;
  /** The first of them; a folder ends with a slash. */
  readonly first: string;
};
const bytesAtOnce = 1024 * 1024;
/** Text that follows the product word in every key (docs/reference/contract.md#4-keys). */
const keyMiddles = ['_pat_', '_svc_', '_fed_', '_upl_'];
const overlap = 4;

/**
 * What a deploy leaves out. .gitignore says what does not belong in git, and an output folder is exactly that. So it
 * counts only where the folder is the root of a work tree (decision 0082).
 */
function leavingOf(folder: string): Leaving {
  const isWorkTree = existsSync(join(folder, '.git'));
  return {
    ignoreFiles: isWorkTree ? ['.gitignore', '.posternignore'] : ['.posternignore'],
    names: neverPublished,
  };
}

type Found = {
  readonly files: LocalFile[];
  readonly links: string[];
  /** Paths whose names are not UTF-8, so that the text does not open them. */
  readonly unreadable: string[];
  readonly leftOut: LeftOut[];
};

/**
 * The files of the folder, without what the ignore files in it leave out, and without links, which could lead elsewhere.
 * It asks the disk for one thing after the other: with thousands of small files, promises take ten times as long as the disk.
 */
export function filesOf(folder: string, leaving = leavingOf(folder)): Found {
  const files: LocalFile[] = [];
  const links: string[] = [];
  const unreadable: string[] = [];
  const leftOut = new Map<string, { count: number; first: string }>();

  function leaveOut(rule: string, path: string): void {
    const known = leftOut.get(rule);
    leftOut.set(rule, { count: (known?.count ?? 0) + 1, first: known?.first ?? path });
  }

  function visit(inside: string, above: string, rules: readonly Rules[]): void {
    const entries = readdirSync(inside, { withFileTypes: true });
    // One set of rules for the folder: .posternignore may publish again what .gitignore leaves out.
    const own = ignore();
    const present = leaving.ignoreFiles.filter((name) => entries.some((entry) => entry.name === name));
    for (const name of present) own.add(patternsIn(join(inside, name), `${above}${name}`));
    const all = present.length === 0 ? rules : [...rules, { above, rule: own }];
    for (const entry of entries.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
      const path = `${above}${entry.name}`;
      const named = entry.isDirectory() ? `${path}/` : path;
      if (leaving.names.includes(entry.name)) {
        leaveOut('never published', named);
        continue;
      }
      const by = ruleFor(named, all);
      if (by !== undefined) {
        leaveOut(by, named);
        continue;
      }
      const file = join(inside, entry.name);
      if (entry.name.includes('\ufffd') && !existsSync(file)) unreadable.push(path);
      else if (entry.isDirectory()) visit(file, `${path}/`, all);
      else if (entry.isFile()) files.push({ path, file, size: statSync(file).size });
      else {
        links.push(path);
        leaveOut('no regular file', path);
      }
    }
  }

  visit(folder, '', []);
  return { files, links, unreadable, leftOut: [...leftOut].map(([rule, some]) => ({ rule, ...some })) };
}

/** The rule that leaves out the path, as `file: pattern`. */
function ruleFor(path: string, rules: readonly Rules[]): string | undefined {
  for (const { above, rule } of rules) {
    const { ignored, rule: by } = rule.test(path.slice(above.length));
    if (ignored) return `${by?.mark ?? ''}: ${by?.pattern ?? ''}`;
  }
  return undefined;
}

const maxRulesShown = 10;

/** A line for each rule; empty when nothing was left out. */
export function leftOutText(leftOut: readonly LeftOut[]): string {
  if (leftOut.length === 0) return '';
  const shown = leftOut.slice(0, maxRulesShown).map(({ rule, count, first }) => {
    const paths = count === 1 ? first : `${count} files and folders, such as ${first}`;
    return `  ${printable(rule)}: ${printable(paths)}`;
  });
  const others = leftOut.length - shown.length;
  const end = others === 0 ? [] : [`  by ${others} more rules, which --json lists`];
  return `${['Left out:', ...shown, ...end].join('\n')}\n`;
}

/** Empty for a path that is not a file, such as a folder or a link to nowhere. */
function patternsIn(path: string, mark: string): { pattern: string; mark: string }[] {
  try {
    const lines = readFileSync(path, 'utf8')
      .replace(/^\ufeff/, '')
      .split(/\r?\n/);
    return lines.map((pattern) => ({ pattern, mark }));
  } catch {
    return [];
  }
}

/** The rules in the ignore files of a folder; `above`: that folder, as the paths of files begin. */
type Rules = { readonly above: string; readonly rule: ReturnType<typeof ignore> };

/** With the SHA-256 of each; `size` is what was read. One buffer serves all, and no promise is made: see filesOf(). */
export function hashed(files: readonly LocalFile[]): HashedFile[] {
  // The buffer begins with the end of the previous read, because a key may lie across two reads.
  const buffer = Buffer.allocUnsafeSlow(overlap + bytesAtOnce);
  return files.map((one) => {
    const hash = createHash('sha256');
    const descriptor = openSync(one.file, 'r');
    let size = 0;
    let mayHaveKey = false;
    const next = () => readSync(descriptor, buffer, overlap, bytesAtOnce, null);
    buffer.fill(0, 0, overlap);
    try {
      for (let read = next(); read > 0; read = next()) {
        hash.update(buffer.subarray(overlap, overlap + read));
        const seen = buffer.subarray(0, overlap + read);
        mayHaveKey ||= keyMiddles.some((middle) => seen.includes(middle));
        buffer.copyWithin(0, read, read + overlap);
        size += read;
      }
    } finally {
      closeSync(descriptor);
    }
    return { ...one, size, sha256: hash.digest('hex'), mayHaveKey };
  });
}
