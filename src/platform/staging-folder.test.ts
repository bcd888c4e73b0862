import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { stagingFolder } from './staging-folder.ts';

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'postern-staging-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

test('a process that starts removes what a killed one was writing, and leaves alone what a living one writes', async () => {
  const folder = temporaryFolder();
  const [ours, living] = [
    stagingFolder(folder, { isShared: true }),
    stagingFolder(folder, { isShared: true }),
  ];
  await living.prepare();
  writeFileSync(join(living.path, 'part'), 'half of an upload');
  const killed = await writeAndBeKilled(folder);
  expect(existsSync(join(killed, 'part'))).toBe(true);

  await ours.prepare();
  expect(existsSync(killed)).toBe(false);
  expect(readdirSync(living.path)).toEqual(['part']);
  expect(statSync(ours.path).isDirectory()).toBe(true);
  // Two processes, each with a folder and a socket; nothing else.
  expect(readdirSync(folder)).toHaveLength(4);
});

test('of files that no process owns, a shared folder loses those a day old, and one for this process alone all', async () => {
  const folder = temporaryFolder();
  for (const name of ['now', 'forgotten']) writeFileSync(join(folder, name), 'half');
  mkdirSync(join(folder, 'other'));
  const longAgo = new Date(Date.now() - 25 * 3_600_000);
  utimesSync(join(folder, 'forgotten'), longAgo, longAgo);
  await stagingFolder(folder, { isShared: true }).prepare();
  expect(readdirSync(folder)).toEqual(expect.arrayContaining(['now', 'other']));
  expect(readdirSync(folder)).not.toContain('forgotten');
  await stagingFolder(folder, { isShared: false }).prepare();
  expect(readdirSync(folder)).toEqual([]);
});

/** Another process, which ends in the middle of writing. Resolves with the folder that it had. */
async function writeAndBeKilled(folder: string): Promise<string> {
  const script = `
    const { stagingFolder } = await import(${JSON.stringify(new URL('staging-folder.ts', import.meta.url).href)});
    const { writeFileSync } = await import('node:fs');
    const staging = stagingFolder(${JSON.stringify(folder)}, { isShared: true });
    await staging.prepare();
    writeFileSync(staging.path + '/part', 'half of an upload');
    console.log(staging.path);
    setInterval(() => undefined, 60_000);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [told] = (await once(child.stdout, 'data')) as [Buffer];
  child.kill('SIGKILL');
  await once(child, 'exit');
  return String(told).trim();
}
