/** Nothing to decode and nothing to read twice: letters, digits and `-_.~`, no name of dots. Most addresses are so. */
const plainPath = /^\/(?:[\w~-][\w.~-]*(?:\/[\w~-][\w.~-]*)*\/?)?$/;

/**
 * From the target of a request to the path of a file, the same for every way of writing it (matrix GW-02, threat T23).
 * A path that could be read in two ways is no path: undefined, and the answer is that of a file that is not there.
 */
export function filePathOf(rawPath: string): string | undefined {
  if (plainPath.test(rawPath)) return rawPath.slice(1);
  if (!rawPath.startsWith('/')) return undefined;
  if (/%(?:2f|5c|00)/i.test(rawPath) || rawPath.includes('\\')) return undefined;
  let path: string;
  try {
    path = decodeURIComponent(rawPath).normalize('NFC');
  } catch {
    return undefined;
  }
  if (/[\p{Cc}\p{Cs}\u2028\u2029\\]/u.test(path)) return undefined;
  const segments = path.slice(1).split('/');
  const isOdd = segments.some((segment, at) => {
    if (segment === '') return at !== segments.length - 1;
    return /^\.+$/.test(segment);
  });
  return isOdd ? undefined : path.slice(1);
}

/**
 * Names whose bytes never change: 8 or more hexadecimal or base64url characters between separators (contract 6). A word
 * is none: of letters alone, a hash is hexadecimal or mixes capitals and small ones.
 */
export function isHashed(path: string): boolean {
  const name = path.slice(path.lastIndexOf('/') + 1);
  return name
    .split(/[.]|-(?=\w{8})|_(?=[\w-]{8})/)
    .slice(1)
    .some((part) => /^[A-Za-z0-9_-]{8,}$/.test(part) && looksRandom(part));
}

function looksRandom(part: string): boolean {
  return /\d/.test(part) || /^[a-f]+$/.test(part) || (/[a-z][A-Z]/.test(part) && /[A-Z].*[A-Z]/.test(part));
}
