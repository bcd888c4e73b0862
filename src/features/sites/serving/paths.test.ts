import { expect, test } from 'vitest';
import { filePathOf, isHashed } from './paths.ts';

test.each([
  ['app.3f9c2a71.js', true],
  ['index-DfGhJkLm.js', true],
  ['main.deadbeef.css', true],
  ['chunk-a1B2c3D4e5.mjs', true],
  ['assets/logo_9d8e7f6a5b.svg', true],
  ['press-releases.html', false],
  ['my-component.js', false],
  ['jquery-3.7.1.min.js', false],
  ['README.md', false],
  ['app.js', false],
])('%s carries a hash: %s', (name, carries) => {
  expect(isHashed(name)).toBe(carries);
});

test.each([
  ['/', ''],
  ['/a/b.html', 'a/b.html'],
  ['/%61', 'a'],
  ['/a/', 'a/'],
  ['//a', undefined],
  ['/a//b', undefined],
  ['/../a', undefined],
  ['/%2e%2e/a', undefined],
  ['/a%2fb', undefined],
  ['/a%5cb', undefined],
  ['/a%00', undefined],
  ['/%c0%ae', undefined],
  ['a', undefined],
])('the target %s means the file %s', (target, path) => {
  expect(filePathOf(target)).toBe(path);
});
