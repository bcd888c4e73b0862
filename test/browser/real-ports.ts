import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { freePort } from '../../scripts/local-servers.ts';
import { memoryKv } from '../../src/platform/kv/memory-kv.ts';
import type { Kv } from '../../src/platform/kv/kv.ts';
import { type Files, upload } from '../api/sites/uploads.ts';
import { FakeClock } from '../clock.ts';
import { freePorts, type Program, startProgram } from '../faults/program.ts';
import { type Answer, type CallOptions, type Harness, openHarness, type Person } from '../harness.ts';
import { delayingProxy } from './delaying-proxy.ts';

type HarnessOptions = NonNullable<Parameters<typeof openHarness>[0]>;

/**
 * The harness behind real ports and a real Chromium, with time that only moves when a test says so. UI and content
 * share a registrable domain (SITES_ALLOW_SHARED_APEX): to Chromium every hosted page is same-site with the UI, which
 * is the most that a hostile one can have.
 */
export type World = {
  readonly h: Harness;
  readonly browser: Browser;
  readonly uiUrl: string;
  /** Every request that reached the UI or the gateway, with its answer, in the order of the answers. */
  readonly seen: Seen[];
  /** Keys that were written in the key-value store. */
  readonly written: string[];
  /** The next answer to such a request, also one that was given already since `seen` was emptied. */
  answered(fits: (request: Seen) => boolean): Promise<Seen>;
  /** A browser profile that is signed in as this person. */
  signedIn(person: Person, browser?: Browser): Promise<{ context: BrowserContext; page: Page }>;
  publish(
    person: Person,
    visibility: 'public' | 'private',
    files: Files,
  ): Promise<{ id: string; url: string; link: string }>;
  call(method: string, path: string, options?: CallOptions): Promise<Answer>;
  advance(ms: number): Promise<void>;
  close(): Promise<void>;
};

export type Seen = {
  readonly method: string;
  /** With the path and query. */
  readonly url: string;
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
};

/** The real program without accounts, and a Chromium. */
export type RealProgram = Program & {
  readonly browser: Browser;
  /** The one-time link it printed, which makes the first administrator. */
  readonly setupLink: string;
  close(): Promise<void>;
};

export async function openProgram(settings: Readonly<Record<string, string>> = {}): Promise<RealProgram> {
  const folder = await mkdtemp(join(tmpdir(), 'postern-browser-'));
  const program = await startProgram({
    dataDir: folder,
    ports: await freePorts(),
    isUnattended: true,
    settings,
  });
  const browser = await launch();
  return {
    ...program,
    browser,
    setupLink: /http:\/\/localhost:\d+\/setup#token=\S+/.exec(program.output())?.[0] ?? '',
    async close() {
      await browser.close();
      await program.end('SIGTERM');
      await rm(folder, { recursive: true, force: true });
    },
  };
}

export const sessionCookie = '__Host-postern_session';

/** Debian's Chromium without windows, where it is installed, takes two thirds of the time of the whole browser. */
const shell = '/usr/bin/chromium-headless-shell';
const executablePath = existsSync(shell) ? shell : '/usr/bin/chromium';

/** Milliseconds for one step, half of the limit of a test: a healthy page on a busy machine never reaches it. */
const stepMs = 90_000;

export async function launch(options: { ignoreDefaultArgs?: string[] } = {}): Promise<Browser> {
  const proxy = await delayingProxy();
  const browser = await chromium.launch({
    ...options,
    ...(proxy && { proxy: { server: proxy.address } }),
    executablePath,
    args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-background-networking'],
    timeout: stepMs,
  });
  browser.on('context', (context) => context.setDefaultTimeout(stepMs));
  browser.on('disconnected', () => proxy?.close());
  return browser;
}

export async function openWorld(
  options: Pick<HarnessOptions, 'engine' | 'isolation' | 'allowsFileRepositories' | 'outboundFetch'> = {},
): Promise<World> {
  const [web, content] = await Promise.all([freePort(), freePort()]);
  const uiUrl = `http://app.localhost:${web}`;
  const written: string[] = [];
  // The harness brings the clock, and writes while it starts.
  const clock = { now: () => opened?.clock.now() ?? new FakeClock().now() };
  let opened: Harness | undefined;
  const h = (opened = await openHarness({
    ...options,
    uiUrl,
    contentUrl: `http://sites.app.localhost:${content}`,
    changesPerMinute: 10_000,
    kv: noting(memoryKv({ clock }), written),
  }));
  const seen: Seen[] = [];
  const waiting = new Set<() => void>();
  const watch = (request: IncomingMessage, response: ServerResponse) =>
    void response.once('close', () => {
      const { method = '', url = '', headers } = request;
      seen.push({ method, url: `http://${headers.host}${url}`, status: response.statusCode, headers });
      for (const look of waiting) look();
    });
  h.app.web.server.on('request', watch);
  h.app.gateway.on('request', watch);
  await h.app.web.listen({ host: '127.0.0.1', port: web });
  await listen(h.app.gateway, content);
  const browser = await launch();
  return {
    h,
    browser,
    uiUrl,
    seen,
    written,
    answered: (fits) =>
      new Promise((resolve) => {
        const look = () => {
          const found = seen.find(fits);
          if (found === undefined) return;
          waiting.delete(look);
          resolve(found);
        };
        waiting.add(look);
        look();
      }),
    async signedIn(person, inside = browser) {
      const context = await inside.newContext();
      const page = await context.newPage();
      await signIn(page, person, uiUrl);
      return { context, page };
    },
    async publish(person, visibility, files) {
      const made = await upload(h, person, files, { visibility });
      if (made.error) throw new Error(JSON.stringify(made.error));
      await h.app.services.feed.poll();
      return made.data;
    },
    async call(method, path, options) {
      const answer = await h.call(method, path, options);
      await h.app.services.feed.poll();
      return answer;
    },
    async advance(ms) {
      h.clock.advance(ms);
      await h.app.services.feed.poll();
    },
    async close() {
      await browser.close();
      await h.close();
    },
  };
}

/** Gives the browser the session that person() began. */
export function signIn(page: Page, person: Person, uiUrl: string): Promise<void> {
  return setCookie(page, `${uiUrl}/`, `${sessionCookie}=${person.cookie}`);
}

/** A cookie with the prefix `__Host-` has to come from its own host, so that host is made to send it. Leaves the page there. */
export async function setCookie(page: Page, origin: string, cookie: string): Promise<void> {
  const address = `${origin}set-by-the-test`;
  const headers = { 'set-cookie': `${cookie}; Path=/; Secure; HttpOnly; SameSite=Lax` };
  await page.route(address, (route) => route.fulfill({ headers, body: '' }));
  await page.goto(address);
  await page.unroute(address);
}

async function listen(server: Server, port: number): Promise<void> {
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
}

/** Notes the keys of everything that writes, except that a process is alive. */
function noting(kv: Kv, written: string[]): Kv {
  const note = (key: string) => void (key.startsWith('fleet:') || written.push(key));
  return {
    ...kv,
    set(key, ...rest) {
      note(key);
      return kv.set(key, ...rest);
    },
    setIfAbsent(key, ...rest) {
      note(key);
      return kv.setIfAbsent(key, ...rest);
    },
    setIfNewer(key, ...rest) {
      note(key);
      return kv.setIfNewer(key, ...rest);
    },
  };
}
