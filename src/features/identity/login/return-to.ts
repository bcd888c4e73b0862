/** Room for the longest step of opening a private site, which carries a sealed path of 2 KiB. */
const maxLength = 2_950;

/**
 * Where to go after signing in: a path of our own origin, or '/'. Parsed the way a browser parses it, because
 * `//host`, `/\host`, `/%09/host` and `/.//host` all look like paths and leave the site (CWE-601).
 */
export function safeReturnTo(value: string | undefined, uiOrigin: string): string {
  if (value === undefined || value.length > maxLength || !/^\/[\x21-\x7e]*$/.test(value)) return '/';
  if (value.includes('\\')) return '/';
  let url: URL;
  try {
    url = new URL(value, uiOrigin);
  } catch {
    return '/';
  }
  const path = url.pathname + url.search + url.hash;
  if (url.origin !== uiOrigin || path.startsWith('//')) return '/';
  // Signing in must not lead back to signing in.
  return /^\/(auth|identity|setup)(\/|$|\?|#)/.test(path) ? '/' : path;
}
