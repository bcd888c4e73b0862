/** Bytes of a path and its query that are worth returning to; a longer one means the start page. */
export const longestPath = 2_048;

/**
 * The path a browser is sent back to, as it parses it itself, or the start page (threat T08). It is put behind the
 * host's own origin, so nothing in it can name another host; what only tries to is not followed either.
 */
export function safePath(path: string | undefined, origin: string): string {
  if (path === undefined || path.length > longestPath || !/^\/(?!\/)[\x21-\x7e]*$/.test(path)) return '/';
  // Encoded control characters anywhere; an encoded slash, backslash or blank where a host would begin.
  if (/\\|%(?:[01][0-9a-f]|7f)/i.test(path) || /^\/%(?:2f|5c|20)/i.test(path)) return '/';
  if (!URL.canParse(path, origin)) return '/';
  const url = new URL(path, origin);
  const plain = url.pathname + url.search;
  if (url.origin !== origin || plain.startsWith('//') || plain.startsWith('/.postern/')) return '/';
  return plain;
}
