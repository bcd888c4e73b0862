import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { access, mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer, request as forward } from 'node:http';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openWorld, type Typing, type World } from './command-line.ts';

let world: World;
let env: Record<string, string>;
let folder: string;

beforeAll(async () => {
  world = await openWorld();
  env = { POSTERN_URL: world.server.origin, POSTERN_KEY: await world.newKey(['sites:write']) };
  folder = join(world.home, 'project');
  await put('dist/index.html', '<h1>Handbook</h1>');
  await put('dist/assets/app.js', 'start()');
  await put('dist/assets/copy.js', 'start()');
  await put('dist/notes.txt', 'not for readers');
  await put('dist/.posternignore', 'notes.txt\n');
  await symlink('/etc/hostname', join(folder, 'dist/link.txt'));
});
afterAll(async () => await world?.close());

async function put(path: string, content: string): Promise<void> {
  await mkdir(join(folder, path, '..'), { recursive: true });
  await writeFile(join(folder, path), content);
}

const postern = async (args: string[], typing: Typing = {}) =>
  await world.postern(args, { cwd: folder, ...typing, env: { ...env, ...typing.env } });
const siteFile = async () => {
  const { server, sites } = JSON.parse(await readFile(join(folder, 'postern.site.json'), 'utf8'));
  return { server, site: sites.dist };
};

test('a dry run before the first deploy creates nothing', async () => {
  const { code, out } = await postern(['deploy', '--dry-run', '--json']);
  expect(code).toBe(0);
  expect(JSON.parse(out).data).toMatchObject({ site: null, files: 3, bytes: 31 });
  expect((await postern(['sites', 'list', '--fields', 'id'])).out).toBe('');
});

test('the first deploy creates the site, remembers it, and prints only its address', async () => {
  const { code, out, err } = await postern(['deploy', '--public']);
  expect(code).toBe(0);
  expect(err).toContain('link.txt');
  const { site, server } = await siteFile();
  expect(server).toBe(world.server.origin);
  const shown = JSON.parse((await postern(['sites', 'get', site, '--json'])).out).data;
  expect(out).toBe(`${shown.url}\n`);
  expect(shown).toMatchObject({
    name: 'project',
    visibility: 'public',
    fileCount: 3,
    version: { number: 1 },
  });
});

test('one changed file sends one content; nothing changed sends none', async () => {
  await put('dist/index.html', '<h1>Changed</h1>');
  const dry = JSON.parse((await postern(['deploy', 'dist', '--dry-run', '--json'])).out).data;
  const { site } = await siteFile();
  const sent = { files: 1, bytes: 16, requests: 1 };
  expect(dry).toMatchObject({ site, sent, reused: { files: 2, bytes: 14 } });
  const first = JSON.parse((await postern(['deploy', '--json'])).out).data;
  expect(first).toMatchObject({ site, version: 2, sent, reused: { files: 2, bytes: 14 } });
  const second = JSON.parse((await postern(['deploy', '--json'])).out).data;
  expect(second).toMatchObject({ version: 3, sent: { files: 0, bytes: 0, requests: 0 } });
});

test('all files that the server refuses are named at once, and no content is sent', async () => {
  await put('dist/.env', 'A=1');
  await put('dist/bad%2ename.txt', 'x');
  const { code, out } = await postern(['deploy', '--json']);
  expect(code).toBe(1);
  expect((await postern(['deploy'])).err).toContain('\n  .env: ');
  const { error } = JSON.parse(out);
  expect(error.code).toBe('upload_rejected');
  expect(error.details.files.map(({ path }: { path: string }) => path).toSorted()).toEqual([
    '.env',
    'bad%2ename.txt',
  ]);
  await put('dist/.posternignore', 'notes.txt\n.env\nbad*\n');
});

test('a first deploy names every problem, the dry run too, and creates no site', async () => {
  const key = await world.newKey(['sites:read']);
  await put('first/dist/index.html', 'x');
  await put('first/dist/.env', 'A=1');
  await put('first/dist/js/leak.js', `const key = '${key}';`);
  await put('first/dist/100%25.txt', 'x');
  const cwd = join(folder, 'first');
  const count = async () => (await postern(['sites', 'list', '--fields', 'id'])).out;
  const before = await count();
  for (const options of [[], ['--dry-run']]) {
    const { code, out } = await postern(['deploy', '--json', ...options], { cwd });
    const { error } = JSON.parse(out);
    expect({ code, error: error.code }).toEqual({ code: 1, error: 'credential_in_content' });
    expect(error.details.files.map(({ path }: { path: string }) => path).toSorted()).toEqual([
      '.env',
      '100%25.txt',
      'js/leak.js',
    ]);
    expect(out).not.toContain(key);
  }
  expect(await count()).toBe(before);
  await expect(access(join(cwd, 'postern.site.json'))).rejects.toThrow('ENOENT');
});

test('a site that a deploy created is removed when the server refuses the files', async () => {
  await put('second/dist/index.html', 'x');
  await put('second/dist/zero\u200bwidth.txt', 'x');
  const cwd = join(folder, 'second');
  const count = async () => (await postern(['sites', 'list', '--fields', 'id,status'])).out;
  const before = await count();
  expect(await postern(['deploy'], { cwd })).toMatchObject({ code: 1, out: '' });
  expect(await count()).toBe(before);
  await expect(access(join(cwd, 'postern.site.json'))).rejects.toThrow('ENOENT');
});

test('a site is found by its name; one that does not exist ends with 3, another visibility with 2', async () => {
  expect((await postern(['deploy', '--site', 'project'])).code).toBe(0);
  expect((await postern(['deploy', '--site', 'absent'])).code).toBe(3);
  expect((await postern(['deploy', '--private'])).code).toBe(2);
});

test('another folder never replaces the site of the first: it needs --site, or --name for a new one', async () => {
  await put('docs/index.html', '<h1>Docs</h1>');
  const { site } = await siteFile();
  const refused = await postern(['deploy', 'docs', '--no-input']);
  expect(refused).toMatchObject({ code: 2, out: '' });
  expect(refused.err).toContain(`docs has no site; dist has the site ${site}.`);
  expect(refused.err).toContain('--site SITE');
  const made = await postern(['deploy', 'docs', '--name', 'docs', '--fields', 'site']);
  const second = made.out.trim();
  expect(second).not.toBe(site);
  const again = async (dir: string) => (await postern(['deploy', dir, '--fields', 'site'])).out;
  expect([await again('dist'), await again('docs')]).toEqual([`${site}\n`, `${second}\n`]);
});

test('a postern.site.json without a folder keeps its site, and belongs to the folder from then on', async () => {
  const { site } = await siteFile();
  await put('older.json', JSON.stringify({ server: world.server.origin, site }));
  const options = ['--site-file', 'older.json', '--fields', 'site'];
  expect((await postern(['deploy', 'dist', ...options])).out).toBe(`${site}\n`);
  expect(await postern(['deploy', 'docs', ...options])).toMatchObject({ code: 2, out: '' });
  expect((await postern(['deploy', 'dist', ...options])).out).toBe(`${site}\n`);
});

test('a folder that postern.yaml does not name is not published to its site', async () => {
  const { site } = await siteFile();
  await put('named/postern.yaml', `version: 1\nsite: { id: ${site}, folder: dist }\n`);
  await put('named/other/index.html', 'other');
  const cwd = join(folder, 'named');
  expect(await postern(['deploy', 'other'], { cwd })).toMatchObject({ code: 2, out: '' });
  const service = (output: string) => `{ build: { output: ${output} }, static: {} }`;
  await put(
    'named/postern.yaml',
    `version: 1\nsite: { id: ${site} }\nservices:\n  a: ${service('other')}\n  b: ${service('more')}\n`,
  );
  expect((await postern(['deploy', 'other'], { cwd })).err).toContain('site: { id: …, folder: … }');
});

test('a deploy prints when the site expires, and --expires sets it', async () => {
  const days = async (...options: string[]) => {
    const { out, err } = await postern(['deploy', 'dist', ...options, '--fields', 'expiresAt']);
    expect(err).toContain(`It expires on ${out.slice(0, 10)}`);
    return Math.round((Date.parse(out.trim()) - Date.now()) / 86_400_000);
  };
  expect(await days('--expires', '90d')).toBe(90);
  expect(await days()).toBe(90);
  expect(await days('--expires', '48h')).toBe(2);
  expect(await days()).toBe(30);
  expect(await postern(['deploy', '--expires', 'soon'])).toMatchObject({ code: 2, out: '' });
});

test('a file instead of a folder is refused with the command that publishes it', async () => {
  await put('site.zip', '');
  const { code, err } = await postern(['deploy', 'site.zip']);
  expect({ code, err }).toEqual({
    code: 2,
    err: expect.stringContaining('postern sites create --file site.zip'),
  });
  expect((await postern(['deploy', 'nowhere'])).err).toContain('nowhere is not a folder.');
});

test('a file that names another server is an error', async () => {
  await put('other.json', JSON.stringify({ server: 'https://other.example.com', site: 'k3v9x0q2m7' }));
  expect(await postern(['deploy', '--site-file', 'other.json'])).toMatchObject({ code: 2, out: '' });
});

test('after a lost connection, the deploy continues with what is still missing', async () => {
  await put('dist/later.js', 'later()');
  const way = await unsteady((request) => (request === 1 ? 'cut' : 'pass'));
  const ran = await postern(
    ['deploy', '--site', 'project', '--site-file', 'unused.json', '--fields', 'sent'],
    {
      env: { POSTERN_URL: way.origin },
    },
  );
  await way.close();
  expect(ran).toMatchObject({ code: 0, out: '{"files":1,"bytes":7,"requests":1}\n' });
  expect(ran.err).toContain('The next attempt is in 1 s.');
});

test('after Ctrl-C, the next deploy sends only the rest', async () => {
  // Each is too large to share a request.
  const large = () => randomBytes(4.5 * 1024 ** 2).toString('hex');
  for (const name of ['one', 'two']) await put(`dist/${name}.txt`, large());
  const killed = new AbortController();
  const way = await unsteady((request) => {
    if (request === 2) killed.abort();
    return request === 2 ? 'hold' : 'pass';
  });
  const options = ['deploy', '--site', 'project', '--site-file', 'unused.json', '--fields', 'version,sent'];
  const typing = { env: { POSTERN_URL: way.origin } };
  const first = await postern(options, { ...typing, interrupt: killed.signal });
  expect(first).toMatchObject({ code: null, out: '' });
  const second = await postern(options, typing);
  await way.close();
  expect(second.out).toMatch(/^\d+\t\{"files":1,"bytes":9437184,"requests":1\}\n$/);
});

test('redirects and headers of netlify.toml work on the site; settings without a counterpart are named', async () => {
  const config = `[[redirects]]
from = "/from/*"
to = "/own/:splat"
[[redirects]]
from = "/old"
to = "/new"
[[redirects]]
from = "/*"
to = "/index.html"
status = 200
[[headers]]
for = "/*"
[headers.values]
X-Robots-Tag = "noindex"
Cache-Control = "no-store"
`;
  await mkdir(join(folder, 'moved'), { recursive: true });
  await put('moved/netlify.toml', config);
  await put('moved/dist/index.html', 'start');
  await put('moved/dist/_redirects', '/from/* /first/:splat 302');
  const cwd = join(folder, 'moved');
  const { out, err, code } = await postern(['deploy', '--public', '--fields', 'url,translated'], { cwd });
  const [url = '', translated = ''] = out.trim().split('\t');
  const untranslated = [{ where: 'headers[0] Cache-Control', why: expect.any(String) }];
  expect({ code, translated: JSON.parse(translated) }).toEqual({
    code: 0,
    translated: { files: ['netlify.toml'], spa: true, untranslated },
  });
  expect(err).toContain('  headers[0] Cache-Control: ');
  // Not fetch, which cannot set the host: the name of the site is below localhost.
  const visit = async (path: string) => await visited(new URL(path, url));
  expect(await visit('/from/a')).toMatchObject({ status: 302, location: '/first/a' });
  expect(await visit('/old')).toMatchObject({ status: 301, location: '/new' });
  expect(await visit('/')).toMatchObject({ status: 200, robots: 'noindex' });
  expect(await visit('/deep/link')).toMatchObject({ status: 200, body: 'start' });
  expect(await visit('/netlify.toml')).toMatchObject({ body: 'start' });
});

async function visited({ hostname, port, pathname, host }: URL) {
  const asked = forward({
    hostname: hostname.endsWith('localhost') ? '127.0.0.1' : hostname,
    port,
    path: pathname,
    headers: { host, accept: 'text/html', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' },
  });
  asked.end();
  const [answer] = await once(asked, 'response');
  let body = '';
  for await (const part of answer) body += String(part);
  const { location, 'x-robots-tag': robots } = answer.headers;
  return { status: answer.statusCode, location, robots, body };
}
test('postern.yaml names folder and site; .posternignore excludes files and is counted, .gitignore of an output folder is not', async () => {
  const { site } = await siteFile();
  await put('other/postern.yaml', `version: 1\nsite: { id: ${site}, folder: web/out }\n`);
  for (const path of ['index.html', 'a.css', 'b.map', 'deep/c.map', 'deep/keep.css', 'deep/d.txt'])
    await put(`other/web/out/${path}`, path);
  await put('other/web/out/.gitignore', '*.css\n');
  await put('other/web/out/.posternignore', '*.map\n');
  await put('other/web/out/deep/.gitignore', 'd.txt\n');
  const cwd = join(folder, 'other');
  const { out, err } = await postern(['deploy', '--fields', 'site,leftOut'], { cwd });
  expect(out.split('\t')[0]).toBe(site);
  expect(JSON.parse(out.split('\t')[1] ?? '')).toContainEqual({
    rule: '.posternignore: *.map',
    count: 2,
    first: 'b.map',
  });
  expect(err).toContain('  .posternignore: *.map: 2 files and folders, such as b.map\n');
  const files = await postern(['sites', 'files', site, '--fields', 'path']);
  expect(files.out.trim().split('\n').toSorted()).toEqual(
    ['a.css', 'deep/d.txt', 'deep/keep.css', 'index.html'].toSorted(),
  );

  await put(
    'other/web/postern.site.json',
    JSON.stringify({ server: world.server.origin, site: 'another123' }),
  );
  expect(await postern(['deploy'], { cwd })).toMatchObject({ code: 2, out: '' });
  await put('other/postern.yaml', 'version: 1\nsite: { server: https://other.example.com }\n');
  expect(await postern(['deploy'], { cwd })).toMatchObject({ code: 2, out: '' });
  await put('other/postern.yaml', 'version: 1\nsite: { folder: web/dist }\n');
  expect(await postern(['deploy'], { cwd })).toMatchObject({ code: 2, out: '' });
});

test('deploy --watch publishes each change, and continues after a refusal', async () => {
  await put('watched/index.html', 'one');
  const enough = new AbortController();
  const changes = [
    async () => await put('watched/index.html', 'two'),
    async () => await put('watched/.env', 'A=1'),
    async () => await rm(join(folder, 'watched/.env')),
    async () => enough.abort(),
  ];
  let made = 0;
  const { out, err } = await postern(
    ['deploy', 'watched', '--watch', '--site-file', 'watched.json', '--fields', 'version'],
    {
      interrupt: enough.signal,
      said(text) {
        const waits = text.match(/^Waiting for changes\.$/gm)?.length ?? 0;
        for (; made < waits; made += 1) void changes[made]?.();
      },
    },
  );
  expect(out).toBe('1\n2\n3\n');
  expect(err).toContain('  .env: ');
});

/** Another way to the server, which asks for each request that sends contents what becomes of it. */
async function unsteady(fate: (request: number) => 'pass' | 'cut' | 'hold') {
  const { hostname, port, host } = new URL(world.server.origin);
  let contents = 0;
  const proxy = createServer((request, response) => {
    if (request.method === 'PUT') contents += 1;
    const what = request.method === 'PUT' ? fate(contents) : 'pass';
    if (what === 'cut') request.socket.destroy();
    if (what !== 'pass') return;
    const { method, url: path, headers } = request;
    const onward = forward({ hostname, port, method, path, headers: { ...headers, host } }, (answer) => {
      response.writeHead(answer.statusCode ?? 0, answer.headers);
      answer.pipe(response);
    });
    request.pipe(onward);
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  const address = proxy.address();
  if (address === null || typeof address === 'string') throw new Error('The proxy has no port.');
  return {
    origin: `http://127.0.0.1:${address.port}`,
    async close() {
      proxy.closeAllConnections();
      proxy.close();
      await once(proxy, 'close');
    },
  };
}
