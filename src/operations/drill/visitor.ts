import { request as send } from 'node:http';

/**
 * A browser, or a script with a key, for the drill: real connections to one instance on loopback. Keeps the cookies of
 * each host, sends Origin, and follows each redirect to a private site.
 */
export type Reply = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
};

export type Visitor = {
  /** @throws Error when it fails */
  signIn(email: string, password: string): Promise<void>;
  /** Calls the API in the person's session; a body that is not a string is sent as JSON. */
  api(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Reply>;
  /** Requests a content address as a page navigation. */
  navigate(url: string): Promise<Reply>;
  /** Requests a subresource, as a page does. */
  asset(url: string): Promise<Reply>;
  /** Follows all steps to a private site; returns the content, or the response at which it ended. */
  open(url: string): Promise<Reply>;
  /** The same session in a browser that has not visited any site. */
  afresh(): Visitor;
};

type Sent = { readonly headers: Record<string, string>; readonly body?: string };

/** Longer than any response of a healthy instance. */
const patienceMs = 10_000;
const navigation = {
  'sec-fetch-mode': 'navigate',
  'sec-fetch-dest': 'document',
  'sec-fetch-site': 'none',
  accept: 'text/html',
};
const subresource = { 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image', accept: 'image/*' };
const form = { 'content-type': 'application/x-www-form-urlencoded' };

/** A script's request with a key: no cookies. */
export function asKey(uiUrl: string, value: string, method: string, path: string): Promise<Reply> {
  return ask(method, `${uiUrl}/api/v2${path}`, { headers: { authorization: `Bearer ${value}` } });
}

export function createVisitor(uiUrl: string, cookiesOfUi: Iterable<[string, string]> = []): Visitor {
  const jar = new Map([[new URL(uiUrl).host, new Map(cookiesOfUi)]]);

  function cookiesAt(url: string): Map<string, string> {
    const { host } = new URL(url);
    const found = jar.get(host) ?? new Map<string, string>();
    jar.set(host, found);
    return found;
  }

  async function go(method: string, url: string, { headers, body }: Sent): Promise<Reply> {
    const kept = cookiesAt(url);
    const cookie = [...kept].map(([name, value]) => `${name}=${value}`).join('; ');
    const reply = await ask(method, url, {
      headers: { ...(cookie === '' ? {} : { cookie }), ...headers },
      ...(body === undefined ? {} : { body }),
    });
    for (const line of [reply.headers['set-cookie'] ?? []].flat()) keep(kept, line);
    return reply;
  }

  async function follow(first: Reply): Promise<Reply> {
    let reply = first;
    for (let hop = 0; hop < 10; hop += 1) {
      const { location } = reply.headers;
      if (typeof location !== 'string') return reply;
      reply = await go('GET', new URL(location, uiUrl).href, { headers: navigation });
    }
    return reply;
  }

  const navigate = (url: string) => go('GET', url, { headers: navigation });

  const visitor: Visitor = {
    async signIn(email, password) {
      cookiesAt(uiUrl).clear();
      const shown = await follow(await navigate(`${uiUrl}/auth/login?returnTo=/`));
      const action = /<form method="post" action="([^"]+)"/.exec(shown.text)?.[1];
      if (action === undefined)
        throw new Error(`There is no sign-in form; the page responds with ${shown.status}.`);
      const body = new URLSearchParams({ email, password, decision: 'sign-in' }).toString();
      const headers = { ...navigation, 'sec-fetch-site': 'same-origin', ...form, origin: uiUrl };
      await follow(await go('POST', new URL(action, uiUrl).href, { headers, body }));
      if (!cookiesAt(uiUrl).has('__Host-postern_session')) throw new Error('Signing in failed.');
    },
    api: (method, path, body, headers = {}) =>
      go(method, `${uiUrl}/api/v2${path}`, {
        headers: {
          accept: 'application/json',
          origin: uiUrl,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      }),
    navigate,
    asset: (url) => go('GET', url, { headers: subresource }),
    async open(url) {
      const first = await navigate(url);
      if (first.status !== 303) return first;
      const handOver = await navigate(String(first.headers['location']));
      const target = /action="([^"]+)"/.exec(handOver.text)?.[1];
      const code = /name="code" value="([^"]+)"/.exec(handOver.text)?.[1];
      if (handOver.status !== 200 || target === undefined || code === undefined) return handOver;
      const headers = { ...navigation, 'sec-fetch-site': 'cross-site', ...form, origin: uiUrl };
      const redeemed = await go('POST', target, { headers, body: `code=${code}` });
      if (redeemed.status !== 303) return redeemed;
      return await navigate(String(redeemed.headers['location']));
    },
    afresh: () => createVisitor(uiUrl, cookiesAt(uiUrl)),
  };
  return visitor;
}

/** `data` of an API response; empty when it has none. */
export function dataOf({ text }: Reply): Readonly<Record<string, unknown>> {
  const body: unknown = JSON.parse(text);
  const data: unknown = typeof body === 'object' && body !== null ? Reflect.get(body, 'data') : undefined;
  return typeof data === 'object' && data !== null ? Object.fromEntries(Object.entries(data)) : {};
}

function keep(kept: Map<string, string>, line: string): void {
  const [pair = '', ...attributes] = line.split(';').map((part) => part.trim());
  const at = pair.indexOf('=');
  const isGone = attributes.some((one) => /^(?:max-age=0$|expires=thu, 01 jan 1970)/i.test(one));
  if (isGone || at === pair.length - 1) kept.delete(pair.slice(0, at));
  else kept.set(pair.slice(0, at), pair.slice(at + 1));
}

/**
 * Names below localhost are this machine (RFC 6761), but not every resolver knows them. So the request goes to loopback,
 * and the Host header carries the name.
 */
function ask(method: string, url: string, { headers, body }: Sent): Promise<Reply> {
  const { host, port, pathname, search } = new URL(url);
  const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) };
  return new Promise((resolve, reject) => {
    const request = send(
      {
        host: '127.0.0.1',
        port,
        method,
        path: pathname + search,
        agent: false,
        signal: AbortSignal.timeout(patienceMs),
        headers: { host, ...headers, ...length },
      },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => void chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () =>
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            text: Buffer.concat(chunks).toString(),
          }),
        );
      },
    );
    request.on('error', reject);
    request.end(body);
  });
}
