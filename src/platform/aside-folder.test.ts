import { mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { prepareAside } from './aside-folder.ts';

test('a process that starts leaves alone what others on its folder are writing, and removes what was forgotten', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'postern-aside-'));
  for (const name of ['now', 'forgotten']) writeFileSync(join(folder, name), 'half');
  const longAgo = new Date(Date.now() - 25 * 3_600_000);
  utimesSync(join(folder, 'forgotten'), longAgo, longAgo);
  await prepareAside(folder, { isShared: true });
  expect(readdirSync(folder)).toEqual(['now']);
  await prepareAside(folder, { isShared: false });
  expect(readdirSync(folder)).toEqual([]);
  rmSync(folder, { recursive: true });
});
