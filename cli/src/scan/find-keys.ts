import { crc32 } from 'node:zlib';

/** A key in a text. `key` is its public part, which identifies it and opens nothing. */
export type Finding = {
  /** Both begin with 1; the column counts characters of the line. */
  readonly line: number;
  readonly column: number;
  readonly key: string;
  /** `exchanged`: a token that a pipeline got for its ID token. `upload`: the one-time token of an upload. */
  readonly type: 'personal' | 'service' | 'exchanged' | 'upload';
  /** `older`: the form of imported keys, which has neither a public part nor a checksum. */
  readonly form: 'current' | 'older';
};

const idLength = 12;
const checksumLength = 6;
const bodyLength = 50;
const olderLength = 40;
const maxWordLength = 16;
const base62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/**
 * The keys in a text, whatever is around them: `TOKEN_app_pat_…`, or two in a row. A key of the current form may have any
 * product word, because its checksum proves it. `word` is that of keys of the older form, which a commit hash could resemble.
 */
export function findKeys(text: string, word: string): Finding[] {
  const findings: Finding[] = [];
  let line = 1;
  let lineStart = 0;
  for (const match of text.matchAll(/_(pat|svc|fed|upl)_([0-9A-Za-z]{40,})/g)) {
    const [, kind = '', body = ''] = match;
    const isOfKey = kind === 'pat' || kind === 'svc';
    const found =
      current(text, match.index, body) ?? (isOfKey ? older(text, match.index, body, word) : undefined);
    if (found === undefined) continue;
    for (let end = text.indexOf('\n', lineStart); end !== -1 && end < found.start; ) {
      line += 1;
      lineStart = end + 1;
      end = text.indexOf('\n', lineStart);
    }
    const { start, form } = found;
    const head = text.slice(start, match.index + '_pat_'.length);
    findings.push({
      line,
      column: start - lineStart + 1,
      key: form === 'current' ? head + body.slice(0, idLength) : head,
      type: types[kind] ?? 'personal',
      form,
    });
  }
  return findings;
}

/** Whether the whole text is a key by its form and, where it has one, its checksum. */
export function isKey(text: string): boolean {
  const [, word = '', , body = ''] = /^([a-z][a-z0-9]{0,15})_(pat|svc)_([0-9A-Za-z]+)$/.exec(text) ?? [];
  if (body.length !== bodyLength && body.length !== olderLength) return false;
  return findKeys(text, word).some(({ line, column }) => line === 1 && column === 1);
}

const types: Readonly<Record<string, Finding['type']>> = {
  pat: 'personal',
  svc: 'service',
  fed: 'exchanged',
  upl: 'upload',
};

type Found = { readonly start: number; readonly form: Finding['form'] };

/** The product word is whatever makes the checksum right, because letters may precede it. */
function current(text: string, at: number, body: string): Found | undefined {
  if (body.length < bodyLength) return undefined;
  const end = at + '_pat_'.length + bodyLength;
  const expected = text.slice(end - checksumLength, end);
  for (let start = at - 1; start >= Math.max(0, at - maxWordLength); start -= 1) {
    if (!/[a-z0-9]/.test(text.charAt(start))) return undefined;
    const isWord = /[a-z]/.test(text.charAt(start));
    if (isWord && checksum(text.slice(start, end - checksumLength)) === expected)
      return { start, form: 'current' };
  }
  return undefined;
}

function older(text: string, at: number, body: string, word: string): Found | undefined {
  const start = at - word.length;
  return /^[0-9a-f]{40}/.test(body) && text.startsWith(word, start) ? { start, form: 'older' } : undefined;
}

/** CRC-32 in six digits of base 62, as docs/how-to/scan-for-keys.md describes it. */
function checksum(head: string): string {
  let rest = crc32(head);
  let digits = '';
  for (let at = 0; at < checksumLength; at += 1) {
    digits = base62.charAt(rest % 62) + digits;
    rest = Math.floor(rest / 62);
  }
  return digits;
}
