/**
 * Finds errors in file names before anything is sent, as the server will (features/sites/content/paths.ts). parts.test.ts compares the two.
 */
export type NamedFile =
  | { readonly kind: 'file'; readonly path: string }
  /** Left behind by file managers; the server passes over it. */
  | { readonly kind: 'ignored' }
  /** Holds secrets or history; the server refuses an upload that has one. */
  | { readonly kind: 'private'; readonly name: string }
  | { readonly kind: 'refused'; readonly problem: string };

export function nameFile(raw: string): NamedFile {
  const path = raw.normalize('NFC');
  const problem = problemOfWhole(path) ?? problemOfSegments(path);
  if (problem !== undefined) return { kind: 'refused', problem };
  const spelled = path.split('/');
  const segments = spelled.map(bareName);
  if (segments.some((segment) => segment.startsWith('._') || leftBehind.has(segment.toLowerCase())))
    return { kind: 'ignored' };
  const reserved = reservedProblem(segments);
  if (reserved !== undefined) return { kind: 'refused', problem: reserved };
  const secret = spelled[segments.findIndex((segment, at) => isPrivate(segment, at === segments.length - 1))];
  return secret === undefined ? { kind: 'file', path } : { kind: 'private', name: secret };
}

/** Without dots and spaces at the end, which Windows strips. */
function bareName(name: string): string {
  return name.replace(/(?<![. ])[. ]+$/, '');
}

const unseen = /[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029\u2800]|(?![\ufe0e\ufe0f])\p{Default_Ignorable_Code_Point}/u;
const joiners =
  /(?<=[\p{L}\p{M}])\p{Join_Control}(?=\p{L})|(?<=[\p{Extended_Pictographic}\p{Emoji_Modifier}\ufe0f])\u200d(?=\p{Extended_Pictographic})/gu;
const slashLike = /[\u2044\u2215\u2216\u29f5\u29f8\u29f9\ufe68\uff0f\uff3c]/u;
const bytesOf = (text: string) => new TextEncoder().encode(text).length;

function problemOfWhole(path: string): string | undefined {
  if (path === '') return 'has no name';
  if (path.includes('\ufffd')) return 'has a name that is not UTF-8; rename it';
  if (unseen.test(path.replace(joiners, ''))) return 'contains an invisible character; rename it';
  if (path.includes('\\')) return 'contains a backslash; rename it';
  if (slashLike.test(path)) return 'contains a character that looks like a slash; rename it';
  if (path.startsWith('/')) return 'is an absolute path';
  if (/^[a-z]:/i.test(path)) return 'begins with a drive letter; rename it';
  if (/%(?:2e|2f|5c|00|25)/i.test(path)) return 'contains an encoded dot, slash or percent sign; rename it';
  return bytesOf(path) > 1_024 ? 'has a path longer than 1,024 bytes' : undefined;
}

function problemOfSegments(path: string): string | undefined {
  const segments = path.split('/');
  if (segments.length > 32) return 'is more than 32 folders deep';
  for (const segment of segments) {
    if (segment === '') return 'has an empty folder name';
    if (segment !== segment.trim()) return 'begins or ends with a space; rename it';
    if (/^[. ]+$/.test(segment.normalize('NFKC'))) return 'contains . or .. as a folder name';
    if (bytesOf(segment) > 255) return 'has a name longer than 255 bytes';
  }
  return undefined;
}

const leftBehind = new Set(['__macosx', '.ds_store', 'thumbs.db', 'desktop.ini']);
const privateNames = new Set(
  '.git .svn .hg .ssh .aws .gnupg .npmrc .netrc .pgpass .htpasswd id_rsa id_ed25519'.split(' '),
);

const sampleNames = new Set(['.env.example', '.env.sample', '.env.template']);

function reservedProblem([first = '']: readonly string[]): string | undefined {
  return first.toLowerCase() === '.postern'
    ? 'is in .postern/, which belongs to the service; rename the folder'
    : undefined;
}

function isPrivate(segment: string, isFile: boolean): boolean {
  const name = segment.toLowerCase();
  if (privateNames.has(name) || name === '.env') return true;
  return name.startsWith('.env.') && !(isFile && sampleNames.has(name));
}

/** Undefined for names without an extension. */
export function extensionOf(path: string): string | undefined {
  return /[^/]\.([^./]+)$/.exec(bareName(path))?.[1]?.toLowerCase();
}

/** Equal for names that differ only in case or look the same. */
export function foldedName(path: string): string {
  const drawn = path.replace(/\p{Default_Ignorable_Code_Point}/gu, '');
  return drawn.normalize('NFKC').toUpperCase().toLowerCase().normalize('NFC');
}
