import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { staysInside } from './links.ts';

const root = mkdtempSync(join(tmpdir(), 'postern-links-'));
afterAll(() => rmSync(root, { recursive: true }));
mkdirSync(join(root, 'a/b/c'), { recursive: true });
writeFileSync(join(root, 'a/file'), '');
const links = {
  'a/sibling': 'file',
  'a/b/c/top': '../../..',
  'a/chain': 'b/c/top/a/sibling',
  'a/dangling': 'nothing/here',
  'a/absolute': '/etc/passwd',
  'a/above': '../../outside',
  // Inside when it is read as text: only the link on its way leads out.
  'a/through': 'b/c/top/../outside',
  'a/circle': 'circle',
  'a/around': '../../' + root.split('/').at(-1) + '/a/file',
};
for (const [at, to] of Object.entries(links)) symlinkSync(to, join(root, at));

test.each(['a/file', 'a/sibling', 'a/b/c/top', 'a/chain', 'a/dangling', './a/../a//file', 'new/file'])(
  '%s stays inside',
  async (path) => expect(await staysInside(root, path)).toBe(true),
);

test.each(['a/absolute', 'a/above', 'a/through', 'a/circle', 'a/around', '..', 'a/absolute/more'])(
  '%s does not',
  async (path) => expect(await staysInside(root, path)).toBe(false),
);
