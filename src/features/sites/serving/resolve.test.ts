import fc from 'fast-check';
import { expect, test } from 'vitest';
import { nameEntry } from '../content/paths.ts';
import { filePathOf } from './paths.ts';
import { resolve, type Resolved, type ServedContent, type ServedFile } from './resolve.ts';
import { headersFile, parseRedirects, redirectsFile } from '../content/site-rules.ts';

const words = (text: string) => text.split(' ');

const fileOf = (path: string): ServedFile => ({ digest: path, size: 1, path, variants: [] });
const base = 'https://site.example';

const name = fc.constantFrom(
  ...words('a b docs A é e\u0301 100% %41 x?y x#y .hidden app.3f9c2a71.js ~ 日本語'),
  ...words('index.html 404.html a.html docs.html b.css _redirects _headers'),
  'a b',
);
const pageName = fc.constantFrom('index.html', '404.html', 'a.html', 'docs.html');
const path = fc
  .tuple(fc.array(name, { maxLength: 3 }), fc.oneof(name, pageName))
  .map(([folders, last]) => [...folders, last].join('/'));
const names = fc
  .uniqueArray(path, { maxLength: 12 })
  .map((paths) => paths.filter((one) => nameEntry(one).kind === 'file').map((one) => one.normalize('NFC')));

/** An invented address: paths of files in every spelling, and paths that lead out of folders. */
const oddPart = fc.constantFrom(
  ...words('/ // /./ /../ .. . ... \\ %2f %2F %5c %2e %2E%2e %00 %0a %252e %c0%ae %ff % %4 ; ;x=1 : @ ~'),
  ...words('\u2028 %e2%80%a8 * .html index.html 404.html /etc/passwd .postern/ .git/config'),
  ...words('file:///etc/passwd C:'),
);
const encodings: readonly ((text: string) => string)[] = [
  (text) => text,
  encodeURIComponent,
  encodeURI,
  (text) => [...Buffer.from(text)].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join(''),
];
const encodedName = fc.tuple(name, fc.constantFrom(...encodings)).map(([one, encode]) => encode(one));
const madeUp = fc.oneof(
  fc
    .array(fc.oneof({ weight: 3, arbitrary: encodedName }, oddPart), { maxLength: 6 })
    .map((parts) => `/${parts.join('/')}`),
  fc
    .array(fc.oneof(encodedName, oddPart, fc.string({ unit: 'binary', maxLength: 3 })), { maxLength: 8 })
    .map((parts) => parts.join('')),
);

/** The address of a file of the site, or of a neighbour. */
const nearFile = fc.record({
  at: fc.nat(),
  without: fc.constantFrom(/$/, /\.html$/, /index\.html$/, /\/(?:index|404)\.html$/),
  encode: fc.constantFrom(...encodings),
  behind: fc.oneof(
    { weight: 3, arbitrary: fc.constant('') },
    fc.constantFrom('/', 'x', '/x', '.html', '%2f'),
  ),
});
const site = fc.tuple(names, fc.oneof(madeUp, nearFile)).map(([paths, drawn]) => {
  if (typeof drawn === 'string') return { paths, raw: drawn };
  const file = paths[drawn.at % paths.length] ?? '';
  const said = file.replace(drawn.without, '');
  return { paths, raw: `/${said.split('/').map(drawn.encode).join('/')}${drawn.behind}` };
});

const contentOf = (paths: readonly string[], more: Partial<ServedContent> = {}): ServedContent => ({
  spa: false,
  files: new Map(paths.map((one) => [one, fileOf(one)])),
  skew: new Map(),
  redirects: [],
  headers: [],
  ...more,
});

test('T23 GW-02 an address is a file of the site, its folder’s page, a way on the site, or nothing', () => {
  const seen = new Map<string, number>();
  fc.assert(
    fc.property(site, fc.boolean(), fc.boolean(), ({ paths, raw }, spa, isDocument) => {
      const content = contentOf(paths, { spa });
      const found = resolve(content, raw, { isDocument, now: 0 });
      seen.set(kindOf(found), 1 + (seen.get(kindOf(found)) ?? 0));
      expect(meanings(content, raw, { isDocument })).toContainEqual(found);
    }),
    { numRuns: 10_000 },
  );
  // Each kind of outcome occurred often enough.
  for (const kind of ['file 200', 'file 404', 'redirect', 'missing'])
    expect([kind, (seen.get(kind) ?? 0) > 50]).toEqual([kind, true]);
});

/** All allowed outcomes for this address, computed without the code under test. */
function meanings(
  { files, spa }: ServedContent,
  raw: string,
  { isDocument }: { isDocument: boolean },
): Resolved[] {
  const path = filePathOf(raw);
  const shown = (one: string, status: 200 | 404): Resolved[] => {
    const file = one === redirectsFile || one === headersFile ? undefined : files.get(one);
    return file === undefined ? [] : [{ kind: 'file', file, status }];
  };
  const way = (to: string): Resolved[] => [
    { kind: 'redirect', to: to.split('/').map(encodeURIComponent).join('/'), status: 301 },
  ];
  const folders = (path ?? '').split('/').slice(0, -1);
  const above = [...folders.keys()].map((depth) => `${folders.slice(0, depth + 1).join('/')}/404.html`);
  const nothing: Resolved[] = [
    ...['404.html', ...above].flatMap((one) => shown(one, 404)),
    { kind: 'missing' },
  ];
  if (path === undefined) return nothing;
  return [
    ...nothing,
    ...shown(path, 200),
    ...shown(`${path}.html`, 200),
    ...(path === '' || path.endsWith('/') ? shown(`${path}index.html`, 200) : []),
    ...(spa && isDocument ? shown('index.html', 200) : []),
    ...(files.has(`${path}/index.html`) ? way(`/${path}/`) : []),
    ...(path.endsWith('/') && files.has(`${path.slice(0, -1)}.html`) ? way(`/${path.slice(0, -1)}`) : []),
  ];
}

function kindOf(found: Resolved): string {
  return found.kind === 'file' ? `file ${found.status}` : found.kind;
}

test('T23 GW-02 a file is shown only for an address that says its name', () => {
  fc.assert(
    fc.property(site, ({ paths, raw }) => {
      const found = resolve(contentOf(paths), raw, { isDocument: true, now: 0 });
      if (found.kind !== 'file' || found.status !== 200) return;
      // Reads the address like a browser, and like another server.
      const read = decodeURIComponent(
        new URL(base + raw.replaceAll('?', '%3F').replaceAll('#', '%23')).pathname,
      );
      const asked = read.slice(1).normalize('NFC');
      expect([asked, `${asked}.html`, `${asked}index.html`]).toContain(found.file.path);
    }),
    { numRuns: 5_000 },
  );
});

test('T23 GW-02 a way on the site that is not the author’s leads to a file at once', () => {
  fc.assert(
    fc.property(site, ({ paths, raw }) => {
      const content = contentOf(paths);
      const found = resolve(content, raw, { isDocument: true, now: 0 });
      if (found.kind !== 'redirect') return;
      expect(new URL(found.to, `${base}/somewhere`).origin).toBe(base);
      expect(resolve(content, found.to, { isDocument: true, now: 0 })).toMatchObject({
        kind: 'file',
        status: 200,
      });
    }),
    { numRuns: 5_000 },
  );
});

test('T38 a path never leads out of its folder, and its own spelling is the same path', () => {
  fc.assert(
    fc.property(site, ({ raw }) => {
      const path = filePathOf(raw);
      if (path === undefined) return;
      expect(path).not.toMatch(/^\/|\/\/|\\|(?:^|\/)\.+(?:\/|$)|\p{Cc}/u);
      // A slash that is encoded is read by some as a slash and by others as a letter.
      expect(raw).not.toMatch(/%(?:2f|5c|00)/i);
      expect(path).toBe(path.normalize('NFC'));
      expect(filePathOf(`/${path.split('/').map(encodeURIComponent).join('/')}`)).toBe(path);
    }),
    { numRuns: 5_000 },
  );
});

test('a file of an earlier version is shown by its own name, until its time, and no other file is', () => {
  const earlier = ['app.3f9c2a71.js', 'docs/app.3f9c2a71.js', 'a.html', '404.html', 'index.html'];
  const skew = new Map(earlier.map((one) => [one, { file: fileOf(one), until: 1_000 }]));
  fc.assert(
    fc.property(site, fc.constantFrom(999, 1_000), ({ paths, raw }, now) => {
      const content = contentOf(paths, { skew });
      const found = resolve(content, raw, { isDocument: false, now });
      if (found.kind !== 'file' || content.files.get(found.file.path) === found.file) return;
      expect([found.file.path.endsWith('app.3f9c2a71.js'), found.status, now]).toEqual([true, 200, 999]);
      expect(filePathOf(raw)).toBe(found.file.path);
    }),
    { numRuns: 5_000 },
  );
});

test('the start page of an app is 200.html where the site has one', () => {
  const at = (...paths: string[]) => {
    const found = resolve(contentOf(paths, { spa: true }), '/deep', { isDocument: true, now: 0 });
    return found.kind === 'file' ? [found.file.path, found.status] : found.kind;
  };
  expect(at('index.html', '200.html')).toEqual(['200.html', 200]);
  expect(at('index.html')).toEqual(['index.html', 200]);
  expect(at('200.html')).toEqual(['200.html', 200]);
});

test('T46 an author’s rule never takes the place of a file', () => {
  const { rules } = parseRedirects('/* /elsewhere 302');
  fc.assert(
    fc.property(site, ({ paths, raw }) => {
      const plain = resolve(contentOf(paths), raw, { isDocument: false, now: 0 });
      const ruled = resolve(contentOf(paths, { redirects: rules }), raw, { isDocument: false, now: 0 });
      const isThere = (plain.kind === 'file' && plain.status === 200) || plain.kind === 'redirect';
      const isRuled = !isThere && filePathOf(raw) !== undefined && filePathOf(raw) !== 'elsewhere';
      expect(ruled).toEqual(isRuled ? { kind: 'redirect', to: '/elsewhere', status: 302 } : plain);
    }),
    { numRuns: 5_000 },
  );
});
