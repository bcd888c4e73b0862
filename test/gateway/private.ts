import { expect } from 'vitest';
import type { Harness, Person } from '../harness.ts';
import { uiOrigin } from '../harness.ts';
import { type Files, upload } from '../api/sites/uploads.ts';

/** A browser at private sites: keeps the cookies of each host, follows the way in step by step. */
export type Browser = {
  /** What the browser would send to this address's host. */
  cookies(url: string): string;
  /** Opens an address as a person does: a document navigation. */
  navigate(url: string, headers?: Record<string, string>): Promise<Shown>;
  /** What a page on that host asks for by itself. */
  fetch(url: string, headers?: Record<string, string>): Promise<Shown>;
  /** From the redirect to the page that hands over; the code and where it goes. */
  handOver(location: string): Promise<{ status: number; target: string; code: string; text: string }>;
  redeem(target: string, code: string, headers?: Record<string, string>): Promise<Shown>;
  /** The whole way: until the content, or where it ends. */
  open(url: string): Promise<Shown>;
  set(url: string, name: string, value: string): void;
};

/** What a browser needs of the world: pages of the UI as someone, and content. The harness is one. */
export type BrowserWorld<As> = {
  call(
    method: string,
    path: string,
    options: { as: As; headers: Record<string, string> },
  ): Promise<{ readonly status: number; readonly text: string }>;
  open(
    url: string,
    options: { method: 'GET' | 'POST'; headers: Record<string, string>; body?: string },
  ): Promise<{
    readonly statusCode: number;
    readonly payload: string;
    readonly headers: Readonly<Record<string, string | string[] | number | undefined>>;
  }>;
};

export type Shown = {
  readonly status: number;
  readonly text: string;
  readonly headers: Record<string, string>;
  readonly setCookies: readonly string[];
};

export const navigation = {
  'sec-fetch-mode': 'navigate',
  'sec-fetch-dest': 'document',
  'sec-fetch-site': 'none',
  accept: 'text/html',
};

export const subresource = { 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image', accept: 'image/*' };

export const grantCookie = '__Host-postern_grant';
export const browserCookie = '__Host-postern_browser';

export async function privateSite(
  h: Harness,
  as: Person,
  files: Files = { 'index.html': '<!doctype html><title>secret</title>the secret page', 'a.css': 'p{}' },
): Promise<{ id: string; url: string; link: string; label: string }> {
  const made = await upload(h, as, files, { visibility: 'private' });
  expect(made.status).toBe(201);
  const { id, url, link } = made.data;
  return { id, url, link, label: new URL(url).host.split('.', 1)[0] ?? '' };
}

/** `ui`: the origin that hands over. */
export function browserOf<As>(h: BrowserWorld<As>, person: As, ui = uiOrigin): Browser {
  const jar = new Map<string, Map<string, string>>();
  const at = (url: string) => {
    const { host } = new URL(url);
    const found = jar.get(host) ?? new Map<string, string>();
    jar.set(host, found);
    return found;
  };
  const cookies = (url: string) => [...at(url)].map(([name, value]) => `${name}=${value}`).join('; ');

  async function send(
    method: 'GET' | 'POST',
    url: string,
    headers: Record<string, string>,
    body?: string,
  ): Promise<Shown> {
    const cookie = cookies(url);
    const response = await h.open(url, {
      method,
      headers: { ...(cookie === '' ? {} : { cookie }), ...headers },
      ...(body === undefined ? {} : { body }),
    });
    const setCookies = [response.headers['set-cookie'] ?? []].flat().map(String);
    for (const line of setCookies) {
      const [pair = '', ...attributes] = line.split(';').map((part) => part.trim());
      const split = pair.indexOf('=');
      if (attributes.includes('Max-Age=0')) at(url).delete(pair.slice(0, split));
      else at(url).set(pair.slice(0, split), pair.slice(split + 1));
    }
    return {
      status: response.statusCode,
      text: response.payload,
      headers: response.headers as Record<string, string>,
      setCookies,
    };
  }

  const browser: Browser = {
    cookies,
    navigate: (url, headers = {}) => send('GET', url, { ...navigation, ...headers }),
    fetch: (url, headers = {}) => send('GET', url, { ...subresource, ...headers }),
    async handOver(location) {
      const to = new URL(location);
      const answer = await h.call('GET', to.pathname + to.search, {
        as: person,
        headers: { accept: 'text/html' },
      });
      const target = /action="([^"]+)"/.exec(answer.text)?.[1] ?? '';
      const code = /name="code" value="([^"]+)"/.exec(answer.text)?.[1] ?? '';
      return { status: answer.status, target, code, text: answer.text };
    },
    redeem: (target, code, headers = {}) =>
      send(
        'POST',
        target,
        {
          origin: ui,
          'sec-fetch-site': 'cross-site',
          'sec-fetch-mode': 'navigate',
          'sec-fetch-dest': 'document',
          'content-type': 'application/x-www-form-urlencoded',
          ...headers,
        },
        `code=${code}`,
      ),
    async open(url) {
      const first = await browser.navigate(url);
      if (first.status !== 303) return first;
      const { target, code, status, text } = await browser.handOver(first.headers['location'] ?? '');
      if (status !== 200) return { status, text, headers: {}, setCookies: [] };
      const redeemed = await browser.redeem(target, code);
      if (redeemed.status !== 303) return redeemed;
      return await browser.navigate(redeemed.headers['location'] ?? '');
    },
    set: (url, name, value) => void at(url).set(name, value),
  };
  return browser;
}
