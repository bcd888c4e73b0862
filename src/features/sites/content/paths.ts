/**
 * Names inside an upload (private-access.md 2.5, threats T38, T42, T43). A name becomes a path of a URL and a key of a
 * manifest, never a path on a disk; it is refused when any reader could take it for something else than it says.
 */
export type NamedEntry =
  | { readonly kind: 'file'; readonly path: string }
  | { readonly kind: 'directory'; readonly path: string }
  /** What file managers leave behind; nobody means to publish it. */
  | { readonly kind: 'ignored' }
  | { readonly kind: 'refused'; readonly code: PathProblemCode; readonly problem: string };

export type PathProblemCode = 'bad_path' | 'reserved_path' | 'private_file';

const longestSegmentBytes = 255;
const longestPathBytes = 1_024;
/** Folders inside each other. */
export const deepest = 32;

/** Judges a name as an archive or a form spells it. A directory ends in a slash. Paths come out in Unicode form NFC. */
export function nameEntry(raw: string): NamedEntry {
  const isPlain = raw.length <= longestSegmentBytes && plainName.test(raw);
  if (isPlain && !notablePlain.test(raw)) return named(raw);
  const name = isPlain ? raw : raw.normalize('NFC');
  const problem = isPlain ? undefined : (problemOfWhole(name) ?? problemOfSegments(name));
  if (problem !== undefined) return { kind: 'refused', code: 'bad_path', problem };
  const entry = named(name);
  const segments = entry.path.split('/');
  if (segments.some((segment) => leftBehind.has(segment.toLowerCase()))) return { kind: 'ignored' };
  const reserved = reservedProblem(segments);
  if (reserved !== undefined) return { kind: 'refused', code: 'reserved_path', problem: reserved };
  const secret = segments.find(isPrivateName);
  if (secret !== undefined)
    return {
      kind: 'refused',
      code: 'private_file',
      problem: `${secret} usually holds secrets or history and is not published; leave it out`,
    };
  return entry;
}

function named(name: string): NamedEntry & { readonly path: string } {
  return name.endsWith('/') ? { kind: 'directory', path: name.slice(0, -1) } : { kind: 'file', path: name };
}

/** Letters, digits, `-` and `_`, single dots inside: nothing that is looked for below. Most names are so. */
const plainSegment = String.raw`[\w-]+(?:\.[\w-]+)*`;
const plainName = new RegExp(`^${plainSegment}(?:/${plainSegment}){0,${deepest - 1}}/?$`);

/** Format characters (bidirectional marks, zero-width), controls, lone surrogates, line separators, U+FFFD. */
const unseen = /[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029\ufffd]/u;
/** Characters that look like a slash or a backslash. */
const slashLike = /[\u2044\u2215\u2216\u29f5\u29f8\u29f9\ufe68\uff0f\uff3c]/u;

function problemOfWhole(name: string): string | undefined {
  if (name === '' || name === '/') return 'has no name';
  if (unseen.test(name)) return 'contains a character that cannot be seen; rename it';
  if (name.includes('\\')) return 'contains a backslash; folders are separated by /';
  if (slashLike.test(name)) return 'contains a character that looks like a slash; rename it';
  if (name.startsWith('/')) return 'is an absolute path; use paths relative to the site';
  if (/^[a-z]:/i.test(name)) return 'begins with a drive letter; use paths relative to the site';
  if (/%(?:2e|2f|5c|00|25)/i.test(name)) return 'contains an encoded dot, slash or percent sign; rename it';
  if (Buffer.byteLength(name) > longestPathBytes) return `is longer than ${longestPathBytes} bytes`;
  return undefined;
}

function problemOfSegments(name: string): string | undefined {
  const segments = (name.endsWith('/') ? name.slice(0, -1) : name).split('/');
  if (segments.length > deepest) return `is more than ${deepest} folders deep`;
  for (const segment of segments) {
    if (segment === '') return 'has an empty folder name (//)';
    // NFKC turns look-alikes such as U+FF0E and U+2024 into the dot they pretend to be.
    if (/^\.+$/.test(segment.normalize('NFKC'))) return 'leads out of its folder (. or ..)';
    if (segment !== segment.trim()) return 'begins or ends with a space; rename it';
    if (segment.endsWith('.')) return 'ends with a dot; rename it';
    if (Buffer.byteLength(segment) > longestSegmentBytes)
      return `has a name longer than ${longestSegmentBytes} bytes`;
  }
  return undefined;
}

const leftBehind = new Set(['__macosx', '.ds_store', 'thumbs.db', 'desktop.ini']);

/** The gateway's own folder, and what other programs read there in a host's name (RFC 8615): only these are let in. */
const wellKnown = new Set(['security.txt', 'apple-app-site-association', 'assetlinks.json', 'gpc.json']);

function reservedProblem([first = '', ...rest]: readonly string[]): string | undefined {
  const top = first.toLowerCase();
  if (top === '.postern') return '.postern/ belongs to the service; rename the folder';
  if (top !== '.well-known' || rest.length === 0) return undefined;
  return rest.length === 1 && wellKnown.has(rest[0] ?? '')
    ? undefined
    : `of .well-known/ only ${[...wellKnown].join(', ')} can be published`;
}

const privateNames = new Set([
  '.git',
  '.svn',
  '.hg',
  '.ssh',
  '.aws',
  '.gnupg',
  '.npmrc',
  '.netrc',
  '.pgpass',
  '.htpasswd',
  'id_rsa',
  'id_ed25519',
]);

function isPrivateName(segment: string): boolean {
  const name = segment.toLowerCase();
  return privateNames.has(name) || name === '.env' || name.startsWith('.env.');
}

/** Of the names above those that a plain name can hold: no segment of one begins with a dot. */
const notablePlain = new RegExp(
  `(?:^|/)(?:${[...leftBehind, ...privateNames]
    .filter((name) => !name.startsWith('.'))
    .join('|')
    .replaceAll('.', String.raw`\.`)})(?:/|$)`,
  'i',
);

/** Finds names that some file system, browser or reader would take for one another. */
export type NameRegister = {
  /** What is wrong with having this entry beside the earlier ones, or undefined; then it is one of them. */
  add(kind: 'file' | 'directory', path: string): string | undefined;
};

export function createNameRegister(): NameRegister {
  const taken = new Map<string, { readonly kind: 'file' | 'directory'; readonly path: string }>();

  function clash(kind: 'file' | 'directory', path: string, key: string): string | undefined {
    const there = taken.get(key);
    if (there === undefined) return undefined;
    if (there.path !== path) return `differs from ${there.path} only in case or accents`;
    if (there.kind !== kind) return 'is both a file and a folder';
    return kind === 'file' ? 'is there twice' : undefined;
  }

  /** Folders that are there, with a slash, and their folded names. Most files lie in the folder of the one before. */
  const foldedFolders = new Map<string, string>();

  return {
    add(kind, path) {
      // Each segment is folded once: no letter meets another across a slash.
      const folders: { readonly folder: string; readonly key: string }[] = [];
      const lastSlash = path.lastIndexOf('/');
      let key = foldedFolders.get(path.slice(0, lastSlash + 1)) ?? '';
      if (key === '') {
        for (let slash = path.indexOf('/'); slash >= 0; slash = path.indexOf('/', slash + 1)) {
          const folder = path.slice(0, slash);
          key += folded(folder.slice(folder.lastIndexOf('/') + 1));
          const problem = clash('directory', folder, key);
          if (problem !== undefined) return `its folder ${folder} ${problem}`;
          folders.push({ folder, key });
          key += '/';
        }
      }
      const folderKey = key;
      key += folded(path.slice(lastSlash + 1));
      const problem = clash(kind, path, key);
      if (problem !== undefined) return problem;
      for (const one of folders) taken.set(one.key, { kind: 'directory', path: one.folder });
      taken.set(key, { kind, path });
      if (folders.length > 0) foldedFolders.set(path.slice(0, lastSlash + 1), folderKey);
      return undefined;
    },
  };
}

const ascii = /^[\0-\x7f]*$/;

/** Through upper case first: ß and SS, ſ and s meet there. */
function folded(path: string): string {
  if (ascii.test(path)) return path.toLowerCase();
  return path.normalize('NFKC').toUpperCase().toLowerCase().normalize('NFC');
}
