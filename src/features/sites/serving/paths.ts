/**
 * Letters, digits and `-_.~`, no name made of dots: nothing to decode, and only one way to read it. Most addresses have
 * this form.
 */
const plainPath = /^\/(?:[\w~-][\w.~-]*(?:\/[\w~-][\w.~-]*)*\/?)?$/;

/**
 * Converts the target of a request to the path of a file; every spelling of an address gives the same path (matrix
 * GW-02, threat T23). A path that can be read in two ways gives undefined, and the client gets the response for a
 * missing file.
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
 * Names whose bytes never change: 8 or more hexadecimal or base64url characters between separators (contract 6). An
 * ordinary word does not count: a hash of letters alone must be hexadecimal or mix upper and lower case.
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
