import { describe, expect, test } from 'vitest';
import { nameEntry } from './paths.ts';

/** Names that some reader takes for something else, each kind written by hand. */
const byHand: Readonly<Record<string, readonly string[]>> = {
  bad_path: [
    ['', '/', '//', '.', '..', './', '../', './x', '../x', 'a/.', 'a/..', 'a/./x', 'a/../x', 'a//x'],
    ['/x', '//host/x', '\\x', '\\\\host\\x', 'a\\x', '..\\x', 'C:', 'c:x', 'C:/x', 'C:\\x', 'z:/../x'],
    ['...', '..../x', 'a/.../x', 'x ', ' x', 'a /', 'a / x', '  '],
    [
      '%2e%2e/x',
      '%2E%2E/x',
      '..%2fx',
      '..%5cx',
      '%2fx',
      '%5cx',
      'x%00',
      'x%00.html',
      '%252e%252e/x',
      '%2500',
    ],
    ['\uff0e\uff0e/x', '\u2024\u2024/x', '\u2025/x', '\u2026/x', '\ufe52\ufe52/x', '.\uff0e/x'],
    [
      'a\u2215x',
      'a\u2044x',
      'a\uff0fx',
      'a\uff3cx',
      'a\u29f8x',
      'a\u29f5x',
      'a\u29f9x',
      'a\u2216x',
      'a\ufe68x',
    ],
    ['x\ud800', '\udc00x', 'a\ufffdx', '\ufeffx', 'x\u202egpj.exe', 'x\u2066y\u2069', '\u061cx', 'a\u00adb'],
    ['x\r\nSet-Cookie: a', 'x\ty', 'x\0', '\u001b[31mx', 'x\u007f', 'x\u0085', 'x\u2028y', 'x\u2029y'],
    [
      '\u3000x',
      'x\u00a0',
      'x\u2003',
      'a/x\u202f',
      '\u200bx',
      'x\u200d',
      'x\u2060',
      'a\u180eb',
      'a\u{e0041}b',
    ],
    [
      'n'.repeat(256),
      'é'.repeat(128),
      'd/'.repeat(32) + 'x',
      'd/'.repeat(300) + 'x',
      `${'n'.repeat(200)}/`.repeat(6),
    ],
  ].flat(),
  reserved_path: [
    ['.postern', '.postern/', '.postern/grant', '.postern/redeem', '.POSTERN/x', '.Postern/a/b/c'],
  ].flat(),
  private_file: [
    [
      '.git',
      '.git/config',
      'a/.git/HEAD',
      '.GIT/config',
      '.svn/entries',
      '.hg/store',
      '.env',
      'a/.env',
      '.ENV',
    ],
    [
      '.env.local',
      '.env.production/x',
      '.ssh/id_rsa',
      'id_rsa',
      'a/ID_RSA',
      'id_ed25519',
      '.aws/credentials',
    ],
    ['.gnupg/x', '.npmrc', '.netrc', '.pgpass', 'a/b/.htpasswd'],
  ].flat(),
};

/** Controls, marks of direction and joiners, separators, what stands for broken bytes: all of Unicode. */
const joiners = ['\u200c', '\u200d'];
const unseen = everyCharacter(/[\p{Cc}\p{Cf}\u2028\u2029\ufffd]/u);
/** What a file system or a person does not see at the end of a name. */
const blanks = everyCharacter(/\s/u).filter((one) => !unseen.includes(one));
const slashes = '\\\u2044\u2215\u2216\u29f5\u29f8\u29f9\ufe68\uff0f\uff3c'.split('');
const dots = ['.', '\u2024', '\ufe52', '\uff0e'];

const generated: Readonly<Record<string, readonly string[]>> = {
  bad_path: [
    ...unseen.flatMap((one) => [`${one}x.html`, `a/x.html${one}`]),
    ...unseen.filter((one) => !joiners.includes(one)).map((one) => `a${one}b.html`),
    ...blanks.flatMap((one) => [`${one}x.html`, `x.html${one}`, `a${one}/x.html`, `a/${one}/x.html`]),
    ...slashes.flatMap((one) => [`a${one}b.html`, `..${one}x.html`, `${one}x.html`]),
    ...dots.flatMap((one) =>
      dots.flatMap((other) => [`${one}${other}/x.html`, `a/${one}${other}`, `a/${one}/x`]),
    ),
    ...'abcdefghijklmnopqrstuvwxyz'.split('').flatMap((one) => [`${one}:x`, `${one.toUpperCase()}:/x`]),
    ...['2e', '2E', '2f', '2F', '5c', '5C', '00', '25'].flatMap((one) => [
      `a%${one}b`,
      `%${one}`,
      `a/b%${one}`,
    ]),
  ],
  reserved_path: casesOf('.postern').flatMap((one) => [one, `${one}/x.html`]),
  private_file: ['.git', '.env', '.svn', '.hg', '.ssh', '.aws']
    .flatMap(casesOf)
    .flatMap((one) => [`${one}/x`, `a/${one}`]),
};

function everyCharacter(shape: RegExp): string[] {
  const all = Array.from({ length: 0x11_00_00 }, (_, code) => code).filter(
    (code) => code < 0xd800 || code > 0xdfff,
  );
  return all.map((code) => String.fromCodePoint(code)).filter((one) => shape.test(one));
}

/** In every mix of capitals and small letters. */
function casesOf(name: string): string[] {
  return name
    .split('')
    .reduce<string[]>(
      (begun, letter) => begun.flatMap((one) => [...new Set([one + letter, one + letter.toUpperCase()])]),
      [''],
    );
}

describe('T43 names that are refused', () => {
  test('sixty kinds by hand and five hundred names, all different', () => {
    expect(new Set(Object.values(byHand).flat()).size).toBeGreaterThanOrEqual(60);
    expect(new Set([byHand, generated].flatMap((one) => Object.values(one)).flat()).size).toBeGreaterThan(
      500,
    );
  });

  test.each(Object.entries(byHand).flatMap(([code, names]) => names.map((name) => [name, code] as const)))(
    '%j is refused as %s',
    (name, code) => {
      expect(nameEntry(name)).toMatchObject({ kind: 'refused', code });
    },
  );

  test.each(Object.entries(generated))('so is each that is made by rule and refused as %s', (code, names) => {
    const found = names.map((name) => [name, nameEntry(name)] as const);
    const others = found.filter(([, entry]) => entry.kind !== 'refused' || entry.code !== code);
    expect(others).toEqual([]);
  });

  test('what only resembles them is published', () => {
    const fine = [
      'postern/x',
      '.posterns/x',
      'a/.postern/x',
      'git/config',
      '.gitignore',
      '.github/x',
      'env',
      'x.env',
    ];
    const more = [
      'a.b.c',
      '..a',
      'a..b',
      '100%',
      'a b/c d',
      '日本語/é.html',
      '👍.html',
      'ab:c',
      '%41',
      '.well-known',
    ];
    for (const name of [...fine, ...more]) expect([name, nameEntry(name).kind]).toEqual([name, 'file']);
  });
});
