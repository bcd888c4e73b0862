import { Agent, request as sendPlain } from 'node:http';
import { Agent as TlsAgent, request as sendOverTls } from 'node:https';
import { setTimeout as wait } from 'node:timers/promises';
import { createVisitor, type Reply, type Sent, type Visitor } from '../../src/operations/drill/visitor.ts';

export type { Reply };

// Parsed JSON; a wrong field shows as a failing expectation.
// oxlint-disable-next-line typescript/no-explicit-any
export type Envelope = { readonly data: any; readonly error: any; readonly metadata?: any };

/** The connection broke before the response was complete: it is unknown whether the change was made. */
export class NoAnswer extends Error {}

/** How to reach the addresses on loopback, instead of by their names: ports, and the authority that signs certificates. */
export type Way = {
  readonly port?: number;
  /** The port of sites; default: `port`. */
  readonly contentPort?: number;
  readonly ca?: string;
  readonly localAddress?: string;
};

/**
 * A person's browser over real connections, and scripts with keys beside it. It retries what was refused for a moment, and
 * its cookies outlive a restart of the server, as a person's do.
 */
export class Browser {
  readonly origin: string;
  readonly signIn: Visitor['signIn'];
  readonly navigate: Visitor['navigate'];
  readonly submit: Visitor['submit'];
  readonly open: Visitor['open'];
  readonly cookies: Visitor['cookies'];
  readonly #visitor: Visitor;
  readonly #way: Way | undefined;
  #agent: Agent;

  constructor(origin: string, way?: Way) {
    this.origin = origin;
    this.#way = way;
    this.#agent = this.#newAgent();
    const visitor = createVisitor(origin, (method, url, sent) => this.#request(method, url, sent));
    this.signIn = visitor.signIn;
    this.navigate = visitor.navigate;
    this.submit = visitor.submit;
    this.open = visitor.open;
    this.cookies = visitor.cookies;
    this.#visitor = visitor;
  }

  #newAgent(): Agent {
    const options = { keepAlive: true, maxSockets: 64 };
    if (!this.origin.startsWith('https:')) return new Agent(options);
    return new TlsAgent({ ...options, ca: this.#way?.ca });
  }

  get session(): string {
    return /__Host-postern_session=([^;]*)/.exec(this.cookies(this.origin))?.[1] ?? '';
  }

  /** Calls the API in the person's session. @throws NoAnswer */
  async api(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Reply & Envelope> {
    return parsed(await this.#visitor.api(method, path, body, headers));
  }

  /** A script's request with a key: no cookies. @throws NoAnswer */
  async asKey(
    value: string,
    method: string,
    path: string,
    sent?: { type: string; body: Buffer },
  ): Promise<Reply> {
    const { type, ...body } = sent ?? {};
    const headers = {
      authorization: `Bearer ${value}`,
      ...(type === undefined ? {} : { 'content-type': type }),
    };
    return await this.#request(method, `${this.origin}/api/v2${path}`, { headers, ...body });
  }

  /** A request without a credential. @throws NoAnswer */
  async post(path: string, { type, bytes }: { type: string; bytes: Buffer }): Promise<Reply> {
    const sent = { headers: { 'content-type': type }, body: bytes };
    return await this.#request('POST', `${this.origin}/api/v2${path}`, sent);
  }

  /** Uploads bytes in the person's session. @throws NoAnswer */
  async upload(path: string, type: string, body: Buffer): Promise<Reply & Envelope> {
    return parsed(await this.#visitor.api('POST', path, body, { 'content-type': type }));
  }

  /** Closes every connection, including those to a server that is gone. */
  disconnect(): void {
    this.#agent.destroy();
    this.#agent = this.#newAgent();
  }

  /** Retries on 503, as a careful client does: it means that nothing was done. */
  async #request(method: string, url: string, sent: Sent): Promise<Reply> {
    for (let attempt = 1; ; attempt += 1) {
      const reply = await this.#requestOnce(method, url, sent);
      if (reply.status !== 503 || attempt === 300) return reply;
      await wait(200);
    }
  }

  #requestOnce(method: string, url: string, { headers, body }: Sent): Promise<Reply> {
    const { protocol, port, host, hostname, pathname, search } = new URL(url);
    const way = this.#way;
    const isHere = way !== undefined || /(?:^|\.)localhost$/.test(hostname);
    const ownPort = url.startsWith(`${this.origin}/`) ? way?.port : (way?.contentPort ?? way?.port);
    const send = protocol === 'http:' ? sendPlain : sendOverTls;
    return new Promise((resolve, reject) => {
      const lost = (error: Error) => reject(new NoAnswer(error.message));
      const request = send(
        {
          host: isHere ? '127.0.0.1' : hostname,
          port: ownPort ?? port,
          ...(protocol === 'http:' ? {} : { servername: hostname }),
          localAddress: way?.localAddress,
          method,
          path: pathname + search,
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
}

function parsed(reply: Reply): Reply & Envelope {
  return { ...reply, ...(JSON.parse(reply.text) as Envelope) };
}
