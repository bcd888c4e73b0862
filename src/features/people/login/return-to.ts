/** Long enough for the longest path used to open a private site, which contains an encrypted path of 2 KiB. */
const maxLength = 2_950;

/**
 * The path to open after signing in: a path of this origin, or '/'. Parsed the way a browser parses it, because
 * `//host`, `/\host`, `/%09/host` and `/.//host` look like paths but lead to another host (CWE-601).
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
  // A sign-in must not return to a sign-in page.
  return /^\/(auth|identity|setup)(\/|$|\?|#)/.test(path) ? '/' : path;
}

/**
 * Whether a path from `safeReturnTo` redirects to another host, as the links of sites and Environments do. A browser applies the
 * form-action of a page to every redirect after its form, so such a redirect must not directly follow a sign-in form.
 */
export function leavesTheApp(path: string): boolean {
  return path.startsWith('/s/') || path.startsWith('/e/');
}
