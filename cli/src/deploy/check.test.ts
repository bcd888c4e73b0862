import { expect, test } from 'vitest';
import { problemsOf } from './check.ts';

const limits = { maxFileBytes: 10, maxExtractedBytes: 15, maxFiles: 3, allowedExtensions: ['txt'] };
const file = (path: string, size = 1) => ({ path, file: path, size, sha256: path, mayHaveKey: false });

test('count, sizes and extensions are checked by the limits of the server, all at once', () => {
  const files = [file('a.txt', 11), file('deep/b.exe', 8), file('LICENSE')];
  expect(problemsOf(files, limits, 'app')).toEqual([
    { path: '', code: 'too_many_files', problem: 'has 4 files and folders; 3 are allowed' },
    { path: '', code: 'upload_too_large', problem: 'has 20 bytes; 15 are allowed' },
    { path: 'a.txt', code: 'file_too_large', problem: 'has 11 bytes; 10 are allowed' },
    { path: 'deep/b.exe', code: 'extension_not_allowed', problem: 'ends in .exe, which is not allowed here' },
  ]);
});

test('an empty list of extensions allows any but the forbidden ones', () => {
  const any = { ...limits, allowedExtensions: [], forbiddenExtensions: ['exe'] };
  const codes = problemsOf([file('a.wasm'), file('b.EXE')], any, 'app').map(({ path }) => path);
  expect(codes).toEqual(['b.EXE']);
  const ends = [file('setup.exe.'), file('a/setup.exe. .'), file('b.exe./c.txt')];
  expect(problemsOf(ends, { ...any, maxFiles: 10 }, 'app').map(({ path }) => path)).toEqual([
    'setup.exe.',
    'a/setup.exe. .',
  ]);
});

test('files with secrets are refused, examples of them are not', () => {
  const files = [file('.env'), file('.env.example'), file('.env.local'), file('x/.npmrc')];
  const all = { ...limits, maxFiles: 10, allowedExtensions: [] };
  expect(problemsOf(files, all, 'app').map(({ path }) => path)).toEqual(['.env', '.env.local', 'x/.npmrc']);
  const hidden = ['.htpasswd.', '.git./config', 'id_rsa. .', '.env.sample/secret'];
  const found = problemsOf(
    [...hidden, 'x/.env.sample.'].map((path) => file(path)),
    all,
    'app',
  );
  expect(found.filter(({ code }) => code === 'private_file').map(({ path }) => path)).toEqual(hidden);
});
