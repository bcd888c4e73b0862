import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { flushedFolders } from './checkpoints.ts';
import { createEmbeddedFolder } from './embedded-folder.ts';

test('the log reaches the disk before pg_control, which names a record of it', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'postern-checkpoints-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  await createEmbeddedFolder(folder);
  const flushed = await flushedFolders(folder);
  expect([flushed[0], flushed.at(-1)]).toEqual(['pg_wal', 'global']);
  expect(await readdir(join(folder, 'global'))).toContain('pg_control');
  for (const database of await readdir(join(folder, 'base')))
    expect(flushed).toContain(join('base', database));
});
