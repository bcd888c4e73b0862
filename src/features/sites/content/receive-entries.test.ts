import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { deflateSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { tarGzOf, type TarPart } from '../../../../test/archives/tar.ts';
import { zipOf } from '../../../../test/archives/zip.ts';
import { systemRandom } from '../../../core/ids.ts';
import { fileBlobs } from '../../../platform/blobs/file-blobs.ts';
import { keyFormat } from '../../keys/key-value.ts';
import type { UploadLimits } from './upload-limits.ts';
import { keyScan, lookBudget } from './key-scan.ts';
import { receive } from './receive-entries.ts';
import { readTarGz } from './tar.ts';

const folder = mkdtempSync(join(tmpdir(), 'postern-receive-'));
const blobs = fileBlobs(folder);
const format = keyFormat('app');
beforeAll(() => blobs.prepare());
afterAll(() => rmSync(folder, { recursive: true }));

const limits: UploadLimits = {
  maxFiles: 10,
  maxFileBytes: 100_000,
  maxExtractedBytes: 300_000,
  allowedExtensions: ['html', 'css', 'txt', 'gz', 'bin'],
  forbiddenExtensions: [],
};

async function take(parts: readonly TarPart[], more: Partial<UploadLimits> = {}, budget = 100_000_000) {
  const keys: string[] = [];
  const source = readTarGz(Readable.from([tarGzOf(parts)]), 10_000_000);
  const received = await receive(
    source,
    { ...limits, ...more },
    { blobs, format, onKey: (value) => keys.push(value), budget: lookBudget(budget) },
  );
  return { ...received, keys };
}

const page: TarPart = { name: 'index.html', content: '<h1>Hello</h1>' };

test('a good upload comes out as paths and digests, in order, and its bytes can be read', async () => {
  const { files, problems } = await take([{ name: 'b.css', content: 'x' }, page, { name: 'a/', type: '5' }]);
  expect(problems).toEqual([]);
  expect([...files.keys()]).toEqual(['b.css', 'index.html']);
  const blob = files.get('index.html');
  expect(blob?.size).toBe(14);
  expect((await buffer(await blobs.read(blob?.digest ?? ''))).toString()).toBe('<h1>Hello</h1>');
  expect(await readdir(join(folder, 'incoming'))).toEqual([]);
});

describe('the one folder that was packed', () => {
  test('is taken off when the entry page is in it, and its names are judged again', async () => {
    const { files } = await take([
      { ...page, name: 'site/index.html' },
      { name: 'site/a/b.css', content: 'x' },
    ]);
    expect([...files.keys()]).toEqual(['a/b.css', 'index.html']);
    const { problems } = await take([
      { ...page, name: 'site/index.html' },
      { name: 'site/.postern/x.html', content: 'x' },
    ]);
    expect(problems).toMatchObject([{ path: '.postern/x.html', code: 'reserved_path' }]);
  });

  test('is taken off beside leftovers of macOS', async () => {
    const leftovers = ['._site', 'site/._index.html', '__MACOSX/site/._a', 'site/.DS_Store'];
    const { files, problems } = await take([
      ...leftovers.map((name) => ({ name, content: 'x' })),
      { ...page, name: 'site/index.html' },
    ]);
    expect([[...files.keys()], problems]).toEqual([['index.html'], []]);
  });

  test('stays where it is without an entry page, or beside others', async () => {
    expect([...(await take([{ name: 'site/a.html', content: 'x' }])).files.keys()]).toEqual(['site/a.html']);
    const two = await take([
      { ...page, name: 'site/index.html' },
      { name: 'b.css', content: 'x' },
    ]);
    expect([...two.files.keys()]).toEqual(['b.css', 'site/index.html']);
  });
});

test('one answer names every bad file, and what is good beside it is not kept back from the look', async () => {
  const { problems } = await take([
    page,
    { name: '../secret.html', content: 'x' },
    { name: 'link.html', type: '2', link: '/etc/passwd' },
    { ...page, content: 'y' },
    { name: 'run.exe', content: 'x' },
    { name: '.env', content: 'x' },
    { name: 'big.bin', content: Buffer.alloc(100_001, 1) },
    { name: 'hidden\u202egpj.html', content: 'x' },
  ]);
  expect(problems.map(({ path, code }) => [path, code])).toEqual([
    ['../secret.html', 'bad_path'],
    ['link.html', 'bad_entry'],
    ['index.html', 'name_collision'],
    ['run.exe', 'extension_not_allowed'],
    ['.env', 'private_file'],
    ['big.bin', 'file_too_large'],
    ['hidden\\u{202e}gpj.html', 'bad_path'],
  ]);
});

test.each<[string, TarPart]>([
  ['a file .', { name: '.', content: 'x' }],
  ['a file ./.', { name: './.', content: 'x' }],
  ['a file without a name', { name: '', content: 'x' }],
  ['a link .', { name: '.', type: '2', link: 'a' }],
  ['a link ./', { name: './', type: '2', link: 'a' }],
])('%s in a tar is refused, not dropped', async (_what, part) => {
  const { problems } = await take([page, part]);
  expect(problems).toMatchObject([{ code: 'bad_path' }]);
});

test.each(['.', './', './.'])('the folder %s of a tar is its root, and needs no name', async (name) => {
  const { problems, files } = await take([{ name, type: '5' }, page]);
  expect([problems, [...files.keys()]]).toEqual([[], ['index.html']]);
});

test('dots and spaces at the end of a name, which Windows strips, hide neither its extension nor a private file', async () => {
  const names = ['setup.exe', 'setup.exe.', 'a/setup.EXE. .', 'b.exe .', '.htpasswd.', '.git./config'];
  const parts = names.map((name) => ({ name, content: 'x' }));
  const { problems, files } = await take([page, ...parts, { name: 'c.exe./etc.', content: 'x' }], {
    allowedExtensions: [],
    forbiddenExtensions: ['exe'],
  });
  expect(problems.map(({ path, code }) => [path, code])).toEqual([
    ...names.slice(0, 4).map((name) => [name, 'extension_not_allowed']),
    ...names.slice(4).map((name) => [name, 'private_file']),
  ]);
  expect([...files.keys()]).toEqual(['c.exe./etc.', 'index.html']);
});

describe('UP-03 T40 limits are counted while the bytes come', () => {
  const many = (count: number, size: number) =>
    Array.from({ length: count }, (_, at) => ({ name: `f${at}.bin`, content: Buffer.alloc(size, at) }));

  test('of bytes, all files together', async () => {
    expect((await take(many(3, 100_000))).problems).toEqual([]);
    expect((await take(many(4, 100_000))).problems).toMatchObject([{ path: '', code: 'upload_too_large' }]);
  });

  test('of files and folders', async () => {
    expect((await take(many(10, 1))).problems).toEqual([]);
    const folders = Array.from({ length: 11 }, (_, at) => ({ name: `d${at}/` }));
    expect((await take(folders)).problems).toMatchObject([{ path: '', code: 'too_many_files' }]);
  });

  test('of problems that are told', async () => {
    const bad = Array.from({ length: 500 }, (_, at) => ({ name: `f${at}.exe`, content: 'x' }));
    const { problems } = await take(bad, { maxFiles: 1_000 });
    expect(problems).toHaveLength(101);
    expect(problems.at(-1)?.code).toBe('too_many_problems');
  });

  test('an upload without files is refused', async () => {
    expect((await take([{ name: 'a/' }])).problems).toMatchObject([{ code: 'empty' }]);
    expect((await take([])).problems).toMatchObject([{ code: 'empty' }]);
  });
});

test('what breaks off in the middle is refused, and nothing half is kept', async () => {
  const whole = tarGzOf([page, { name: 'b.bin', content: Buffer.alloc(90_000, 7) }]);
  const source = readTarGz(Readable.from([whole.subarray(0, whole.length - 40)]), 10_000_000);
  const { problems } = await receive(source, limits, {
    blobs,
    format,
    onKey: () => undefined,
    budget: lookBudget(1_000),
  });
  expect(problems.at(-1)?.code).toMatch(/bad_archive|bad_entry/);
  expect(await readdir(join(folder, 'incoming'))).toEqual([]);
});

describe('T37 our own keys in what is uploaded', () => {
  const value = format.generate('personal', systemRandom).value;
  const wrong = `${value.slice(0, -1)}${value.endsWith('A') ? 'B' : 'A'}`;
  /** A key in the form of `keys import`, without a checksum. */
  const older = `app_svc_${randomBytes(20).toString('hex')}`;
  const utf16be = Buffer.from(`key: ${value}`, 'utf16le').swap16();

  test.each<[string, string | Buffer]>([
    ['as it is', `<script>const key = "${value}";</script>`],
    ['with letters right behind it', `${value}xyz`],
    ['at the very end of a large file', `${'x'.repeat(80_000)} ${value}`],
    ['across the pieces it comes in', `${'x'.repeat(65_520)} ${value}`],
    ['as UTF-16, little end first', Buffer.from(`key: ${value}`, 'utf16le')],
    ['as UTF-16, big end first', utf16be],
    ['inside gzip', gzipSync(`key: ${value}`)],
    ['inside gzip, as UTF-16', gzipSync(utf16be)],
    ['inside the second part of gzip', Buffer.concat([gzipSync('first'), gzipSync(` ${value}`)])],
    ['a service key', format.generate('service', systemRandom).value],
    ['of the older form', `key: ${older}`],
    ['of the older form, with letters right behind it', `${older}xyz`],
    ['of the older form, as UTF-16', Buffer.from(`key: ${older}`, 'utf16le')],
    ['of the older form, inside gzip', gzipSync(`key: ${older}`)],
    ['of the older form, across the pieces it comes in', `${'x'.repeat(65_520)} ${older}`],
  ])('%s: the file is refused, the value is handed on and not repeated', async (_what, content) => {
    const { problems, keys, files } = await take([page, { name: 'app.txt', content }]);
    expect(problems).toEqual([
      { path: 'app.txt', code: 'credential_in_content', problem: expect.any(String) },
    ]);
    expect(new Set(keys).size).toBe(1);
    expect(files.has('app.txt')).toBe(false);
    expect(JSON.stringify(problems)).not.toContain(keys[0]?.slice(20));
  });

  test.each([
    ['with other bytes behind it', Buffer.concat([gzipSync(`key: ${value}`), Buffer.alloc(90_000, 7)])],
    ['that breaks off', gzipSync(`key: ${value} `.repeat(100)).subarray(0, -10)],
    ['that is none', Buffer.concat([Buffer.from([0x1f, 0x8b]), Buffer.alloc(500, 3)])],
  ])('gzip %s cannot be looked into and is refused', async (_what, content) => {
    const { problems } = await take([page, { name: 'data.gz', content }]);
    expect(problems).toMatchObject([{ path: 'data.gz', code: 'bad_entry' }]);
  });

  test.each([value, older])('in a name: refused, and the name is shown without it', async (key) => {
    const { problems, keys } = await take([page, { name: `${key}.html`, content: 'x' }]);
    expect(keys).toEqual([key]);
    expect(problems).toMatchObject([{ code: 'credential_in_content' }]);
    expect(JSON.stringify(problems)).not.toContain(key.slice(20));
  });

  test('what only looks like one passes: a wrong checksum, a placeholder, a mask', async () => {
    const text = `${wrong} app_pat_YOUR_KEY app_pat_•••• app_svc_${'X'.repeat(50)} app_svc_${'0'.repeat(39)}`;
    const { problems, keys } = await take([page, { name: 'docs.txt', content: text }]);
    expect([problems, keys]).toEqual([[], []]);
  });

  test.each([
    ['inside gzip', gzipSync(`key: ${value}`)],
    ['as UTF-16', Buffer.from(`key: ${value}`, 'utf16le')],
  ])('one %s is found also when its bytes come one by one', async (_what, content) => {
    const found: string[] = [];
    const scan = keyScan(format, (key) => void found.push(key), lookBudget(1_000));
    const bytes = Readable.from(Array.from(content, (byte) => Buffer.from([byte])));
    expect((await buffer(bytes.pipe(scan))).equals(content)).toBe(true);
    expect(new Set(found)).toEqual(new Set([value]));
  });

  test('gzip is looked into to its end, with bounded memory', async () => {
    const late = gzipSync(Buffer.concat([Buffer.alloc(80_000_000), Buffer.from(`key: ${value}`)]));
    const { problems, keys } = await take([page, { name: 'late.gz', content: late }]);
    expect(problems).toMatchObject([{ path: 'late.gz', code: 'credential_in_content' }]);
    expect(keys).toEqual([value]);
  });

  test('T51 gzip that unpacks to more than the scan reads, in one file or in many, is refused, and the rest is judged', async () => {
    const content = gzipSync(Buffer.alloc(600_000));
    const { problems, files } = await take(
      [{ name: 'a.gz', content }, { name: 'b.gz', content }, { name: 'c.gz', content }, page],
      {},
      1_000_000,
    );
    expect(problems).toMatchObject([
      { path: 'b.gz', code: 'bad_entry', problem: expect.stringContaining('1000000 bytes') },
      { path: 'c.gz', code: 'bad_entry' },
    ]);
    expect([...files.keys()]).toEqual(['a.gz', 'index.html']);
  });
});

test('a warning that quotes a line shows its control characters and half characters, and sends none', async () => {
  const content = '/a /b x\0\x1b]0;y\x07\n/c /d 1234567890123456789\u{1f600}';
  const { warnings } = await take([page, { name: '_redirects', content }]);
  const messages = warnings.map(({ message }) => message);
  expect(messages).toHaveLength(2);
  for (const message of messages) expect(message).toMatch(/^(?:(?!\p{Cc}|\p{Cs}).)+$/u);
});

test('rules are read where they apply, also in the only top folder of an archive, and from nowhere else', async () => {
  const wrong = (name: string) => ({ name, content: 'not a rule' });
  const notApplied = async (...parts: TarPart[]) => {
    const { problems, warnings } = await take(parts);
    expect(problems).toEqual([]);
    const named = warnings.filter(({ code }) => code === 'rule_not_applied');
    return named.map(({ message }) => message.split(' is not ')[0]);
  };
  expect(await notApplied(page, wrong('_redirects'), wrong('a/_headers'))).toEqual(['Line 1 of _redirects']);
  const packed = [{ ...page, name: 'site/index.html' }, wrong('site/_headers'), wrong('site/a/_redirects')];
  expect(await notApplied(...packed)).toEqual(['Line 1 of _headers']);
  expect(await notApplied(...packed, { ...page, name: 'other/x.html' })).toEqual([]);
  expect(
    await notApplied({ ...page, name: 'a/x.html' }, wrong('b/_redirects'), wrong('_redirects'), page),
  ).toEqual(['Line 1 of _redirects']);
});

test('a file that is refused before its end does not hold up the files behind it', async () => {
  const noise = Buffer.concat([Buffer.from([0x1f, 0x8b, 8, 0]), randomBytes(2_000_000)]);
  const wide = { maxFileBytes: 3_000_000, maxExtractedBytes: 3_000_000 };
  const { files, problems } = await take([{ name: 'broken.gz', content: noise }, page], wide);
  expect(problems).toMatchObject([{ path: 'broken.gz', code: 'bad_entry' }]);
  expect([...files.keys()]).toEqual(['index.html']);
});

describe('T37 twenty ways to write a key', () => {
  const { value } = format.generate('service', systemRandom);
  const wide = (text: string) => Buffer.from(text, 'utf16le');
  const zlib = deflateSync(`key: ${value}`);
  const middle = Math.floor(value.length / 2);
  const ways: readonly (readonly [what: string, isFound: boolean, content: string | Buffer])[] = [
    ['alone', true, value],
    ['behind a byte order mark', true, `\ufeff${value}`],
    ['with letters on both sides', true, `key_${value}abc`],
    ['in an address', true, `https://example.com/?token=${value}&x=1`],
    ['in JSON', true, JSON.stringify({ headers: { authorization: `Bearer ${value}` } })],
    [
      'in a comment of a picture',
      true,
      Buffer.concat([Buffer.from([0x89, 0x50, 0, 0xff]), Buffer.from(value)]),
    ],
    ['twice, one right behind the other', true, value + value],
    ['as UTF-16 with a byte order mark', true, wide(`\ufeff${value}`)],
    ['as UTF-16, the other way round, with its mark', true, wide(`\ufeff${value}`).swap16()],
    ['as UTF-16 at an odd place', true, Buffer.concat([Buffer.from('x'), wide(` ${value} `)])],
    [
      'as UTF-16 among text of one byte',
      true,
      Buffer.concat([Buffer.from('text '), wide(value), Buffer.from(' text')]),
    ],
    ['inside gzip that packs nothing', true, gzipSync(value, { level: 0 })],
    ['inside gzip behind much else', true, gzipSync('x'.repeat(500_000) + value)],
    ['inside gzip, as UTF-16', true, gzipSync(wide(value))],
    ['broken over two lines', false, `${value.slice(0, middle)}\n${value.slice(middle)}`],
    ['in Base64', false, Buffer.from(`key: ${value}`).toString('base64')],
    ['in hexadecimal', false, Buffer.from(value).toString('hex')],
    ['backwards', false, value.split('').reverse().join('')],
    [
      'as UTF-32',
      false,
      Buffer.from([...wide(value)].flatMap((byte, at) => (at % 2 === 0 ? [byte, 0, 0, 0] : []))),
    ],
    ['inside zlib', false, zlib],
    ['inside gzip inside gzip', false, gzipSync(gzipSync(value))],
    ['inside a ZIP', false, zipOf([{ name: 'a.txt', content: value.repeat(3) }])],
  ];

  test.each(ways)('%s: found is %s', async (_what, isFound, content) => {
    const { problems, keys } = await take([page, { name: 'app.txt', content }], { maxFileBytes: 1_000_000 });
    expect(problems.map(({ code }) => code)).toEqual(isFound ? ['credential_in_content'] : []);
    expect(new Set(keys)).toEqual(new Set(isFound ? [value] : []));
  });
});
