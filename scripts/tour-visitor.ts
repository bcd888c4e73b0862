/** The visitor of the tour, and how each request and response is printed: with all credential values masked. */
export type Answer = { status: number; headers: Headers; body: string; json: Envelope };
type Envelope = { data: Record<string, unknown>; error: { code: string } | null };

/** A person with a browser: keeps cookies and follows redirects one by one. */
export class Visitor {
  readonly #cookies = new Map<string, string>();
  readonly #base: string;

  constructor(base: string) {
    this.#base = base;
  }

  /** Sends a file as the body. */
  async upload(method: string, path: string, type: string, bytes: Buffer): Promise<Answer> {
    return await toAnswer(
      await fetch(new URL(path, this.#base), {
        method,
        headers: { cookie: this.cookies(), origin: this.#base, 'content-type': type },
        body: new Uint8Array(bytes),
      }),
    );
  }

  cookies(): string {
    return [...this.#cookies].map((pair) => pair.join('=')).join('; ');
  }

  /** Sends a request as the browser of a signed-in person does: with cookies, and with Origin on writes. */
  async ask(
    method: string,
    path: string,
    body?: object | URLSearchParams,
    headers: Record<string, string> = {},
  ): Promise<Answer> {
    const isForm = body instanceof URLSearchParams;
    const response = await fetch(new URL(path, this.#base), {
      method,
      redirect: 'manual',
      headers: {
        ...(this.#cookies.size === 0 ? {} : { cookie: this.cookies() }),
        ...(method === 'GET' ? {} : { origin: this.#base }),
        ...(body === undefined
          ? {}
          : { 'content-type': isForm ? 'application/x-www-form-urlencoded' : 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: isForm ? body.toString() : JSON.stringify(body) }),
    });
    for (const cookie of response.headers.getSetCookie()) {
      const [name = '', value = ''] = (cookie.split(';', 1)[0] ?? '').split(/=(.*)/s);
      if (/max-age=0/i.test(cookie)) this.#cookies.delete(name);
      else this.#cookies.set(name, value);
    }
    return await toAnswer(response);
  }

  /** Signs in on the built-in provider's page, redirect by redirect. */
  async signIn(email: string, password: string): Promise<void> {
    let answer = await this.ask('GET', '/auth/login?returnTo=/');
    for (let step = 0; step < 12; step++) {
      const location = answer.headers.get('location');
      if (location === '/') return;
      if (location !== null) answer = await this.ask('GET', location);
      else answer = await this.#postForm(answer, { email, password });
    }
    throw new Error('Signing in did not come to an end.');
  }

  async #postForm(answer: Answer, fields: Record<string, string>): Promise<Answer> {
    const action = /<form[^>]* action="([^"]+)"/.exec(answer.body)?.[1];
    if (action === undefined || answer.body.includes('role="alert"')) {
      throw new Error('The sign-in was refused. Check TOUR_EMAIL and TOUR_PASSWORD.');
    }
    return await this.ask('POST', action.replaceAll('&amp;', '&'), new URLSearchParams(fields));
  }
}

export async function toAnswer(response: Response): Promise<Answer> {
  const body = await response.text();
  const isJson = (response.headers.get('content-type') ?? '').startsWith('application/json');
  return {
    status: response.status,
    headers: response.headers,
    body,
    json: isJson ? JSON.parse(body) : { data: {}, error: null },
  };
}

/** Masks every credential value before the text is printed. */
export function masked(text: string): string {
  return text
    .replaceAll(/\b([a-z][a-z0-9]*_(?:pat|svc)_)[0-9A-Za-z]{12,}/g, '$1••••••••')
    .replaceAll(/\b((?:ticket|binding|code)=)[A-Za-z0-9_-]{20,}/g, '$1••••••••');
}

/** The number of steps so far. */
export let steps = 0;

export function title(text: string): void {
  steps += 1;
  console.log(`\n${steps}. ${text}`);
}

export function show(request: string, answer: Answer, note = ''): void {
  const retry = answer.headers.get('retry-after');
  const headers = [answer.headers.get('ratelimit'), retry === null ? null : `Retry-After: ${retry}`].filter(
    (part) => part !== null,
  );
  console.log(`   → ${masked(request)}`);
  console.log(`   ← ${answer.status}${headers.length === 0 ? '' : `   ${headers.join('   ')}`}`);
  const body = masked(JSON.stringify(answer.json.error ?? answer.json.data, null, 2));
  const lines = body.split('\n');
  console.log(
    lines
      .slice(0, 24)
      .map((line) => `     ${line}`)
      .join('\n') + (lines.length > 24 ? '\n     …' : ''),
  );
  if (note !== '') console.log(`   ${note}`);
}

export function expect(answer: Answer, status: number, code: string | null = null): void {
  const found = answer.json.error?.code ?? null;
  if (answer.status === status && found === code) return;
  throw new Error(
    `Expected ${status} ${code ?? ''} and got ${answer.status} ${found ?? ''}: ${masked(answer.body).slice(0, 500)}`,
  );
}
