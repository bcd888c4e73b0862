import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import inject from 'light-my-request';
import { createApp } from '../../src/composition/app.ts';
import { systemClock } from '../../src/core/clock.ts';
import { systemRandom } from '../../src/core/ids.ts';
import { memorySource } from '../../src/features/rate-limit/rate-limit.ts';
import type { Fetch } from '../../src/platform/fetch.ts';
import { fileBlobs } from '../../src/platform/blobs/file-blobs.ts';
import { memoryKv } from '../../src/platform/kv/memory-kv.ts';
import { createLog } from '../../src/platform/log.ts';
import { gitIn } from '../../src/platform/git/git.ts';
import { createOutbound } from '../../src/platform/outbound.ts';
import { temporaryFilesIn } from '../../src/platform/temporary-files.ts';
import { openTestDatabase } from '../database.ts';
import { type Realm, uiUrl } from './realm.ts';

const contentUrl = 'https://sites.postern-content.test';

export const programRedirect = new URL('http://127.0.0.1:45123/callback');

/** Postern as a whole, with a realm as its identity provider and the real time. */
export type Installation = Awaited<ReturnType<typeof openInstallation>>;

export async function openInstallation(
  realm: Realm,
  options: { fetch?: Fetch; identityTimeoutMs?: number; uiUrl?: string; contentUrl?: string } = {},
) {
  const folder = await mkdtemp(join(tmpdir(), 'postern-keycloak-'));
  const blobs = fileBlobs(join(folder, 'blobs'));
  const temporaryFiles = temporaryFilesIn(join(folder, 'uploads'));
  await blobs.prepare();
  await temporaryFiles.prepare();
  const logged: string[] = [];
  let steadyMs = 0;
  const database = await openTestDatabase();
  const secret = () => randomBytes(32).toString('base64url');
  const app = await createApp(
    {
      uiUrl: options.uiUrl ?? uiUrl,
      contentUrl: options.contentUrl ?? contentUrl,
      environmentsContentUrl: options.contentUrl ?? contentUrl,
      allowSharedApex: false,
      grantSecrets: [secret()],
      sessionSecrets: [secret()],
      encryptionKeys: [secret()],
      keyPrefix: 'app',
      trustedProxies: [],
      passwordCost: { memoryKib: 8, passes: 1 },
      keycloak: realm.settings,
      // Longer than a healthy answer takes on any machine.
      identityTimeoutMs: options.identityTimeoutMs ?? 60_000,
    },
    {
      database,
      kv: memoryKv({ clock: systemClock }),
      limitSource: memorySource({ clock: systemClock }),
      blobs,
      temporaryFiles,
      git: gitIn(join(folder, 'git'), {
        outbound: createOutbound({ allowsPrivate: false }),
        searchPath: '',
      }),
      clock: systemClock,
      // What a test changes in the realm shows at its next request: no answer is shared with the one before.
      steady: { now: () => (steadyMs += 1_000) },
      random: systemRandom,
      log: createLog({ level: 'debug', sink: { write: (line) => void logged.push(line) } }),
      isOnlyProcess: true,
      ...(options.fetch === undefined ? {} : { identityFetch: options.fetch }),
    },
  );
  return {
    app,
    logged,
    database,
    uiUrl: options.uiUrl ?? uiUrl,
    async start() {
      await app.start();
      await app.web.ready();
      return this;
    },
    async close() {
      await app.stop();
      await database.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

export type Page = {
  readonly url: URL;
  readonly status: number;
  readonly text: string;
  readonly headers: Readonly<Record<string, string>>;
};

/** A person's browser at Postern, its sites and Keycloak: cookies by host, redirects followed, forms sent. */
export class WebBrowser {
  readonly cookies = new Map<string, Map<string, string>>();
  readonly #at: Installation;

  constructor(at: Installation) {
    this.#at = at;
  }

  /** Opens an address as a person does and follows where it leads. */
  async open(url: string): Promise<Page> {
    return await this.#follow(await this.send('GET', url));
  }

  /** Sends the page's form with what it has already and `fields`. */
  async submit(page: Page, fields: Record<string, string>): Promise<Page> {
    const form = /<form[^>]*>[\s\S]*?<\/form>/.exec(page.text)?.[0] ?? '';
    const action = unescaped(/action="([^"]*)"/.exec(form)?.[1] ?? '');
    if (action === '')
      throw new Error(`No form at ${page.url.href}: ${page.status} ${page.text.slice(0, 500)}`);
    const hidden = [...form.matchAll(/<input[^>]*type="hidden"[^>]*>/g)].map(([input]) => [
      /name="([^"]*)"/.exec(input)?.[1] ?? '',
      unescaped(/value="([^"]*)"/.exec(input)?.[1] ?? ''),
    ]);
    const body = new URLSearchParams({ ...Object.fromEntries(hidden), ...fields }).toString();
    const target = new URL(action, page.url);
    const headers = {
      'content-type': 'application/x-www-form-urlencoded',
      origin: page.url.origin,
      'sec-fetch-site': target.origin === page.url.origin ? 'same-origin' : 'cross-site',
    };
    return await this.#follow(await this.send('POST', target.href, headers, body));
  }

  /** From Postern's own button to where Keycloak, asked for name and password, sends the person back. */
  async signIn(person: { username: string }, password: string, returnTo = '/'): Promise<Page> {
    const page = await this.open(`${this.#at.uiUrl}/auth/login?returnTo=${encodeURIComponent(returnTo)}`);
    return await this.submit(page, { username: person.username, password });
  }

  /** By the button of the web app. */
  async signOut(): Promise<Page> {
    const { uiUrl: origin } = this.#at;
    return await this.send('POST', `${origin}/auth/logout`, { origin, 'sec-fetch-site': 'same-origin' });
  }

  /** Asks the API with this browser's session. */
  async api(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
    const answer = await this.send(
      method,
      `${this.#at.uiUrl}/api/v2${path}`,
      {
        accept: 'application/json',
        origin: this.#at.uiUrl,
        'sec-fetch-site': 'same-origin',
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      body === undefined ? undefined : JSON.stringify(body),
    );
    return { ...answer, ...envelope(answer.text) };
  }

  async send(
    method: string,
    address: string,
    headers: Record<string, string> = {},
    body?: string | Buffer,
  ): Promise<Page> {
    const url = new URL(address);
    const jar = this.cookies.get(url.host) ?? new Map<string, string>();
    this.cookies.set(url.host, jar);
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ');
    const sent = {
      accept: 'text/html',
      'sec-fetch-mode': 'navigate',
      'sec-fetch-dest': 'document',
      'sec-fetch-site': 'none',
      ...headers,
      ...(cookie === '' ? {} : { cookie }),
    };
    const answer = await this.#deliver(method, url, sent, body);
    for (const line of answer.setCookies) {
      const [pair = '', ...attributes] = line.split(';').map((part) => part.trim());
      const [name, value] = [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)];
      if (value === '' || attributes.some((one) => /^max-age=0$/i.test(one))) jar.delete(name);
      else jar.set(name, value);
    }
    return { url, ...answer };
  }

  async #deliver(method: string, url: URL, headers: Record<string, string>, body?: string | Buffer) {
    if (url.origin === this.#at.uiUrl) {
      const answer = await this.#at.app.web.inject({
        // Any method; its own type lists only the usual ones.
        method: method as 'GET',
        url: url.pathname + url.search,
        headers: { host: url.host, ...headers },
        ...(body === undefined ? {} : { payload: body }),
      });
      return toAnswer(answer);
    }
    if (url.hostname.endsWith('.sites.postern-content.test')) {
      const { gateway, services } = this.#at.app;
      await services.feed.poll();
      const answer = await inject((request, response) => void gateway.emit('request', request, response), {
        method: method as 'GET',
        url: url.pathname + url.search,
        headers: { host: url.host, 'accept-encoding': 'identity', ...headers },
        ...(body === undefined ? {} : { payload: body }),
      });
      return toAnswer(answer);
    }
    const answer = await fetch(url, {
      method,
      headers,
      redirect: 'manual',
      ...(body === undefined ? {} : { body: body.toString() }),
    });
    return {
      status: answer.status,
      text: await answer.text(),
      headers: Object.fromEntries(answer.headers),
      setCookies: answer.headers.getSetCookie(),
    };
  }

  async #follow(page: Page): Promise<Page> {
    let current = page;
    for (let hop = 0; hop < 15; hop += 1) {
      const to = current.headers['location'];
      if (to === undefined || current.status < 300 || current.status > 399) return current;
      const next = new URL(to, current.url);
      // A program of the person listens there.
      if (next.pathname === programRedirect.pathname) return { ...current, url: next };
      current = await this.send('GET', next.href);
    }
    throw new Error('Led in a circle.');
  }
}

type Injected = { statusCode: number; payload: string; headers: Record<string, unknown> };

function toAnswer({ statusCode, payload, headers }: Injected) {
  const single = Object.entries(headers).map(([name, value]) => [name, String(value)]);
  return {
    status: statusCode,
    text: payload,
    headers: Object.fromEntries(single) as Record<string, string>,
    setCookies: [headers['set-cookie'] ?? []].flat().map(String),
  };
}

// Tests read the wire form freely; a wrong field name shows as a failing expectation.
// oxlint-disable-next-line typescript/no-explicit-any
function envelope(text: string): { data: any; error: any } {
  const parsed = text.startsWith('{') ? JSON.parse(text) : {};
  return { data: parsed.data, error: parsed.error };
}

function unescaped(text: string): string {
  return text.replaceAll('&amp;', '&').replaceAll('&#61;', '=').replaceAll('&#39;', "'");
}
