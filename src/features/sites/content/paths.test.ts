import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createNameRegister } from './name-register.ts';
import { nameEntry } from './paths.ts';

describe('UP-01 T38 names that lead elsewhere', () => {
  test.each([
    '',
    '/',
    '../secret.html',
    'a/../../secret.html',
    'a/..',
    './index.html',
    'a/./b.html',
    'a//b.html',
    '/etc/passwd',
    '//host/share.html',
    'C:/windows.html',
    'c:index.html',
    'a\\b.html',
    '..\\index.html',
    'index.html\0.png',
    'a/%2e%2e/b.html',
    'a%2fb.html',
    'a%5Cb.html',
    'a%00b.html',
    'a%252fb.html',
    '\uff0e\uff0e/b.html',
    '\u2024\u2024/b.html',
    'a\u2215b.html',
    'a\uff0fb.html',
    'a\uff3cb.html',
    'a\ufffdb.html',
    'a\ud800.html',
  ])('%j is refused', (name) => {
    expect(nameEntry(name)).toMatchObject({ kind: 'refused', code: 'bad_path' });
  });

  test('depth, segments and whole paths are bounded, in bytes', () => {
    const deep = (levels: number) => `${'d/'.repeat(levels - 1)}index.html`;
    expect(nameEntry(deep(32)).kind).toBe('file');
    expect(nameEntry(deep(33)).kind).toBe('refused');
    expect(nameEntry(`${'d/'.repeat(300)}x`).kind).toBe('refused');
    expect(nameEntry('é'.repeat(127)).kind).toBe('file');
    expect(nameEntry('é'.repeat(128)).kind).toBe('refused');
    expect(nameEntry(`${`${'x'.repeat(200)}/`.repeat(5)}y`).kind).toBe('file');
    expect(nameEntry(`${`${'x'.repeat(200)}/`.repeat(5)}${'y'.repeat(30)}`).kind).toBe('refused');
  });
});

describe('T43 special names', () => {
  test.each([
    'a\u202egpj.html',
    'a\u200b.html',
    'a\u034f.html',
    'a\u3164.html',
    'a\u2800.html',
    'a\u180b.html',
    'a\u{e0100}.html',
    'a\ufeff.html',
    'a\u2028.html',
    'a\r\nb.html',
    'a\u001b.html',
  ])('%j hides something and is refused', (name) => {
    expect(nameEntry(name).kind).toBe('refused');
  });

  test('what makes a sign an emoji hides nothing', () => {
    expect(nameEntry('\u2764\ufe0f.html').kind).toBe('file');
  });

  test.each([
    'می\u200cخواهم.html',
    'क्\u200dष.html',
    'a\u200cb.html',
    '👩🏽\u200d💻.html',
    '🏳\ufe0f\u200d🌈/👨\u200d👩\u200d👧.html',
  ])('the joiners of %j are spelling', (name) => {
    expect(nameEntry(name)).toEqual({ kind: 'file', path: name });
  });

  test.each([
    'a\u200c.html',
    '\u200da.html',
    'a\u200d\u200cb.html',
    '👩\u200da.html',
    '1\u200c2.html',
    'a\u200b\u200cb.html',
  ])('the joiner of %j joins nothing, so the name is refused', (name) => {
    expect(nameEntry(name).kind).toBe('refused');
  });

  test.each(['a .html/x', ' a.html', 'a.html '])('%j loses its end somewhere', (name) => {
    expect(nameEntry(name).kind).toBe(name === 'a .html/x' ? 'file' : 'refused');
  });

  test.each(['a.', 'tags/etc./index.html', 'Wait…', 'x..'])('%j ends with a dot and is published', (name) => {
    expect(nameEntry(name)).toEqual({ kind: 'file', path: name });
  });

  test('a name that is not UTF-8 is refused for that', () => {
    expect(nameEntry('\ufffdber\u009a uns.html')).toMatchObject({
      problem: expect.stringContaining('not UTF-8; rename'),
    });
  });

  test.each([
    ['.postern/grant', 'reserved_path'],
    ['.Postern/x.html', 'reserved_path'],
    ['.git/config', 'private_file'],
    ['sub/.env', 'private_file'],
    ['.env.production', 'private_file'],
    ['.env.example.local', 'private_file'],
    ['.ssh/id_rsa', 'private_file'],
    ['.htpasswd.', 'private_file'],
    ['.git./config', 'private_file'],
    ['a/id_rsa. .', 'private_file'],
    ['.env.. .', 'private_file'],
    ['.postern./x', 'reserved_path'],
    ['. ./x', 'bad_path'],
    ['.env.sample/', 'private_file'],
    ['.env.sample/secret', 'private_file'],
    ['.ENV.example./.env.example', 'private_file'],
  ])('%s is refused as %s', (name, code) => {
    expect(nameEntry(name)).toMatchObject({ kind: 'refused', code });
  });

  test.each([
    '.well-known/security.txt',
    '.well-known/matrix/server',
    '.well-known/nostr.json',
    '.env.example',
    'a/.env.sample',
    'a/.env.sample.',
    '.ENV.template',
    '.nojekyll',
    'über/naïve 日本語.html',
    'a(1) [b].html',
    'x/.postern/y',
  ])('%s is published', (name) => {
    expect(nameEntry(name)).toEqual({ kind: 'file', path: name });
  });

  test.each([
    ['__MACOSX/index.html', '__MACOSX'],
    ['.DS_Store', '.DS_Store'],
    ['a/thumbs.DB', 'Thumbs.db'],
    ['a/thumbs.db. .', 'Thumbs.db'],
    ['a/._index.html', '._*'],
    ['._a/b.html', '._*'],
  ])('%s is left out by the rule %s', (name, rule) => {
    expect(nameEntry(name)).toEqual({ kind: 'ignored', rule });
  });
});

describe('T42 names that collide', () => {
  const refusedOf = (...entries: string[]) => {
    const register = createNameRegister();
    return entries.map((name) => {
      const entry = nameEntry(name);
      if (entry.kind !== 'file' && entry.kind !== 'directory')
        throw new Error(`${name} is refused by itself.`);
      return register.add(entry.kind, entry.path) !== undefined;
    });
  };

  test.each([
    [
      ['a.html', 'a.html'],
      [false, true],
    ],
    [
      ['a.html', 'A.html'],
      [false, false],
    ],
    [
      ['caf\u00e9.html', 'cafe\u0301.html'],
      [false, true],
    ],
    [
      ['stra\u00dfe.html', 'STRASSE.html'],
      [false, false],
    ],
    [
      ['a', 'a/'],
      [false, true],
    ],
    [
      ['a', 'a/b.html'],
      [false, true],
    ],
    [
      ['a/b.html', 'a'],
      [false, true],
    ],
    [
      ['a/b.html', 'A/c.html'],
      [false, false],
    ],
    [
      ['a/b.html', 'a/c.html', 'a/', 'b/b.html'],
      [false, false, false, false],
    ],
    [
      ['\ufb01le.html', 'file.html'],
      [false, false],
    ],
  ])('%j: %j', (names, refused) => {
    expect(refusedOf(...names)).toEqual(refused);
  });
});

type Kind = 'file' | 'directory';

/** The same by comparing every folder of every name with all there were. */
function plainRegister() {
  const taken = new Map<string, { kind: Kind; path: string }>();
  return {
    add(kind: Kind, path: string): string | undefined {
      const segments = path.split('/');
      const steps = segments.map((_, at) => ({
        kind: at < segments.length - 1 ? ('directory' as const) : kind,
        path: segments.slice(0, at + 1).join('/'),
      }));
      for (const step of steps) {
        const there = taken.get(step.path);
        const subject = step.path === path ? '' : `its folder ${step.path} `;
        if (there === undefined) continue;
        if (there.kind !== step.kind) return `${subject}is both a file and a folder; rename one of them`;
        if (step.kind === 'file') return 'appears twice in the upload';
      }
      for (const step of steps) taken.set(step.path, step);
      return undefined;
    },
  };
}

test('T42 whatever the order, each name is compared with every folder and file before it', () => {
  const segment = fc.constantFrom('a', 'A', 'b', 'aa', 'é', 'e\u0301', 'ß', 'ss');
  const name = fc.array(segment, { minLength: 1, maxLength: 5 }).map((segments) => segments.join('/'));
  const kind = fc.constantFrom<Kind>('file', 'directory');
  fc.assert(
    fc.property(fc.array(fc.tuple(kind, name), { maxLength: 40 }), (entries) => {
      const [register, plain] = [createNameRegister(), plainRegister()];
      for (const [of, path] of entries) expect(register.add(of, path)).toBe(plain.add(of, path));
    }),
    { numRuns: 1_000 },
  );
});

test('T51 ten thousand names of a thousand bytes hold little more than themselves, however deep they are', {
  tags: 'flood',
}, () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const tail = Array.from({ length: 28 }, () => 'a').join('/');
  const nameOf = (one: number) =>
    [String(one >> 1).padStart(6, '0') + 'x'.repeat(249), 'y'.repeat(255), 'z'.repeat(190), tail, one].join(
      '/',
    );
  collect();
  const before = process.memoryUsage().heapUsed;
  const register = createNameRegister();
  for (let one = 0; one < 10_000; one += 1) expect(register.add('directory', nameOf(one))).toBeUndefined();
  collect();
  expect((process.memoryUsage().heapUsed - before) / 1e6).toBeLessThan(20);
  expect(register.add('file', nameOf(0))).toBe('is both a file and a folder; rename one of them');
});

test('a name that is taken stays inside its site, whatever reads it as a URL or a path', () => {
  const piece = fc.oneof(
    fc.constantFrom(
      '..',
      '.',
      '%2e',
      '%2f',
      '\\',
      '/',
      '//',
      'a',
      'A',
      '\0',
      ':',
      ' ',
      '\u202e',
      '\uff0e',
      'é',
    ),
    fc.string({ unit: 'binary', maxLength: 4 }),
  );
  fc.assert(
    fc.property(fc.array(piece, { minLength: 1, maxLength: 8 }), (pieces) => {
      const entry = nameEntry(pieces.join(''));
      if (entry.kind !== 'file') return;
      const base = new URL('https://site.example/');
      const url = new URL(entry.path.split('/').map(encodeURIComponent).join('/'), base);
      expect(url.host).toBe(base.host);
      expect(decodeURIComponent(url.pathname)).toBe(`/${entry.path}`);
      expect(nameEntry(entry.path)).toEqual(entry);
    }),
    { numRuns: 2_000 },
  );
});
