import type { ServedFile } from '../../features/sites/sites.ts';

/** One of the forms in which a file can be sent: as it is, or compressed at publish. Never compressed on request (T54). */
export type Form = {
  readonly digest: string;
  readonly size: number;
  readonly encoding: string | null;
  /** Strong: different bytes have a different tag (RFC 9110 section 8.8.3). */
  readonly etag: string;
};

/** The forms of each file, the file itself last; created once. */
const known = new WeakMap<ServedFile, readonly Form[]>();

function formsOf(file: ServedFile): readonly Form[] {
  let forms = known.get(file);
  if (forms === undefined) {
    forms = [
      ...file.variants.map(({ encoding, stored, size }) => ({
        digest: stored,
        size,
        encoding,
        etag: tagOf(stored),
      })),
      { digest: file.digest, size: file.size, encoding: null, etag: tagOf(file.digest) },
    ];
    known.set(file, forms);
  }
  return forms;
}

function tagOf(digest: string): string {
  return `"${digest.slice(0, 32)}"`;
}

/** The smallest form that the client accepts. A range always refers to the uncompressed file. */
export function chooseForm(file: ServedFile, acceptEncoding: string | undefined, hasRange: boolean): Form {
  const forms = formsOf(file);
  const plain = forms.at(-1);
  if (plain === undefined) throw new Error('A file has at least its own form.');
  if (hasRange || forms.length === 1 || acceptEncoding === undefined) return plain;
  const accepted = encodingsIn(acceptEncoding);
  return forms.find(({ encoding }) => encoding !== null && accepted.has(encoding)) ?? plain;
}

const parsed = new Map<string, ReadonlySet<string>>();

/** RFC 9110 section 12.5.3; a weight of 0 means "not this one". Browsers send few different values, so they are cached. */
function encodingsIn(header: string): ReadonlySet<string> {
  let found = parsed.get(header);
  if (found === undefined) {
    const parts = header.toLowerCase().split(',').slice(0, 20);
    found = new Set(
      parts
        .map((part) => part.trim().split(/\s*;\s*/))
        .filter(([, weight]) => weight === undefined || !/^q=0(?:\.0*)?$/.test(weight))
        .map(([name = '']) => name),
    );
    if (parsed.size >= 200) parsed.clear();
    parsed.set(header, found);
  }
  return found;
}

export type Part =
  | { readonly kind: 'whole' }
  | { readonly kind: 'part'; readonly start: number; readonly end: number }
  | { readonly kind: 'unsatisfiable' };

/** One range. Several ranges, or an invalid one, give the whole file (RFC 9110 section 14.2, threat T53). */
export function partOf(range: string | undefined, ifRange: string | undefined, { size, etag }: Form): Part {
  if (range === undefined || (ifRange !== undefined && ifRange !== etag)) return { kind: 'whole' };
  const found = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(range.replaceAll(/[ \t]/g, ''));
  if (found === null) return { kind: 'whole' };
  const [, from = '', to = ''] = found;
  if (from === '' && to === '') return { kind: 'whole' };
  if (from === '') {
    const length = Math.min(Number(to), size);
    return length === 0 ? { kind: 'unsatisfiable' } : { kind: 'part', start: size - length, end: size - 1 };
  }
  const start = Number(from);
  const end = to === '' ? size - 1 : Math.min(Number(to), size - 1);
  if (to !== '' && Number(to) < start) return { kind: 'whole' };
  return start >= size ? { kind: 'unsatisfiable' } : { kind: 'part', start, end };
}

/** Whether the client has this form already (RFC 9110 section 13.1.2, weak comparison). */
export function hasAlready(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  if (ifNoneMatch.trim() === '*') return true;
  return ifNoneMatch.split(',').some((tag) => tag.trim().replace(/^W\//, '') === etag);
}
