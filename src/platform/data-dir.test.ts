import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, writeFileSync, existsSync, mkdirSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { DataDirInUse, ensureDatabaseFolder, lockDataDir } from './data-dir.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'postern-data-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const leaveLockOf = (holder: object) => writeFileSync(join(folder, 'lock'), JSON.stringify(holder));
const since = '2026-01-01T00:00:00.000Z';

const holderNow = () => JSON.parse(readFileSync(join(folder, 'lock'), 'utf8'));

test('FT-12 a second process is refused and told who holds the folder', async () => {
  const lock = await lockDataDir(folder);
  await expect(lockDataDir(folder)).rejects.toThrow(DataDirInUse);
  await expect(lockDataDir(folder)).rejects.toThrow(`process ${process.pid} on ${hostname()}`);
  lock.release();
  (await lockDataDir(folder)).release();
  expect(readdirSync(folder)).toEqual([]);
});

test('FT-12 a holder in another container is seen, though its process id and host mean nothing here', async () => {
  const lock = await lockDataDir(folder);
  leaveLockOf({ ...holderNow(), pid: 4_194_305, started: 'another boot', host: 'elsewhere' });
  await expect(lockDataDir(folder)).rejects.toThrow('process 4194305 on elsewhere');
  lock.release();
});

test('FT-12 a container made again takes the folder of the one before it, whatever it was called', async () => {
  // A killed process: the file of its socket stays, and no process listens.
  const code = `import { lockDataDir } from ${JSON.stringify(join(import.meta.dirname, 'data-dir.ts'))};
    await lockDataDir(process.argv[1]); process.kill(process.pid, 'SIGKILL');`;
  const killed = spawnSync(process.execPath, ['--input-type=module', '-e', code, folder]);
  expect(killed.signal).toBe('SIGKILL');
  const left = holderNow();
  expect(existsSync(join(folder, left.socket))).toBe(true);
  leaveLockOf({ ...left, pid: process.pid, started: '', host: 'elsewhere' });
  const lock = await lockDataDir(folder);
  expect(holderNow().token).not.toBe(left.token);
  expect(existsSync(join(folder, left.socket))).toBe(false);
  lock.release();
});

test('FT-12 of several processes that take over at once, one gets the folder', async () => {
  leaveLockOf({ pid: 1, started: '1', host: 'elsewhere', since, token: 'x', socket: 'lock.gone.sock' });
  const all = await Promise.allSettled(Array.from({ length: 8 }, () => lockDataDir(folder)));
  const got = all.filter((one) => one.status === 'fulfilled');
  expect(got).toHaveLength(1);
  for (const { value } of got) value.release();
});

test.each([1, 2, 3, 4, 5])(
  'FT-12 a takeover that was cut short does not let two in, however they interleave (%i)',
  async () => {
    const gone = { pid: 1, started: '1', host: 'elsewhere', since };
    leaveLockOf({ ...gone, token: 'x', socket: 'lock.gone.sock' });
    const cutShort = { ...gone, token: 'y', socket: 'lock.y.sock' };
    for (const name of ['lock.takeover', 'lock.y'])
      writeFileSync(join(folder, name), JSON.stringify(cutShort));
    const all = await Promise.allSettled(Array.from({ length: 8 }, () => lockDataDir(folder)));
    const got = all.filter((one) => one.status === 'fulfilled');
    expect(got).toHaveLength(1);
    for (const { value } of got) value.release();
    expect(readdirSync(folder)).toEqual([]);
  },
);

test('FT-12 of several processes that start while the holder lets go, never two get the folder', async () => {
  for (let round = 0; round < 20; round += 1) {
    const holder = await lockDataDir(folder);
    let inside = 0;
    const starting = Array.from({ length: 6 }, async () => {
      const lock = await lockDataDir(folder);
      inside += 1;
      // Held across turns of other processes: two at the same time would show here.
      for (let turn = 0; turn < 5; turn += 1) {
        expect(inside).toBe(1);
        await new Promise(setImmediate);
      }
      inside -= 1;
      lock.release();
    });
    await new Promise(setImmediate);
    holder.release();
    const ended = await Promise.allSettled(starting);
    const reasons = ended.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []));
    expect(reasons.filter((reason) => !(reason instanceof DataDirInUse))).toEqual([]);
  }
});

test('releasing a lock that another process has taken leaves that one its lock', async () => {
  const lock = await lockDataDir(folder);
  leaveLockOf({ ...holderNow(), token: 'another' });
  lock.release();
  expect(holderNow().token).toBe('another');
});

test('FT-12 a folder with a path longer than a socket may have is locked all the same', async () => {
  folder = join(folder, 'x'.repeat(150));
  const lock = await lockDataDir(folder);
  await expect(lockDataDir(folder)).rejects.toThrow(DataDirInUse);
  lock.release();
  (await lockDataDir(folder)).release();
  expect(readdirSync(folder)).toEqual([]);
});

describe('without sockets', () => {
  test('the lock of a process that is gone is taken over', async () => {
    // Larger than any process id Linux hands out.
    leaveLockOf({ pid: 4_194_305, started: '1', host: hostname(), since });
    const lock = await lockDataDir(folder);
    expect(holderNow().pid).toBe(process.pid);
    lock.release();
    expect(existsSync(join(folder, 'lock'))).toBe(false);
  });

  test('a process id that was given to another process since does not keep the folder shut', async () => {
    leaveLockOf({ pid: process.pid, started: 'another start', host: hostname(), since });
    const lock = await lockDataDir(folder);
    expect(holderNow().started).not.toBe('another start');
    lock.release();
  });

  test('a lock of another host is believed', async () => {
    leaveLockOf({ pid: 1, started: '1', host: 'elsewhere', since });
    await expect(lockDataDir(folder)).rejects.toThrow('on elsewhere since 2026-01-01');
  });
});

test('a lock file that was cut short is nobody’s', async () => {
  writeFileSync(join(folder, 'lock'), '{"pid":');
  const lock = await lockDataDir(folder);
  expect(holderNow().pid).toBe(process.pid);
  lock.release();
});

test('a database is made in a folder that an interrupted start knows nothing of', async () => {
  const made: string[] = [];
  const note = async (staging: string) => void made.push(staging);
  // Its start was cancelled: no caller waits for it, and it may still write.
  void ensureDatabaseFolder(join(folder, 'twice'), async (staging) => {
    await note(staging);
    await new Promise(() => undefined);
  });
  await ensureDatabaseFolder(join(folder, 'twice'), note);
  expect(new Set(made).size).toBe(2);
});

test('an incomplete database is created again; a complete one stays unchanged', async () => {
  mkdirSync(join(folder, 'database.new'));
  writeFileSync(join(folder, 'database.new', 'half'), '');
  const make = async (staging: string) => writeFileSync(join(staging, 'PG_VERSION'), '18');
  const made = await ensureDatabaseFolder(folder, make);
  expect(existsSync(join(made, 'half'))).toBe(false);
  await ensureDatabaseFolder(folder, () => Promise.reject(new Error('must not be called')));
  expect(readFileSync(join(made, 'PG_VERSION'), 'utf8')).toBe('18');
});
