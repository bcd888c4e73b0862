/** Bytes of a path and its query; a longer one is replaced by the start page. */
export const maxPathLength = 2_048;

/**
 * The path that a browser is redirected to, as the browser itself parses it, or the start page (threat T08). It is
 * appended to the host's own origin, so nothing in it can name another host. A path that tries to is replaced as well.
 */
export function safePath(path: string | undefined, origin: string): string {
  if (path === undefined || path.length > maxPathLength || !/^\/(?!\/)[\x21-\x7e]*$/.test(path)) return '/';
  // Encoded control characters anywhere; an encoded slash, backslash or blank where a host would begin.
  if (/\\|%(?:[01][0-9a-f]|7f)/i.test(path) || /^\/%(?:2f|5c|20)/i.test(path)) return '/';
  if (!URL.canParse(path, origin)) return '/';
  const url = new URL(path, origin);
  const plain = url.pathname + url.search;
  if (url.origin !== origin || plain.startsWith('//') || plain.startsWith('/.postern/')) return '/';
  return plain;
}
