import { maskKeys } from '../../core/key-shape.ts';

/**
 * Replaces secrets in the output of a program: each value verbatim, in base64, URL-encoded and JSON-escaped, each line
 * of a multi-line value, and text shaped like a Postern key. This prevents accidents. It is not a security boundary: a program
 * that knows a secret can print it in an unrecognized form.
 */
export type Redactor = {
  /** Returns output that is safe to show, including all complete lines. The rest may be the beginning of a secret. */
  push(text: string): string;
  /** Returns what push() held back. */
  end(): string;
};

const replacement = '[redacted]';
/** Minimum characters. Shorter values occur in ordinary words: replacing them would spoil the log and reveal the value. */
const minLength = 4;
/** Maximum characters of a key. A longer word is not held back. */
const maxKeyLength = 128;
/** Line lengths of the programs base64 and openssl. */
const base64Widths = [76, 64];

export function createRedactor(values: readonly string[]): Redactor {
  const needles = [...new Set(values.flatMap(formsOf))].filter(({ length }) => length >= minLength);
  const maxHeld = Math.max(1, ...needles.map(({ length }) => length)) - 1;
  let held = '';
  /** Number of leading characters of `held` that an earlier replacement covers. */
  let covered = 0;
  let word = '';

  /** Returns `held` up to `until`, redacted. */
  function show(until: number): string {
    let shown = '';
    let at = covered;
    for (const start of needles.length === 0 ? [] : startsIn(held, needles)) {
      if (start.at >= until) break;
      if (start.at >= at) shown += held.slice(at, start.at) + replacement;
      at = Math.max(at, start.at + start.length);
    }
    shown += held.slice(at, Math.max(at, until));
    covered = Math.max(0, at - until);
    held = held.slice(until);
    return shown;
  }

  return {
    push(text) {
      held += text;
      // No form contains a line break.
      const safe = word + show(Math.max(held.lastIndexOf('\n') + 1, held.length - maxHeld));
      word = /\w*$/.exec(safe.slice(-maxKeyLength))?.[0] ?? '';
      if (word.length === maxKeyLength) word = '';
      return maskKeys(safe.slice(0, safe.length - word.length));
    },
    end() {
      const rest = word + show(held.length);
      word = '';
      return maskKeys(rest);
    },
  };
}

/** Positions of all needles, in order. They can overlap. */
function startsIn(text: string, needles: readonly string[]): { at: number; length: number }[] {
  const found: { at: number; length: number }[] = [];
  for (const needle of needles)
    for (let at = text.indexOf(needle); at !== -1; at = text.indexOf(needle, at + 1))
      found.push({ at, length: needle.length });
  return found.toSorted((one, other) => one.at - other.at);
}

/** Returns forms without line breaks: a value of many lines is found line by line. */
function formsOf(value: string): string[] {
  const lines = value.split(/[\r\n]+/).map((line) => line.trim());
  const json = JSON.stringify(value).slice(1, -1);
  const url = encodeURIComponent(value);
  return [
    ...lines.flatMap((line) => [line, ...base64Of(line)]),
    ...base64Of(value),
    ...base64Widths.flatMap((width) => wrapped(Buffer.from(value).toString('base64'), width)),
    json,
    json.replaceAll('/', String.raw`\/`),
    url,
    url.replaceAll('%20', '+'),
    url.replaceAll(/%[0-9A-F]{2}/g, (code) => code.toLowerCase()),
    // Also encodes what encodeURIComponent does not (RFC 3986 section 2.2).
    url.replaceAll(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`),
  ];
}

/**
 * Returns the value in both base64 alphabets (RFC 4648), also as part of a longer text: three bytes are four characters, so a
 * value has one form for each offset in a group. Characters that depend on neighbouring bytes are left out.
 */
function base64Of(value: string): string[] {
  const bytes = Buffer.from(value);
  if (bytes.length < minLength) return [];
  return (['base64', 'base64url'] as const).flatMap((encoding) => [
    bytes.toString(encoding),
    ...[0, 1, 2].map((before) => {
      const encoded = Buffer.concat([Buffer.alloc(before), bytes])
        .toString(encoding)
        .replace(/=+$/, '');
      const isWhole = (before + bytes.length) % 3 === 0;
      return encoded.slice(before === 0 ? 0 : before + 1, isWhole ? undefined : -1);
    }),
  ]);
}

function wrapped(encoded: string, width: number): string[] {
  return encoded.length <= width ? [] : (encoded.match(new RegExp(`.{1,${width}}`, 'g')) ?? []);
}
