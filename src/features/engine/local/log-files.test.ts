import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { lastOfLogFiles, nextIdIn, openLogFiles, readLogFiles } from './log-files.ts';

function openFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'postern-log-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

function write(folder: string, maxBytes: number, texts: readonly string[]): void {
  const log = openLogFiles(folder, maxBytes);
  for (const text of texts) log.append({ at: 1, stream: 'stdout', text });
  log.close();
}

const numbered = (count: number) => Array.from({ length: count }, (_, at) => `line ${at + 1}`);

test('lines are read after an id, oldest first and as many as wanted', async () => {
  const folder = openFolder();
  write(folder, 100_000, numbered(5));
  expect((await readLogFiles(folder, 0, 100)).map(({ text }) => text)).toEqual(numbered(5));
  expect(await readLogFiles(folder, 2, 2)).toEqual([
    { id: 3, at: 1, stream: 'stdout', text: 'line 3' },
    { id: 4, at: 1, stream: 'stdout', text: 'line 4' },
  ]);
  expect(await readLogFiles(folder, 5, 100)).toEqual([]);
  expect(await readLogFiles(join(folder, 'missing'), 0, 100)).toEqual([]);
});

test('the newest lines stay, in bounded space, and their ids continue', async () => {
  const folder = openFolder();
  write(folder, 8_000, numbered(1_000));
  const bytes = readdirSync(folder).reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
  expect(bytes).toBeLessThan(8_800);
  const entries = await readLogFiles(folder, 0, 1_000);
  expect(entries.length).toBeGreaterThan(50);
  expect(entries.map(({ id }) => `line ${id}`)).toEqual(entries.map(({ text }) => text));
  expect(entries.at(-1)?.id).toBe(1_000);
  expect(nextIdIn(folder)).toBe(1_001);
  expect((await readLogFiles(folder, 997, 2)).map(({ id }) => id)).toEqual([998, 999]);
});

test('a log continues where an earlier process stopped', async () => {
  const folder = openFolder();
  write(folder, 8_000, ['one', 'two']);
  write(folder, 8_000, ['three']);
  expect((await readLogFiles(folder, 0, 9)).map(({ id, text }) => [id, text])).toEqual([
    [1, 'one'],
    [2, 'two'],
    [3, 'three'],
  ]);
  expect((await lastOfLogFiles(folder, 2)).map(({ text }) => text)).toEqual(['two', 'three']);
});

test('a part of a line, which a power loss left, is skipped', async () => {
  const folder = openFolder();
  writeFileSync(join(folder, '1'), '{"id":1,"at":1,"stream":"stdout","text":"one"}\n{"id":2,"at');
  write(folder, 8_000, ['next']);
  expect((await readLogFiles(folder, 0, 9)).map(({ id, text }) => [id, text])).toEqual([
    [1, 'one'],
    [2, 'next'],
  ]);
});
