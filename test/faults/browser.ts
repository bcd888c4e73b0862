import { Agent, request as sendPlain } from 'node:http';
import { Agent as TlsAgent, request as sendOverTls } from 'node:https';
import { setTimeout as wait } from 'node:timers/promises';

/**
 * A person's browser over real connections: keeps cookies, sends Origin with every request, follows redirects during
 * sign-in. The cookies outlive a restart of the server, as a person's do.
 */
export type Reply = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
};

// Parsed JSON; a wrong field shows as a failing expectation.
// oxlint-disable-next-line typescript/no-explicit-any
export type Envelope = { readonly data: any; readonly error: any; readonly metadata?: any };

type Sent = { type?: string; body?: string | Buffer; headers?: Record<string, string> };

/** The connection broke before the response was complete: it is unknown whether the change was made. */
export class NoAnswer extends Error {}

/** How to reach an https origin: a proxy on loopback, with certificates signed by `ca`. */
export type Way = { readonly port: number; readonly ca: string; readonly localAddress?: string };

export class Browser {
  readonly origin: string;
  readonly #way: Way | undefined;
  readonly #cookies = new Map<string, string>();
  #agent: Agent;

  constructor(origin: string, way?: Way) {
    this.origin = origin;
    this.#way = way;
    this.#agent = this.#newAgent();
  }

  #newAgent(): Agent {
    const options = { keepAlive: true, maxSockets: 64 };
    return this.#way === undefined ? new Agent(options) : new TlsAgent({ ...options, ca: this.#way.ca });
  }

  async signIn(email: string, password: string): Promise<void> {
    const form = await this.#follow(await this.send('GET', '/auth/login?returnTo=/'));
    const action = /<form method="post" action="([^"]+)"/.exec(form.text)?.[1];
    if (action === undefined) throw new Error(`No sign-in form: ${form.status} ${form.text}`);
    const answer = await this.send('POST', action, {
      type: 'application/x-www-form-urlencoded',
      body: new URLSearchParams({ email, password, decision: 'sign-in' }).toString(),
    });
    await this.#follow(answer);
    if (!this.#cookies.has('__Host-postern_session'))
      throw new Error(`Signing in failed: ${answer.status} ${answer.text}`);
  }

  get session(): string {
    return this.#cookies.get('__Host-postern_session') ?? '';
  }

  /** Calls the API in the person's session. @throws NoAnswer */
  async api(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Reply & Envelope> {
    const reply = await this.send(method, `/api/v2${path}`, {
      headers,
      ...(body === undefined ? {} : { type: 'application/json', body: JSON.stringify(body) }),
    });
    return { ...reply, ...(JSON.parse(reply.text) as Envelope) };
  }

  /** A script's request with a key: no cookies. @throws NoAnswer */
  async asKey(
    value: string,
    method: string,
    path: string,
    sent?: { type: string; body: Buffer },
  ): Promise<Reply> {
    const headers = {
      authorization: `Bearer ${value}`,
      ...(sent === undefined ? {} : { 'content-type': sent.type }),
    };
    return await this.#request(method, `/api/v2${path}`, headers, sent?.body);
  }

  /** Uploads bytes in the person's session. @throws NoAnswer */
  async upload(path: string, type: string, body: Buffer): Promise<Reply & Envelope> {
    const reply = await this.send('POST', `/api/v2${path}`, { type, body });
    return { ...reply, ...(JSON.parse(reply.text) as Envelope) };
  }

  async send(method: string, path: string, sent: Sent = {}): Promise<Reply> {
    const reply = await this.#request(method, path, this.#headersOf(sent), sent.body);
    for (const line of [reply.headers['set-cookie'] ?? []].flat()) this.#keep(line);
    return reply;
  }

  #headersOf({ type, headers }: Sent): Record<string, string> {
    const cookie = [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    return {
      accept: 'text/html, application/json',
      origin: this.origin,
      ...(type === undefined ? {} : { 'content-type': type }),
      ...(cookie === '' ? {} : { cookie }),
      ...headers,
    };
  }

  /** Closes every connection, including those to a server that is gone. */
  disconnect(): void {
    this.#agent.destroy();
    this.#agent = this.#newAgent();
  }

  async #follow(first: Reply): Promise<Reply> {
    let reply = first;
    for (let hop = 0; hop < 10; hop += 1) {
      const { location } = reply.headers;
      if (typeof location !== 'string') return reply;
      const next = new URL(location, this.origin);
      if (next.origin !== this.origin) return reply;
      reply = await this.send('GET', next.pathname + next.search);
    }
    return reply;
  }

  /** Retries on 503, as a careful client does: it means that nothing was done. */
  async #request(
    method: string,
    path: string,
    headers: Record<string, string>,
    body: string | Buffer | undefined,
  ): Promise<Reply> {
    for (let attempt = 1; ; attempt += 1) {
      const reply = await this.#requestOnce(method, path, headers, body);
      if (reply.status !== 503 || attempt === 50) return reply;
      await wait(200);
    }
  }

  #requestOnce(
    method: string,
    path: string,
    headers: Record<string, string>,
    body: string | Buffer | undefined,
  ): Promise<Reply> {
    const { port, host, hostname } = new URL(this.origin);
    const way = this.#way;
    const send = way === undefined ? sendPlain : sendOverTls;
    return new Promise((resolve, reject) => {
      const lost = (error: Error) => reject(new NoAnswer(error.message));
      const request = send(
        {
          host: '127.0.0.1',
          port: way?.port ?? port,
          ...(way === undefined ? {} : { servername: hostname, localAddress: way.localAddress }),
          method,
          path,
          agent: this.#agent,
          headers: {
            host,
            ...headers,
            ...(body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }),
          },
        },
        (response) => {
          const chunks: Buffer[] = [];
          response.on('data', (chunk: Buffer) => void chunks.push(chunk));
          response.on('error', lost);
          response.on('aborted', () => lost(new Error('cut off')));
          response.on('end', () => {
            if (!response.complete) return lost(new Error('cut off'));
            resolve({
              status: response.statusCode ?? 0,
              headers: response.headers,
              text: Buffer.concat(chunks).toString(),
            });
          });
        },
      );
      request.on('error', lost);
      request.end(body);
    });
  }

  #keep(line: string): void {
    const [pair = '', ...attributes] = line.split(';').map((part) => part.trim());
    const at = pair.indexOf('=');
    const [name, value] = [pair.slice(0, at), pair.slice(at + 1)];
    const isGone = attributes.some(
      (attribute) => /^max-age=0$/i.test(attribute) || /^expires=Thu, 01 Jan 1970/i.test(attribute),
    );
    if (isGone || value === '') this.#cookies.delete(name);
    else this.#cookies.set(name, value);
  }
}
