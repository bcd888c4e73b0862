import { extensionProblem, foldedForm, nameEntry } from '../../../../src/features/sites/content/paths.ts';
import type { Schemas } from '../../api/contract.ts';
import { bytesInWords } from '../../shell/bytes.ts';
import type { Picked, PickedFile } from './picked.ts';
import { pagesOf, redirectsFile, withStartRule } from './start-rule.ts';

/**
 * Finds reasons for a refusal before anything is sent: names, counts, sizes, quotas. The server checks again, and only it reads the files.
 */
export type Finding = { readonly path: string; readonly problem: string };

export type Checked = {
  readonly picked: Picked;
  /** The files to send, by their new paths. Empty for archives, which the server unpacks. */
  readonly files: readonly PickedFile[];
  readonly bytes: number;
  /** Each prevents the upload. */
  readonly problems: readonly Finding[];
  /** Skipped with a note: secrets and history. */
  readonly leftOut: readonly Finding[];
  /** Skipped files of file managers. */
  readonly ignored: number;
  readonly warnings: readonly string[];
  /** Pages to choose a start page from; empty where there is one. */
  readonly pages: readonly string[];
  /** A folder inside that has a start page while the top has none. */
  readonly startFolder: string | null;
};

type Capabilities = Schemas['SiteCapabilities'];

export function check(picked: Picked, capabilities: Capabilities, isNew: boolean): Checked {
  const judged =
    picked.kind === 'folder' ? checkFolder(picked, capabilities) : checkSingle(picked, capabilities);
  const { quotas } = capabilities;
  const problems = [...judged.problems];
  if (isNew && quotas.sitesUsed >= quotas.sitesPerOwner)
    problems.push({ path: '', problem: `You have ${quotas.sitesUsed} sites, which is the limit.` });
  if (judged.bytes > quotas.bytesPerOwner)
    problems.push({
      path: '',
      problem: `It is larger than your whole storage quota: ${bytesInWords(quotas.bytesPerOwner)}.`,
    });
  const warnings = [...judged.warnings];
  if (judged.bytes <= quotas.bytesPerOwner && judged.bytes + quotas.bytesUsed > quotas.bytesPerOwner)
    warnings.push(
      `It may not fit: ${bytesInWords(quotas.bytesUsed)} of ${bytesInWords(quotas.bytesPerOwner)} are in use. Files that you already store take no additional space.`,
    );
  return { ...judged, problems, warnings };
}

function checkSingle(picked: Exclude<Picked, { kind: 'folder' }>, { upload }: Capabilities): Checked {
  const { size } = picked.file;
  const problems: Finding[] = [];
  if (size === 0) problems.push({ path: picked.file.name, problem: 'is empty' });
  const most =
    picked.kind === 'page' ? Math.min(upload.maxFileBytes, upload.maxUploadBytes) : upload.maxUploadBytes;
  if (size > most) problems.push({ path: picked.file.name, problem: `is larger than ${bytesInWords(most)}` });
  return {
    picked,
    files: [],
    bytes: size,
    problems,
    leftOut: [],
    ignored: 0,
    warnings: [],
    pages: [],
    startFolder: null,
  };
}

function checkFolder(picked: Extract<Picked, { kind: 'folder' }>, { upload }: Capabilities): Checked {
  const problems: Finding[] = [];
  const leftOut = new Map<string, Finding>();
  const seen = new Set<string>();
  const files: PickedFile[] = [];
  let ignored = 0;
  let bytes = 0;
  for (const { path: raw, file } of unwrapped(picked.files)) {
    const named = nameEntry(raw);
    if (named.kind === 'ignored') ignored += 1;
    else if (named.kind === 'refused' && named.code === 'private_file') {
      leftOut.set(named.secret, { path: named.secret, problem: 'usually contains secrets or history' });
    } else if (named.kind === 'refused') problems.push({ path: raw, problem: named.problem });
    else {
      const problem = fileProblem(named.path, file.size, upload, seen);
      if (problem !== undefined) problems.push({ path: raw, problem });
      files.push({ path: named.path, file });
      bytes += file.size;
    }
  }
  const entries = files.length + foldersOf(files);
  if (files.length === 0) problems.push({ path: '', problem: 'It contains no file that can be published.' });
  if (entries > upload.maxFiles)
    problems.push({
      path: '',
      problem: `It has ${entries} files and folders; ${upload.maxFiles} are allowed.`,
    });
  if (bytes > upload.maxExtractedBytes)
    problems.push({
      path: '',
      problem: `It is ${bytesInWords(bytes)}; ${bytesInWords(upload.maxExtractedBytes)} are allowed.`,
    });
  const hasStart = files.some(({ path }) => path === 'index.html');
  const startPage = hasStart ? null : (picked.startPage ?? null);
  return {
    picked,
    files: startPage === null ? files : withStartRule(files, startPage),
    bytes,
    problems,
    leftOut: [...(picked.without ?? []), ...leftOut.values()],
    ignored,
    warnings: [
      ...(hasStart || files.length === 0 || startPage !== null ? [] : [noStartWords(files)]),
      ...similarNames(files),
    ],
    pages: hasStart ? [] : pagesOf(files.map(({ path }) => path)),
    startFolder: hasStart || startPage !== null ? null : startFolderOf(files),
  };
}

function noStartWords(files: readonly PickedFile[]): string {
  return files.some(({ path }) => path === redirectsFile)
    ? 'There is no index.html at the top. Unless _redirects has a rule for “/”, the site’s address will show “Not found”.'
    : 'There is no index.html at the top, so the site’s address will show “Not found”.';
}

function similarNames(files: readonly PickedFile[]): string[] {
  const seen = new Map<string, string>();
  for (const { path } of files) {
    const other = seen.get(foldedForm(path));
    if (other !== undefined && other !== path)
      return [`Some names differ only in case or look the same, such as ${other} and ${path}.`];
    seen.set(foldedForm(path), path);
  }
  return [];
}

/** The folder without the files that cannot be published; what else is wrong stays. */
export function withoutRefused({ picked, problems }: Checked): Picked {
  if (picked.kind !== 'folder') return picked;
  const refused = problems.filter(({ path }) => path !== '');
  const gone = new Set(refused.map(({ path }) => path));
  const files = unwrapped(picked.files).filter(({ path }) => !gone.has(path));
  return { ...picked, files, without: [...(picked.without ?? []), ...refused] };
}

function fileProblem(
  path: string,
  size: number,
  upload: Capabilities['upload'],
  seen: Set<string>,
): string | undefined {
  if (seen.has(path)) return 'appears twice in the upload';
  seen.add(path);
  const isTooLarge = size > upload.maxFileBytes;
  return (
    extensionProblem(path, upload)?.problem ??
    (isTooLarge ? `is larger than ${bytesInWords(upload.maxFileBytes)}` : undefined)
  );
}

/** Removes a folder around everything if it has the start page, as the server does for an archive. */
function unwrapped(files: readonly PickedFile[]): readonly PickedFile[] {
  const [first] = files;
  const top = first?.path.includes('/') === true ? first.path.slice(0, first.path.indexOf('/') + 1) : '';
  if (top === '' || !files.every(({ path }) => path.startsWith(top))) return files;
  if (!files.some(({ path }) => path === `${top}index.html`)) return files;
  return files.map(({ path, file }) => ({ path: path.slice(top.length), file }));
}

/** The folder alone, as if it had been chosen. */
export function onlyFolder(picked: Picked, folder: string): Picked {
  if (picked.kind !== 'folder') return picked;
  const files = unwrapped(picked.files)
    .filter(({ path }) => path.startsWith(`${folder}/`))
    .map(({ path, file }) => ({ path: path.slice(folder.length + 1), file }));
  return { ...picked, files };
}

/** The output folders of build tools come first. */
const usual = ['dist', 'build', 'public', 'out', '_site', 'www', 'site', 'docs'];

function startFolderOf(files: readonly PickedFile[]): string | null {
  const found = files
    .map(({ path }) => /^([^/]+)\/index\.html$/.exec(path)?.[1])
    .filter((folder) => folder !== undefined);
  return usual.find((folder) => found.includes(folder)) ?? (found.length === 1 ? (found[0] ?? null) : null);
}

function foldersOf(files: readonly PickedFile[]): number {
  const folders = new Set<string>();
  for (const { path } of files) {
    for (let slash = path.indexOf('/'); slash >= 0; slash = path.indexOf('/', slash + 1))
      folders.add(path.slice(0, slash));
  }
  return folders.size;
}
