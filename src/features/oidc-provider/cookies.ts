import type { CookiesSetOptions } from 'oidc-provider';
import { cookiesIn } from '../../platform/cookies.ts';

/** The part of koa's cookie jar that oidc-provider uses. */
export type CookieJar = {
  secure: boolean;
  get(name: string, options?: CookiesSetOptions): string | undefined;
  set(name: string, value?: string | null, options?: CookiesSetOptions & { maxAge?: number }): unknown;
};

export const cookieNames = {
  session: '__Host-postern_sso',
  interaction: '__Host-postern_interaction',
  resume: '__Host-postern_resume',
} as const;

/** A browser that opens more sign-in pages than this loses the oldest; each adds some 300 bytes to every request. */
const maxInteractions = 4;

/**
 * Gives every cookie of oidc-provider the prefix `__Host-`: Secure, HttpOnly, no Domain, and Path=/ (CS-03). The library
 * distinguishes interactions by cookie path, which the prefix forbids. So the last segment of that path, the
 * interaction's uid, becomes part of the name instead.
 */
export function hardenCookies(jar: CookieJar, requestPath: string, cookieHeader: string): void {
  const get = jar.get.bind(jar);
  const set = jar.set.bind(jar);
  const strict = { path: '/', secure: true, httpOnly: true, sameSite: 'lax' } as const;
  jar.secure = true;
  jar.get = (name, options) => get(isScoped(name) ? scoped(name, requestPath) : name, options);
  jar.set = (name, value, options) => {
    if (!isScoped(name) || options?.path === undefined) return set(name, value, { ...options, ...strict });
    if (value) {
      for (const old of othersOf(name, cookieHeader).slice(maxInteractions - 1))
        set(old, null, { ...options, ...strict });
    }
    return set(scoped(name, options.path), value, { ...options, ...strict });
  };
}

function isScoped(name: string): boolean {
  return name === cookieNames.interaction || name === cookieNames.resume;
}

function scoped(name: string, path: string): string {
  const segment = path.split('?', 1)[0]?.split('/').at(-1) ?? '';
  return `${name}_${segment.replaceAll(/[^A-Za-z0-9_-]/g, '')}`;
}

/** The names of this kind that the browser sent, oldest last (RFC 6265 5.4: cookies created earlier come first). */
function othersOf(name: string, cookieHeader: string): string[] {
  return cookiesIn(cookieHeader)
    .map((cookie) => cookie.name)
    .filter((candidate) => candidate.startsWith(`${name}_`) && !candidate.endsWith('.sig'))
    .reverse();
}
