import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { buffer, text } from 'node:stream/consumers';
import { setTimeout as wait } from 'node:timers/promises';
import { createGzip } from 'node:zlib';
import { pack } from 'tar-stream';
import { second } from '../src/core/clock.ts';
import { buildHandbook } from './handbook.ts';
import { type Answer, expect, masked, show, title, type Visitor } from './tour-visitor.ts';

/** The part of the tour that publishes a site, keeps it private, opens it as its owner and makes it public. */
export async function tourOfSites(person: Visitor, base: string): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'postern-handbook-'));
  try {
    const files = await buildHandbook(folder);
    await walk(person, base, { files, archive: await tarOf(folder), changed: await changedTar(folder) });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

type Handbook = { readonly files: number; readonly archive: Buffer; readonly changed: Buffer };
type Site = { id: string; url: string; link: string; version: { number: number } };

async function walk(person: Visitor, base: string, { files, archive, changed }: Handbook): Promise<void> {
  title(`Publish a handbook of ${files} files: private, because nobody said otherwise`);
  const made = await person.upload(
    'POST',
    '/api/v2/sites?name=Handbook&ttlHours=24',
    'application/gzip',
    archive,
  );
  expect(made, 201);
  show(`POST /api/v2/sites   (${archive.length} bytes, application/gzip)`, made);
  const site = made.json.data as unknown as Site;

  title('Without a grant nothing of it can be seen');
  const browser = new ContentBrowser(base);
  const style = await browser.open(`${site.url}assets/style.css`, 'style');
  is(style.status, 401);
  tell(`GET ${site.url}assets/style.css   (as a part of some page)`, style);
  const unknown = await browser.open(site.url.replace(/p-.{17}/, `p-${'a'.repeat(17)}`), 'style');
  is(unknown.status, 401);
  console.log('   A site that nobody has answers the same.');

  title('Its owner opens the link and is let in for five minutes');
  const opened = await browser.letIn(person, site.link);
  is(opened.status, 200);
  if (!opened.body.includes('<h1>Postern</h1>'))
    throw new Error('The start page of the handbook is missing.');
  tell(`GET ${site.url}`, opened, opened.body.match(/<title>.*<\/title>/)?.[0]);
  const part = await browser.open(`${site.url}assets/style.css`, 'style');
  is(part.status, 200);
  tell(`GET ${site.url}assets/style.css`, part, part.headers['cache-control']);
  const clock = await browser.open(`${site.url}.postern/grant`, 'empty');
  is(clock.status, 200);
  tell(`GET ${site.url}.postern/grant`, clock, clock.body.trim());

  title('Who was let in, and would it open now?');
  const access = await person.ask('GET', `/api/v2/sites/${site.id}/access`);
  expect(access, 200);
  show(`GET /api/v2/sites/${site.id}/access`, access);

  title('Replace the content; the version before can be brought back');
  const replaced = await person.upload(
    'PUT',
    `/api/v2/sites/${site.id}/content`,
    'application/gzip',
    changed,
  );
  expect(replaced, 200);
  await soon(async () =>
    is((await browser.open(`${site.url}assets/style.css`, 'style')).body.includes('hotpink'), true),
  );
  const report = await person.ask('GET', `/api/v2/sites/${site.id}/versions/2`);
  expect(report, 200);
  show(`GET /api/v2/sites/${site.id}/versions/2`, report);
  const back = await person.ask('POST', `/api/v2/sites/${site.id}/versions/1/publish`);
  expect(back, 200);
  show(`POST /api/v2/sites/${site.id}/versions/1/publish`, back);

  title('End every grant: the browser that was in is out, at once');
  const ended = await person.ask('DELETE', `/api/v2/sites/${site.id}/grants`);
  expect(ended, 200);
  show(`DELETE /api/v2/sites/${site.id}/grants`, ended);
  is((await browser.open(`${site.url}assets/style.css`, 'style')).status, 401);

  title('Make it public: a new address, and the old one is gone for ever');
  const shown = await person.ask('PATCH', `/api/v2/sites/${site.id}`, { visibility: 'public' });
  expect(shown, 200);
  show(`PATCH /api/v2/sites/${site.id} {"visibility":"public"}`, shown);
  const { url } = shown.json.data as unknown as Site;
  const anyone = await soon(async () => {
    const page = await new ContentBrowser(base).open(`${url}tutorial`, 'document');
    is(page.status, 200);
    return page;
  });
  tell(`GET ${url}tutorial   (anyone)`, anyone, anyone.headers['etag']);

  title('Delete it; nothing is served, and for some days it can be restored');
  const deleted = await person.ask('DELETE', `/api/v2/sites/${site.id}`);
  expect(deleted, 200);
  await soon(async () => is((await new ContentBrowser(base).open(url, 'document')).status, 404));
  show(`DELETE /api/v2/sites/${site.id}`, deleted);
}

type Content = {
  status: number;
  headers: Record<string, string | undefined>;
  cookies: readonly string[];
  body: string;
};

/** The same person's browser on content hosts. It resolves *.localhost to this machine without DNS. */
class ContentBrowser {
  readonly #cookies = new Map<string, Map<string, string>>();
  readonly #base: string;

  constructor(base: string) {
    this.#base = base;
  }

  async open(url: string, dest: string): Promise<Content> {
    return await this.#send(url, 'GET', dest);
  }

  /** The browser's steps from the stable link to the page, including the form's button. */
  async letIn(person: Visitor, link: string): Promise<Content> {
    const linked = await person.ask('GET', new URL(link).pathname);
    const page = await this.open(locationOf(linked.status, linked.headers.get('location')), 'document');
    const asked = locationOf(page.status, page.headers['location']);
    // Requests it as a page navigation: other requests of a program get no code.
    const handed = await this.#send(asked, 'GET', 'document', { cookie: person.cookies() });
    is(handed.status, 200);
    tell(`GET ${asked}`, { status: handed.status }, 'a page that hands a one-time code over by a form');
    const action = unescaped(/<form[^>]* action="([^"]+)"/.exec(handed.body)?.[1] ?? '');
    const code = unescaped(/name="code"[^>]* value="([^"]+)"/.exec(handed.body)?.[1] ?? '');
    const redeemed = await this.#send(action, 'POST', 'document', {
      body: new URLSearchParams({ code }).toString(),
    });
    tell(`POST ${action} code=••••••••`, redeemed, 'a cookie for this host alone, for five minutes at most');
    return await this.open(
      new URL(locationOf(redeemed.status, redeemed.headers['location']), action).href,
      'document',
    );
  }

  async #send(
    url: string,
    method: string,
    dest: string,
    { body, cookie }: { body?: string; cookie?: string } = {},
  ): Promise<Content> {
    const { protocol, host, hostname, port, pathname, search } = new URL(url);
    const jar = this.#cookies.get(host) ?? new Map<string, string>();
    this.#cookies.set(host, jar);
    const send = protocol === 'https:' ? httpsRequest : httpRequest;
    const answer = await new Promise<Content>((resolve, reject) => {
      const request = send(
        {
          host: hostname.endsWith('.localhost') ? '127.0.0.1' : hostname,
          port,
          method,
          path: pathname + search,
          headers: {
            host,
            cookie: cookie ?? [...jar].map((pair) => pair.join('=')).join('; '),
            'sec-fetch-dest': dest,
            'sec-fetch-mode': dest === 'document' ? 'navigate' : 'no-cors',
            'sec-fetch-site': method === 'POST' ? 'cross-site' : 'none',
            ...(body === undefined
              ? {}
              : { origin: this.#base, 'content-type': 'application/x-www-form-urlencoded' }),
          },
        },
        (response) => {
          text(response).then(
            (found) =>
              resolve({
                status: response.statusCode ?? 0,
                headers: response.headers as Content['headers'],
                cookies: response.headers['set-cookie'] ?? [],
                body: found,
              }),
            reject,
          );
        },
      );
      request.on('error', reject);
      request.end(body);
    });
    for (const cookie of answer.cookies) {
      const [name = '', value = ''] = (cookie.split(';', 1)[0] ?? '').split(/=(.*)/s);
      if (/max-age=0/i.test(cookie)) jar.delete(name);
      else jar.set(name, value);
    }
    return answer;
  }
}

function locationOf(status: number, location: string | null | undefined): string {
  if ((status === 302 || status === 303) && typeof location === 'string') return location;
  throw new Error(`Expected a redirect and got ${status}.`);
}

function unescaped(attribute: string): string {
  return attribute.replaceAll('&#x3D;', '=').replaceAll('&amp;', '&');
}

function tell(what: string, { status }: Pick<Answer, 'status'>, note = ''): void {
  console.log(`   → ${masked(what)}\n   ← ${status}${note === '' ? '' : `   ${masked(note)}`}`);
}

/** A change takes effect on every gateway within a second (contract 6), so this retries until then. */
async function soon<T>(holds: () => Promise<T>): Promise<T> {
  const until = Date.now() + second;
  for (;;) {
    try {
      return await holds();
    } catch (error) {
      if (Date.now() > until) throw error;
    }
    await wait(50);
  }
}

function is<T>(found: T, wanted: T): void {
  if (found !== wanted) throw new Error(`Expected ${String(wanted)} and got ${String(found)}.`);
}

async function tarOf(folder: string, change: (path: string, content: Buffer) => Buffer = (_, same) => same) {
  const archive = pack();
  for (const name of await readdir(folder, { recursive: true })) {
    const path = join(folder, name);
    if ((await stat(path)).isFile())
      archive.entry({ name: relative(folder, path) }, change(name, await readFile(path)));
  }
  archive.finalize();
  return await buffer(archive.pipe(createGzip()));
}

function changedTar(folder: string): Promise<Buffer> {
  return tarOf(folder, (path, content) =>
    path.endsWith('style.css') ? Buffer.from(`${content.toString()}h1 { color: hotpink; }\n`) : content,
  );
}
