import { minute, second } from '../../core/clock.ts';
import type { Random } from '../../core/ids.ts';
import { ticketMs } from '../../features/grants/grants.ts';
import { cookieValue } from '../../platform/cookies.ts';
import type { HttpRequest } from '../../platform/fast-http/fast-server.ts';

/** The cookie that binds a one-time code to one browser (private-access.md 2.2, step 2). It gives no right. */
const browserCookie = '__Host-postern_browser';

export type Browser = {
  /** 128 random bits. */
  readonly id: string;
  /** Grants it received since `since`, in milliseconds; a browser that keeps its cookies needs only one. */
  readonly tries: number;
  readonly since: number;
};

export function newBrowserId(random: Random): string {
  return Buffer.from(random.bytes(16)).toString('base64url');
}

/** SameSite=None, because the browser must send it with the post from the UI. Valid as long as a ticket. */
export function bindingCookie({ id, tries, since }: Browser): string {
  const value = tries === 0 ? id : `${id}.${tries}.${since}`;
  return `${browserCookie}=${value}; Path=/; Secure; HttpOnly; SameSite=None; Max-Age=${ticketMs / second}`;
}

export function browserOf(request: HttpRequest, now: number): Browser | undefined {
  const found = /^([A-Za-z0-9_-]{22})(?:\.(\d{1,3})\.(\d{1,15}))?$/.exec(
    cookieValue(request.headers.cookie, browserCookie) ?? '',
  );
  if (found?.[1] === undefined) return undefined;
  const since = Number(found[3] ?? 0);
  const isRecent = Math.abs(now - since) < minute;
  return { id: found[1], tries: isRecent ? Number(found[2] ?? 0) : 0, since };
}
