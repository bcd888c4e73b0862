import { expect, test } from 'vitest';
import { placeOf } from './git-remote.ts';

test.each([
  'https://git.example.com/acme/website.git',
  'https://ada@Git.example.com/acme/website/',
  'ssh://git@git.example.com:2222/acme/website.git',
  'git@git.example.com:acme/website.git',
  'git.example.com:acme/website',
])('%s is the same repository', (remote) => {
  expect(placeOf(remote)).toBe('git.example.com/acme/website');
});

test('a folder of this machine is the same with and without file://', () => {
  expect(placeOf('file:///srv/git/website.git')).toBe(placeOf('/srv/git/website'));
});

test('another host or path is another repository', () => {
  expect(placeOf('https://other.example.com/acme/website')).not.toBe(
    placeOf('https://git.example.com/acme/website'),
  );
  expect(placeOf('https://git.example.com/acme/Website')).not.toBe(
    placeOf('https://git.example.com/acme/website'),
  );
});
