import { expect, test } from 'vitest';
import { AppError } from '../core/errors.ts';
import type { MissingStore, StoreName } from '../composition/backends/backends.ts';
import { Blamed } from '../composition/backends/start-errors.ts';
import { createWaiting } from './waiting.ts';

const away = (setting: string, code = 'ECONNREFUSED') =>
  new Blamed(
    setting,
    new AppError('store_unavailable', { cause: Object.assign(new Error(`connect ${code}`), { code }) }),
  );
const refused = (setting: string, code: string) => away(setting, code);

/** Attempts fail with these, in this order, and then succeed. */
function missingStore(name: StoreName, setting: string, failures: unknown[]): MissingStore {
  return {
    name,
    found: { setting, problem: 'no server listens at this address', fix: 'Start the server.' },
    async open() {
      const failure = failures.shift();
      if (failure !== undefined) throw failure;
    },
  };
}

type Options = {
  readonly start?: () => Promise<void>;
  readonly pause?: (signal: AbortSignal) => Promise<void>;
};

const done = async () => undefined;

function arrange(missing: MissingStore[], { start = done, pause = done }: Options = {}) {
  const lines: string[] = [];
  const note = (_: object, message: string) => void lines.push(message);
  const waiting = createWaiting({ log: { info: note, warn: note }, missing, start, pause });
  return { waiting, lines };
}

test('what is waited for is one line, another when the reason changes, and one when it is there', async () => {
  const failures = [away('KV_URL'), away('KV_URL'), away('KV_URL', 'ENOTFOUND'), away('KV_URL', 'ENOTFOUND')];
  const { waiting, lines } = arrange([missingStore('kv', 'KV_URL', failures)]);
  expect(waiting.reasons()).toEqual({ kv: 'KV_URL: no server listens at this address' });
  expect(await waiting.untilReady()).toBe(true);
  expect(lines).toEqual([
    'waiting for the key-value store: KV_URL: no server listens at this address',
    expect.stringContaining('connect ECONNREFUSED'),
    expect.stringContaining('the host name cannot be resolved'),
    'the key-value store is available',
  ]);
  expect(waiting.reasons()).toEqual({});
});

test('the database counts as open when the process has started on it, and other stores when they are open', async () => {
  const attempts = [away('DATABASE_URL'), undefined];
  const { waiting } = arrange([missingStore('blobs', 'OBJECT_STORE_URL', [away('OBJECT_STORE_URL')])], {
    async start() {
      await expect(waiting.requireOpen('database')).rejects.toThrow('The database is not open yet.');
      const failure = attempts.shift();
      if (failure !== undefined) throw failure;
    },
  });
  for (const name of ['database', 'blobs'] as const)
    await expect(waiting.requireOpen(name)).rejects.toThrow('is not open yet.');
  await waiting.requireOpen('kv');
  await waiting.untilReady();
  for (const name of ['database', 'blobs'] as const) await waiting.requireOpen(name);
});

test('a process whose database is there starts on it once, before it listens', async () => {
  let starts = 0;
  const start = async () => void (starts += 1);
  const { waiting, lines } = arrange([missingStore('kv', 'KV_URL', [])], { start });
  await waiting.tryStart();
  await waiting.requireOpen('database');
  expect(await waiting.untilReady()).toBe(true);
  expect(starts).toBe(1);
  expect(lines.join()).not.toContain('the database is available');

  const without = arrange([missingStore('database', 'DATABASE_URL', [])], { start });
  await without.waiting.tryStart();
  expect(starts).toBe(1);
});

test('a refusal of the database ends the start; one of a store that the process serves without is waited for', async () => {
  const password = refused('DATABASE_URL', '28P01');
  const { waiting } = arrange([missingStore('database', 'DATABASE_URL', [away('DATABASE_URL'), password])]);
  await expect(waiting.untilReady()).rejects.toBe(password);

  const key = refused('OBJECT_STORE_URL', 'AccessDenied');
  const patient = arrange([missingStore('blobs', 'OBJECT_STORE_URL', [key])]);
  expect(await patient.waiting.untilReady()).toBe(true);
  expect(patient.lines.join()).toContain('this key lacks a permission that Postern needs');
});

test('what no waiting changes ends the start with what it was', async () => {
  const bug = new TypeError('x is not a function');
  const { waiting } = arrange([], { start: () => Promise.reject(bug) });
  await expect(waiting.tryStart()).rejects.toBe(bug);
  await expect(waiting.untilReady()).rejects.toBe(bug);
});

test('a process that is stopped while it waits tries no more', async () => {
  let attempts = 0;
  const store = {
    ...missingStore('kv', 'KV_URL', []),
    async open() {
      attempts += 1;
      throw away('KV_URL');
    },
  };
  const { waiting } = arrange([store], { pause: async () => waiting.stop() });
  expect(await waiting.untilReady()).toBe(false);
  expect(attempts).toBe(1);
});
