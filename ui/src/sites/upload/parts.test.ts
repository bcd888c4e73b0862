import { createHash, randomBytes } from 'node:crypto';
import { gunzipSync } from 'node:zlib';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { expect, test, vi } from 'vitest';
import { foldedName as foldedOnServer, nameEntry } from '../../../../src/features/sites/content/paths.ts';
import { readTar } from '../../../../src/features/sites/content/tar.ts';
import { extensionProblem } from '../../../../src/features/sites/content/upload-limits.ts';
import { extensionOf, foldedName, nameFile } from './names.ts';
import { sha256Of } from './sha256.ts';
import { tarGzOf, tarOf } from './tar.ts';

// Before an upload, the web app computes the same results as the server.
const names = [
  [
    'index.html',
    'a/b/c.js',
    'LICENSE',
    '.nojekyll',
    'ünï/cödé.html',
    'u\u0308.html',
    'x'.repeat(255),
    '404.html',
  ],
  [
    '.DS_Store',
    'a/Thumbs.db',
    '__MACOSX/x',
    'a/._x.html',
    '._x/y',
    'desktop.ini',
    '.git/HEAD',
    'a/.ENV',
    '.env.local',
    'id_rsa',
    '.npmrc',
  ],
  [
    '.postern/x',
    '.POSTERN/x',
    '.well-known/security.txt',
    '.well-known/acme',
    '.well-known/a/b',
    '.well-known',
  ],
  [
    '',
    '/a',
    'a//b',
    '../a',
    'a/./b',
    'a/…/b',
    '․․/a',
    'C:/a',
    'c:a',
    'a\\b',
    'a\u2215b',
    'a\u202eb',
    'a\u0000b',
  ],
  [
    ' a',
    'a ',
    'a.',
    'a/b./c',
    '. ./x',
    '.htpasswd.',
    '.git./config',
    'a/id_rsa. .',
    '.postern./x',
    'thumbs.db. .',
    '.env.sample',
    '.env.sample.',
    '.env.sample/secret',
    'a%2fb',
    'a%2Eb',
    'a%zz',
    'x'.repeat(256),
    `${'d/'.repeat(31)}f`,
    `${'d/'.repeat(32)}f`,
  ],
  [`${'é'.repeat(100)}/`.repeat(6), 'a\ud800b', 'a\ufffdb', 'é'.repeat(128), 'emoji 🌍.html', 'a\u00a0'],
].flat();

const pathOf = (named: { kind: string; path?: string }) => (named.kind === 'file' ? named.path : undefined);

test.each(names)('%j gets the same verdict as on the server', (name) => {
  const server = nameEntry(name.endsWith('/') ? `${name}f` : name);
  const own = nameFile(name.endsWith('/') ? `${name}f` : name);
  const expected =
    server.kind === 'refused' ? (server.code === 'private_file' ? 'private' : 'refused') : server.kind;
  expect(own.kind).toBe(expected);
  expect(pathOf(own)).toBe(pathOf(server));
});

test('a name has the same extension as on the server', () => {
  const lists = { allowedExtensions: [], forbiddenExtensions: ['exe'] };
  for (const name of [
    'a.exe',
    'a.EXE.',
    'a/b.exe. .',
    'b.exe .',
    '.exe',
    '.exe.',
    'a.exe./b',
    'a.b.exe',
    'exe.',
  ])
    expect([name, extensionOf(name) === 'exe']).toEqual([name, extensionProblem(name, lists) !== undefined]);
});

test('two names are similar here when they are on the server', () => {
  const all = [
    'a.html',
    'A.html',
    'é.html',
    'É.html',
    'straße',
    'STRASSE',
    'ſ',
    's',
    'K',
    '\u212a',
    'ab',
    'a b',
    'ﬁ',
    'fi',
    'f\u200ci',
  ];
  for (const one of all) {
    for (const other of all) {
      const isSimilar = foldedOnServer(one) === foldedOnServer(other);
      expect([one, other, foldedName(one) === foldedName(other)]).toEqual([one, other, isSimilar]);
    }
  }
});

test('a file has the same digest with the browser’s SHA-256 and without it, also in several pieces', async () => {
  const { signal } = new AbortController();
  for (const length of [0, 1, 55, 56, 64, 100_003, 4 * 1024 * 1024, 9 * 1024 * 1024 + 1]) {
    const bytes = randomBytes(length);
    const expected = createHash('sha256').update(bytes).digest('hex');
    expect([length, await sha256Of(new Blob([bytes]), signal)]).toEqual([length, expected]);
    vi.stubGlobal('crypto', {});
    expect([length, await sha256Of(new Blob([bytes]), signal)]).toEqual([length, expected]);
    vi.unstubAllGlobals();
  }
});

test('the server reads every file of the tar that the web app writes, also those with long and foreign names', async () => {
  const files = [
    'index.html',
    `${'deep/'.repeat(30)}page.html`,
    'ünï/مرحبا.html',
    'b'.repeat(99),
    'c'.repeat(101),
  ].map((name) => ({ name, content: randomBytes(name.length * 13) }));
  const tar = files.map(({ name, content }) => ({ name, content: new Blob([content]) }));
  const packed = gunzipSync(Buffer.from(await (await tarGzOf(tar)).arrayBuffer()));
  expect(packed).toEqual(Buffer.from(await tarOf(tar).arrayBuffer()));
  const read: { name: string; content: Buffer }[] = [];
  for await (const entry of readTar(Readable.from([packed]), 1e9)) {
    expect(entry.problem).toBeUndefined();
    read.push({ name: entry.name, content: await buffer(await entry.open()) });
  }
  expect(read).toEqual(files);
});
