import type { IncomingMessage } from 'node:http';
import { second } from '../../core/clock.ts';
import { AppError } from '../../core/errors.ts';
import type { Random } from '../../core/ids.ts';
import {
  type GatewayGrants,
  type GrantCheck,
  type GrantKind,
  type Origin,
} from '../../features/grants/grants.ts';
import { cookieValue } from '../../platform/cookies.ts';
import { FastRequest, type HttpRequest } from '../../platform/fast-http/fast-server.ts';
import { oncePerHead } from '../../platform/fast-http/once-per-head.ts';
import { secretDigest } from '../../platform/encrypted-text.ts';
import type { GatewayAnswer } from './answer.ts';
import { bindingCookie, browserOf, newBrowserId } from './browser-binding.ts';
import { valuesOf } from './request-headers.ts';
import { permissionsPolicy } from './response-headers.ts';
import { type PrivateAt, type PrivateSteps, reservedPaths, type Verdict } from './access.ts';
import type { Page } from '../web/pages/layout.ts';
import { cookiesBlockedPage, refusedPage, tooManyCookiesPage } from './private-pages.ts';

/**
 * Private sites and Environments at the gateway (private-access.md 2.2, steps 1, 2 and 5 to 10). A request with a grant
 * continues to the content. A page request without one is redirected to the UI. Every other request gets an empty 401. A
 * label that nothing has gets the same response as one in use.
 */
export type PrivateStepsDeps = {
  readonly kind: GrantKind;
  readonly grants: GatewayGrants;
  readonly uiUrl: string;
  readonly contentUrl: string;
  /** UI and content share a registrable domain, so browsers treat a post from one to the other as same-site. */
  readonly isShared: boolean;
  readonly random: Random;
  /** The client's address, also behind trusted proxies. */
  readonly addressOf: (request: HttpRequest) => string | null;
};

const maxFormBytes = 4_096;
/** Grants that a browser received and did not send back. */
const maxTries = 3;

/** Headers of every response here, besides its own. */
const always = {
  'cache-control': 'private, no-store',
  'cdn-cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'origin-agent-cluster': '?1',
  'permissions-policy': permissionsPolicy,
  'x-robots-tag': 'noindex',
} as const;

export function createPrivateSteps(deps: PrivateStepsDeps): PrivateSteps {
  const { grants, kind, uiUrl, random, addressOf } = deps;
  const headOf = oncePerHead((request) => ({
    cookie: cookieValue(request.headers.cookie, kind.cookie),
    isWorkerScript: isWorkerScript(request),
  }));
  const { protocol } = new URL(deps.contentUrl);
  const fetchSites = deps.isShared ? ['cross-site', 'same-site'] : ['cross-site'];
  const hsts: Record<string, string> =
    protocol === 'https:' ? { 'strict-transport-security': 'max-age=31536000' } : {};

  const answer = (
    status: number,
    headers: GatewayAnswer['headers'] = {},
    body: string | null = null,
  ): GatewayAnswer => ({ status, headers: { ...always, ...hsts, ...headers }, body });
  const shown = (status: number, { document, contentSecurityPolicy }: Page) =>
    answer(
      status,
      { 'content-type': 'text/html; charset=utf-8', 'content-security-policy': contentSecurityPolicy },
      document,
    );

  const originOf = (request: HttpRequest, address = addressOf(request)): Origin => ({
    address,
    agent: request.headers['user-agent']?.slice(0, 200) ?? null,
  });

  /** When a check cannot be made, access is refused; the response is the same for every label. */
  async function orUnavailable<T>(work: Promise<T>, say: (answer: GatewayAnswer) => T): Promise<T> {
    try {
      return await work;
    } catch (error) {
      if (error instanceof AppError && error.status === 503)
        return say(
          answer(503, { ...error.headers, 'content-type': 'text/plain' }, 'Try again in a moment.\n'),
        );
      throw error;
    }
  }

  function check(request: HttpRequest, { host, known }: PrivateAt) {
    const { cookie } = headOf(request);
    // Read now: a connection that ends meanwhile has no address any more.
    const address = addressOf(request);
    return grants.check({ host, site: known, cookie, from: () => originOf(request, address) });
  }

  /** Step 2: redirects to the UI with the return path and the value that binds this browser. Neither gives any right. */
  function sendToUi(request: HttpRequest, { host, label }: PrivateAt, now: number): GatewayAnswer {
    const browser = browserOf(request, now) ?? { id: newBrowserId(random), tries: 0, since: 0 };
    if (browser.tries >= maxTries) return shown(403, cookiesBlockedPage(kind));
    const to = new URL(kind.openPath, uiUrl);
    to.searchParams.set('label', label);
    to.searchParams.set('binding', secretDigest(browser.id));
    to.searchParams.set('ticket', grants.ticketFor(request.url ?? '/', host, now));
    return answer(303, { location: to.href, 'set-cookie': bindingCookie(browser) });
  }

  /** Returns at once when the store does. */
  function authorize(request: HttpRequest, at: PrivateAt): Verdict | Promise<Verdict> {
    // An installed service worker would outlive every grant (private-access.md 2.3).
    if (headOf(request).isWorkerScript) return { kind: 'answer', answer: answer(403) };
    const decide = (found: GrantCheck): Verdict => {
      if (found.kind === 'granted') return found;
      const refusal = isNavigation(request) ? sendToUi(request, at, found.now) : answer(401);
      return { kind: 'answer', answer: refusal };
    };
    const found = check(request, at);
    if (!(found instanceof Promise)) return decide(found);
    return orUnavailable(found.then(decide), (refusal) => ({ kind: 'answer', answer: refusal }));
  }

  async function showClock(request: HttpRequest, at: PrivateAt): Promise<GatewayAnswer> {
    const found = await check(request, at);
    if (found.kind === 'none') return answer(401);
    const secondsLeft = Math.floor((found.until - found.now) / second);
    const body = JSON.stringify({ secondsLeft, link: uiUrl + kind.linkPath + found.targetId });
    return answer(200, { 'content-type': 'application/json; charset=utf-8' }, body);
  }

  /**
   * Steps 5 to 7. Every failure looks the same, except for a browser that keeps no cookies: it would be redirected for
   * ever.
   */
  async function redeem(request: HttpRequest, at: PrivateAt): Promise<GatewayAnswer> {
    const from = originOf(request);
    const refuse = (reason: string) => {
      grants.refuse(reason, from);
      return shown(403, refusedPage(kind));
    };
    const stray = strayReason(request);
    if (stray !== null) return refuse(stray);
    const code = await codeIn(request);
    if (code === null) return refuse('code_malformed');
    const browser = browserOf(request, 0);
    if (browser === undefined) {
      grants.refuse('browser_not_bound', from);
      return shown(403, cookiesBlockedPage(kind));
    }
    const origin = `${protocol}//${at.host}`;
    const outcome = await grants.redeem({ origin, host: at.host, code, binding: browser.id, from });
    if (outcome.kind === 'refused') return shown(403, refusedPage(kind));
    const { cookie, maxAgeSeconds, path, now } = outcome;
    const counted = browserOf(request, now) ?? browser;
    return answer(303, {
      location: origin + path,
      'set-cookie': [
        `${kind.cookie}=${cookie}; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=${maxAgeSeconds}`,
        bindingCookie({
          ...counted,
          tries: counted.tries + 1,
          since: counted.tries === 0 ? now : counted.since,
        }),
      ],
      // Clears what an earlier grant left in this browser's cache. Browsers without support still obey `no-store`.
      'clear-site-data': '"cache"',
    });
  }

  /** Why our own page in a browser did not make this post; null when it may have. */
  function strayReason(request: HttpRequest): string | null {
    const { 'content-type': type = '', 'sec-fetch-site': site, 'sec-fetch-mode': mode } = request.headers;
    const origins = valuesOf(request, 'origin');
    if (origins.length !== 1 || origins[0] !== uiUrl) return 'wrong_origin';
    // Absent in older browsers and other clients; a value that is present must match (threat T28).
    if (site !== undefined && !fetchSites.includes(site)) return 'wrong_origin';
    if (mode !== undefined && mode !== 'navigate') return 'wrong_origin';
    if (!/^application\/x-www-form-urlencoded(?: *; *charset="?utf-8"?)?$/i.test(type)) return 'not_a_form';
    return null;
  }

  return {
    watch(request, { host, known }) {
      const { cookie } = headOf(request);
      return {
        name: `${host} ${cookie}`,
        async holds() {
          try {
            const found = await grants.check({ host, site: known, cookie, from: () => originOf(request) });
            return found.kind === 'granted';
          } catch {
            return false;
          }
        },
      };
    },
    mayHoldGrant(request, host) {
      const found = grants.isFor(headOf(request).cookie, host);
      return found instanceof Promise
        ? orUnavailable<boolean | GatewayAnswer>(found, (refusal) => refusal)
        : found;
    },
    authorize,
    reserved(request, at) {
      const isPost = request.method === 'POST';
      // A private site has files only, so no other path takes a form, on any label.
      if (!at.target.startsWith(reservedPaths))
        return isPost && kind.name === 'site' ? Promise.resolve(answer(405, { allow: 'GET, HEAD' })) : null;
      const [path] = at.target.split('?', 1);
      const same = (refusal: GatewayAnswer) => refusal;
      if (path === '/.postern/redeem' && isPost) return orUnavailable(redeem(request, at), same);
      if (path === '/.postern/grant' && (request.method === 'GET' || request.method === 'HEAD'))
        return orUnavailable(showClock(request, at), same);
      return isPost ? Promise.resolve(answer(405, { allow: 'GET, HEAD' })) : null;
    },
  };
}

/**
 * The response to a request whose head was too large, most likely because a sibling site set cookies for the whole
 * domain (threat T32). The gateway does not know the request's host, so the page is the same on every host.
 */
export function oversizedAnswer(): GatewayAnswer {
  const { document, contentSecurityPolicy } = tooManyCookiesPage();
  return {
    status: 431,
    headers: {
      ...always,
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': contentSecurityPolicy,
      'clear-site-data': '"cookies"',
    },
    body: document,
  };
}

/** Whether a person opens a page, by the browser's headers. A plain GET without these headers counts as one, a WebSocket not. */
function isNavigation({ method, headers }: HttpRequest): boolean {
  const { 'sec-fetch-mode': mode = 'navigate', 'sec-fetch-dest': dest = 'document' } = headers;
  const isAhead = ['sec-purpose', 'purpose', 'x-moz'].some((name) => headers[name] !== undefined);
  const isPage = mode === 'navigate' && dest === 'document' && headers.upgrade !== 'websocket';
  return method === 'GET' && isPage && !isAhead;
}

function isWorkerScript({ headers }: HttpRequest): boolean {
  return headers['service-worker'] !== undefined || headers['sec-fetch-dest'] === 'serviceworker';
}

/** The form's only field; null when the body is too long or anything else. */
async function codeIn(request: HttpRequest): Promise<string | null> {
  // A request that the fast reader accepted has no body.
  if (request instanceof FastRequest) return null;
  if (Number(request.headers['content-length'] ?? 0) > maxFormBytes) return null;
  const body = await bodyOf(request);
  const fields = [...new URLSearchParams(body ?? '')];
  const [first] = fields;
  return fields.length === 1 && first?.[0] === 'code' ? first[1] : null;
}

/** Null when the body is too long or cut off. Uses events: leaving an async iteration early would close the connection. */
function bodyOf(request: IncomingMessage): Promise<string | null> {
  // A request without a body has ended before a listener is attached (optimizeEmptyRequests of the server).
  if (request.readableEnded) return Promise.resolve('');
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > maxFormBytes) resolve(null);
      else chunks.push(chunk);
    });
    request.on('end', () => resolve(Buffer.concat(chunks).toString('latin1')));
    request.on('error', () => resolve(null));
    request.on('close', () => resolve(null));
  });
}
