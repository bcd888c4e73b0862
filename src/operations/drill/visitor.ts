import { request as send } from 'node:http';

/**
 * A person's browser, without a window: keeps the cookies of each host, sends Origin, signs in, and follows each redirect
 * to a private site. `deliver` connects it with a server: for the drill, `overLoopback`.
 */
export type Reply = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
};

export type Visitor<R extends Reply = Reply> = {
  /** @throws Error when it fails */
  signIn(email: string, password: string): Promise<void>;
  /** Calls the API in the person's session; a body that is neither a string nor bytes is sent as JSON. */
  api(method: string, path: string, body?: unknown, headers?: Headers): Promise<R>;
  /** Sends a form of the web app. */
  submit(action: string, fields: Readonly<Record<string, string>>): Promise<R>;
  /** Requests a page, as a navigation. */
  navigate(url: string, headers?: Headers): Promise<R>;
  /** Requests a subresource, as a page does. */
  asset(url: string, headers?: Headers): Promise<R>;
  /** Follows all steps to a private site; returns the content, or the response at which it ended. */
  open(url: string): Promise<R>;
  /** The second of these steps: the page of the web app that sends `code` to `target`. */
  handOver(location: string): Promise<R & { readonly target: string; readonly code: string }>;
  /** The third of these steps: the form of that page. */
  redeem(target: string, code: string, headers?: Headers): Promise<R>;
  /** The Cookie header for the host of this address. */
  cookies(url: string): string;
  set(url: string, name: string, value: string): void;
  /** The same session in a browser that has not visited any site. */
  afresh(): Visitor<R>;
};

/** One request and its response, whatever connects the two. */
export type Send<R extends Reply = Reply> = (method: string, url: string, sent: Sent) => Promise<R>;
export type Sent = { readonly headers: Headers; readonly body?: string | Buffer };
type Headers = Record<string, string>;

/** Longer than any response of a healthy instance. */
const patienceMs = 10_000;
export const navigation = {
  'sec-fetch-mode': 'navigate',
  'sec-fetch-dest': 'document',
  'sec-fetch-site': 'none',
  accept: 'text/html',
};
export const subresource = { 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image', accept: 'image/*' };
const form = { 'content-type': 'application/x-www-form-urlencoded' };

/** A script's request with a key: no cookies. */
export function asKey(uiUrl: string, value: string, method: string, path: string): Promise<Reply> {
  return overLoopback(method, `${uiUrl}/api/v2${path}`, { headers: { authorization: `Bearer ${value}` } });
}

/** `session`: the cookies of the web app. */
export function createVisitor<R extends Reply>(
  uiUrl: string,
  deliver: Send<R>,
  session: Iterable<[string, string]> = [],
): Visitor<R> {
  const jar = new Map([[new URL(uiUrl).host, new Map(session)]]);

  function cookiesAt(url: string): Map<string, string> {
    const { host } = new URL(url);
    const found = jar.get(host) ?? new Map<string, string>();
    jar.set(host, found);
    return found;
  }

  const cookies = (url: string) => [...cookiesAt(url)].map(([name, value]) => `${name}=${value}`).join('; ');

  const send: Send<R> = async (method, url, { headers, ...body }) => {
    const cookie = cookies(url);
    const reply = await deliver(method, url, {
      headers: { ...(cookie === '' ? {} : { cookie }), ...headers },
      ...body,
    });
    for (const line of [reply.headers['set-cookie'] ?? []].flat()) keep(cookiesAt(url), line);
    return reply;
  };

  async function follow(first: R): Promise<R> {
    let reply = first;
    for (let hop = 0; hop < 10; hop += 1) {
      const { location } = reply.headers;
      if (typeof location !== 'string') return reply;
      reply = await visitor.navigate(new URL(location, uiUrl).href);
    }
    return reply;
  }

  const visitor: Visitor<R> = {
    async signIn(email, password) {
      cookiesAt(uiUrl).clear();
      const shown = await follow(await visitor.navigate(`${uiUrl}/auth/login?returnTo=/`));
      const action = /<form method="post" action="([^"]+)"/.exec(shown.text)?.[1];
      if (action === undefined)
        throw new Error(`There is no sign-in form; the page responds with ${shown.status}.`);
      const answer = await visitor.submit(action, { email, password, decision: 'sign-in' });
      await follow(answer);
      if (!cookiesAt(uiUrl).has('__Host-postern_session'))
        throw new Error(`Signing in failed: ${answer.status}`);
    },
    api: (method, path, body, headers = {}) =>
      send(method, `${uiUrl}/api/v2${path}`, {
        headers: {
          accept: 'application/json',
          origin: uiUrl,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: isRaw(body) ? body : JSON.stringify(body) }),
      }),
    submit: (action, fields) =>
      send('POST', new URL(action, uiUrl).href, {
        headers: { ...navigation, 'sec-fetch-site': 'same-origin', ...form, origin: uiUrl },
        body: new URLSearchParams(fields).toString(),
      }),
    navigate: (url, headers = {}) => send('GET', url, { headers: { ...navigation, ...headers } }),
    asset: (url, headers = {}) => send('GET', url, { headers: { ...subresource, ...headers } }),
    async open(url) {
      const first = await visitor.navigate(url);
      if (first.status !== 303) return first;
      const shown = await visitor.handOver(String(first.headers['location']));
      if (shown.status !== 200 || shown.code === '') return shown;
      const redeemed = await visitor.redeem(shown.target, shown.code);
      if (redeemed.status !== 303) return redeemed;
      return await visitor.navigate(String(redeemed.headers['location']));
    },
    async handOver(location) {
      const shown = await visitor.navigate(location);
      const target = /action="([^"]+)"/.exec(shown.text)?.[1] ?? '';
      const code = /name="code" value="([^"]+)"/.exec(shown.text)?.[1] ?? '';
      return { ...shown, target, code };
    },
    redeem: (target, code, headers = {}) =>
      send('POST', target, {
        headers: { ...navigation, 'sec-fetch-site': 'cross-site', ...form, origin: uiUrl, ...headers },
        body: `code=${code}`,
      }),
    cookies,
    set: (url, name, value) => void cookiesAt(url).set(name, value),
    afresh: () => createVisitor(uiUrl, deliver, cookiesAt(uiUrl)),
  };
  return visitor;
}

const isRaw = (body: unknown) => typeof body === 'string' || Buffer.isBuffer(body);

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
export const overLoopback: Send = (method, url, { headers, body }) => {
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
};
