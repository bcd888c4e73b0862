import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { branchNamePattern, remoteAddress } from './remote.ts';

test.each([
  ['https://git.example.com/acme/website.git', 'https://git.example.com'],
  ['https://GIT.example.com:8443/x', 'https://git.example.com:8443'],
  ['https://192.0.2.1/x', 'https://192.0.2.1'],
  ['git@git.example.com:acme/website.git', 'ssh://git.example.com:22'],
  ['ssh://git@git.example.com:2222/acme', 'ssh://git.example.com:2222'],
])('%s leads to %s', (cloneUrl, origin) => expect(remoteAddress(cloneUrl)?.origin).toBe(origin));

// Forms in which the checked host and the one that curl or ssh would use differ.
test.each([
  'https://-r.example.com/x',
  'https://example-.com/x',
  'https://a..b/x',
  'https://example.com./x',
  'ssh://git@-oProxyCommand/x',
  'git@-oProxyCommand:x',
  'git@127.1:x',
  'http://git.example.com/x',
  'ext::sh -c true',
  'git@h://x',
])('%s leads nowhere', (cloneUrl) => expect(remoteAddress(cloneUrl)).toBeUndefined());

test('an address in another notation is given to git in the form that is checked', () => {
  expect(remoteAddress('https://0x7f000001/x')).toMatchObject({
    host: '127.0.0.1',
    url: 'https://127.0.0.1/x',
  });
  expect(remoteAddress('https://127.0.0.1./x')).toMatchObject({
    host: '127.0.0.1',
    url: 'https://127.0.0.1/x',
  });
});

test.each([
  'main',
  'feature/x',
  'release@2',
  'a#b',
  'v1.2',
  'UPPER_case-1',
  '@',
  '@@',
  'a@',
  'ünï/çode',
  '日本語',
  'emoji-🎉',
  "it's",
  'a%20b',
  'a,b',
  '$(x)',
  '`x`',
  'a&b',
  'a|b',
  '(a)',
  '{a}',
  '"a"',
  'a;b',
  '!a',
  'a!',
  '',
  '-x',
  '--',
  'a..b',
  'a//b',
  '/a',
  'a/.b',
  'x.lock',
  'x.lock/y',
  'x.locked',
  'a/',
  'a.',
  'a./b',
  '.a',
  'a@{1}',
  'a b',
  'a:b',
  'a^b',
  'a~b',
  'a*',
  'a?',
  'a[b',
  'a]b',
  'a\\b',
  'a\nb',
  'a\tb',
  'a\x7fb',
  'a\u2028..b',
  ' a',
])('%j is judged as git does', (name) => {
  const { status } = spawnSync('git', ['check-ref-format', '--branch', name]);
  expect(branchNamePattern.test(name)).toBe(status === 0);
});
