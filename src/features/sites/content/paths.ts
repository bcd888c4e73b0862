/**
 * Names inside an upload (private-access.md 2.5, threats T38, T42, T43). A name becomes a path of a URL and a key of a
 * manifest, never a path on a disk. A name is refused when a reader could take it for another file than it looks like.
 * The web app applies these rules before an upload, so this file has no imports and uses no Node API.
 */
export type NamedEntry =
  | { readonly kind: 'file'; readonly path: string }
  | { readonly kind: 'directory'; readonly path: string }
  /** Files that operating systems create and that are not meant to be published. `rule`: the pattern of names that decided. */
  | { readonly kind: 'ignored'; readonly rule: string }
  | { readonly kind: 'refused'; readonly code: 'bad_path' | 'reserved_path'; readonly problem: string }
  /** `secret`: the path of the file or folder whose name decided. */
  | {
      readonly kind: 'refused';
      readonly code: 'private_file';
      readonly secret: string;
      readonly problem: string;
    };

export type PathProblemCode = Extract<NamedEntry, { kind: 'refused' }>['code'];

const maxSegmentBytes = 255;
const maxPathBytes = 1_024;
/** Maximum nesting of folders. */
export const deepest = 32;

/** Judges a name as an archive or a form spells it. A directory ends in a slash. Paths come out in Unicode form NFC. */
export function nameEntry(raw: string): NamedEntry {
  const isPlain = raw.length <= maxSegmentBytes && plainName.test(raw);
  if (isPlain && !notablePlain.test(raw)) return named(raw);
  const name = isPlain ? raw : raw.normalize('NFC');
  const problem = isPlain ? undefined : (problemOfWhole(name) ?? problemOfSegments(name));
  if (problem !== undefined) return { kind: 'refused', code: 'bad_path', problem };
  const entry = named(name);
  const segments = entry.path.split('/').map(bareName);
  const rule = leftOutBy(segments);
  if (rule !== undefined) return { kind: 'ignored', rule };
  const reserved = reservedProblem(segments);
  if (reserved !== undefined) return { kind: 'refused', code: 'reserved_path', problem: reserved };
  const secret = segments.findIndex((segment, at) =>
    isPrivateName(segment, entry.kind === 'file' && at === segments.length - 1),
  );
  if (secret >= 0)
    return {
      kind: 'refused',
      code: 'private_file',
      secret: entry.path
        .split('/')
        .slice(0, secret + 1)
        .join('/'),
      problem: `${segments[secret]} usually contains secrets or history and is not published; leave it out`,
    };
  return entry;
}

function named(name: string): NamedEntry & { readonly path: string } {
  return name.endsWith('/') ? { kind: 'directory', path: name.slice(0, -1) } : { kind: 'file', path: name };
}

/**
 * The name without dots and spaces at its end, which Windows strips. Rules about names judge this one, so `setup.exe.`
 * is judged as `setup.exe`. A path loses only those of its last segment.
 */
function bareName(name: string): string {
  return name.replace(/(?<![. ])[. ]+$/, '');
}

/** Letters, digits, `-` and `_`, single dots inside. Most names have this form, and none of the checks below can fail for them. */
const plainSegment = String.raw`[\w-]+(?:\.[\w-]+)*`;
const plainName = new RegExp(`^${plainSegment}(?:/${plainSegment}){0,${deepest - 1}}/?$`);

/**
 * Format characters (bidirectional marks, zero-width), fillers and other characters that are not drawn, controls, lone
 * surrogates, line separators. The two selectors that choose between emoji and text are allowed.
 */
const unseen = /[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029\u2800]|(?![\ufe0e\ufe0f])\p{Default_Ignorable_Code_Point}/u;
/** Joiners that are spelling: U+200C and U+200D between letters, as in Persian and Hindi, and U+200D in emoji. */
const joiners =
  /(?<=[\p{L}\p{M}])\p{Join_Control}(?=\p{L})|(?<=[\p{Extended_Pictographic}\p{Emoji_Modifier}\ufe0f])\u200d(?=\p{Extended_Pictographic})/gu;
/** Characters that look like a slash or a backslash. */
const slashLike = /[\u2044\u2215\u2216\u29f5\u29f8\u29f9\ufe68\uff0f\uff3c]/u;

/** A reader cannot recognize other code pages, so the bytes may mean any name. */
export const notUtf8 =
  'has a name that is not UTF-8; rename it, or pack the folder with a program that writes names in UTF-8';

const bytesOf = (text: string) => new TextEncoder().encode(text).length;

function problemOfWhole(name: string): string | undefined {
  if (name === '' || name === '/') return 'has no name';
  if (name.includes('\ufffd')) return notUtf8;
  if (unseen.test(name.replace(joiners, ''))) return 'contains an invisible character; rename it';
  if (name.includes('\\')) return 'contains a backslash; separate folders with /';
  if (slashLike.test(name)) return 'contains a character that looks like a slash; rename it';
  if (name.startsWith('/')) return 'is an absolute path; use a path relative to the site, or rename it';
  if (/^[a-z]:/i.test(name))
    return 'begins with a drive letter; use a path relative to the site, or rename it';
  if (/%(?:2e|2f|5c|00|25)/i.test(name)) return 'contains an encoded dot, slash or percent sign; rename it';
  if (bytesOf(name) > maxPathBytes) return `is longer than ${maxPathBytes} bytes`;
  return undefined;
}

function problemOfSegments(name: string): string | undefined {
  const segments = (name.endsWith('/') ? name.slice(0, -1) : name).split('/');
  if (segments.length > deepest) return `is more than ${deepest} folders deep`;
  for (const segment of segments) {
    if (segment === '') return 'has an empty folder name (//)';
    if (segment !== segment.trim()) return 'begins or ends with a space; rename it';
    // NFKC turns look-alikes such as U+FF0E and U+2024 into the dot they pretend to be.
    if (/^[. ]+$/.test(segment.normalize('NFKC')))
      return 'contains . or .. as a folder name; use a path without them';
    if (bytesOf(segment) > maxSegmentBytes) return `has a name longer than ${maxSegmentBytes} bytes`;
  }
  return undefined;
}

/** Names in lower case, with the rule as people read it. */
const leftBehind: ReadonlyMap<string, string> = new Map(
  ['__MACOSX', '.DS_Store', 'Thumbs.db', 'desktop.ini'].map((rule) => [rule.toLowerCase(), rule]),
);

/** `._*` files hold metadata of macOS that other systems cannot store (AppleDouble). */
function leftOutBy(segments: readonly string[]): string | undefined {
  for (const segment of segments) {
    const rule = segment.startsWith('._') ? '._*' : leftBehind.get(segment.toLowerCase());
    if (rule !== undefined) return rule;
  }
  return undefined;
}

/** Names that the gateway answers itself. It answers none below `.well-known/` (RFC 8615), where each site speaks for its own host. */
function reservedProblem([first = '']: readonly string[]): string | undefined {
  return first.toLowerCase() === '.postern'
    ? 'is in .postern/, which is reserved for Postern; rename the folder'
    : undefined;
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

/** Files that show which variables a program needs. A folder of such a name contains something else. Like every file, they are scanned for keys. */
const sampleNames = new Set(['.env.example', '.env.sample', '.env.template']);

function isPrivateName(segment: string, isFile: boolean): boolean {
  const name = segment.toLowerCase();
  if (privateNames.has(name) || name === '.env') return true;
  return name.startsWith('.env.') && !(isFile && sampleNames.has(name));
}

/** The names above that a plain name can contain: no segment of a plain name begins with a dot. */
const notablePlain = new RegExp(
  `(?:^|/)(?:${[...leftBehind.keys(), ...privateNames]
    .filter((name) => !name.startsWith('.'))
    .join('|')
    .replaceAll('.', String.raw`\.`)})(?:/|$)`,
  'i',
);

/** A name without an extension, such as `LICENSE` and `.nojekyll`, is always allowed. Dots and spaces at the end do not hide one. */
export function extensionProblem(
  path: string,
  {
    allowedExtensions,
    forbiddenExtensions,
  }: { readonly allowedExtensions: readonly string[]; readonly forbiddenExtensions: readonly string[] },
) {
  const extension = /[^/]\.([^./]+)$/.exec(bareName(path))?.[1]?.toLowerCase();
  if (extension === undefined) return undefined;
  const isAllowed = allowedExtensions.length === 0 || allowedExtensions.includes(extension);
  if (isAllowed && !forbiddenExtensions.includes(extension)) return undefined;
  return {
    code: 'extension_not_allowed',
    problem: `ends in .${extension}, which is not allowed here`,
  } as const;
}

const ascii = /^[\0-\x7f]*$/;

/**
 * Equal for names that differ only in case or look the same. Converts to upper case first, because only then ß equals SS,
 * and ſ equals s.
 */
export function foldedForm(path: string): string {
  if (ascii.test(path)) return path.toLowerCase();
  const drawn = path.replace(/\p{Default_Ignorable_Code_Point}/gu, '');
  return drawn.normalize('NFKC').toUpperCase().toLowerCase().normalize('NFC');
}
