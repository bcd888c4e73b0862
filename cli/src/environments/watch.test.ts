import { expect, test } from 'vitest';
import type { Call } from '../http/call.ts';
import { Failure } from '../core/failure.ts';
import type { Io } from '../core/io.ts';
import { environmentAt, watchBuild, watchEnvironment } from './watch.ts';

const environment = {
  id: 'env_1',
  uuid: 'shop',
  link: 'https://postern.example.com/e/env_1',
  services: [
    { name: 'web', url: 'https://web--k3.example.org', active: true },
    { name: 'api', url: null, active: true },
    { name: 'old', url: 'https://old--k3.example.org', active: false },
  ],
};

/** Answers one status after the other, the last one forever; a second passes with each wait. */
function watching(statuses: readonly (string | Failure)[], more: Readonly<Record<string, unknown>> = {}) {
  const said: string[] = [];
  let now = 0;
  let looks = 0;
  const chatter = {
    errIsTerminal: false,
    err: (text: string) => void said.push(text),
    now: () => now,
    wait: async (ms: number) => void (now += ms),
    // Nothing else of the process is used.
  } as unknown as Io;
  const call = (async (_: string, path: string) => {
    if (path.endsWith('/why'))
      return [
        { ok: true, message: 'Read.' },
        { ok: false, message: 'web: exited with 1.', fix: 'Correct it.' },
      ];
    const status = statuses[Math.min(looks, statuses.length - 1)];
    looks += 1;
    if (status instanceof Failure) throw status;
    return { ...environment, environment, message: null, fix: null, problems: [], status, ...more };
  }) as Call;
  return { said, caller: { call, chatter }, seconds: () => now / 1000 };
}

test('an Environment is watched until it is deployed, and each status is said once', async () => {
  const { said, caller } = watching(['queued', 'building', 'building', 'deployed']);
  const { text } = await watchEnvironment('shop', caller, {});
  expect(text).toBe('https://web--k3.example.org\n');
  expect(said).toEqual(['shop: queued\n', 'shop: building\n']);
});

test('one that failed ends with 1, and what why says', async () => {
  const { caller } = watching(['deploying', 'error']);
  await expect(watchEnvironment('shop', caller, {})).rejects.toMatchObject({
    exitCode: 1,
    code: 'error',
    message: 'web: exited with 1.',
    hint: 'Correct it.',
  });
});

test.each([
  ['paused', 6],
  ['tearing_down', 1],
  ['torn_down', 1],
])('one that is %s ends with %i', async (status, exitCode) => {
  await expect(watchEnvironment('shop', watching([status]).caller, {})).rejects.toMatchObject({ exitCode });
});

test('after the timeout it ends with 8', async () => {
  const { caller, seconds } = watching(['building']);
  await expect(watchEnvironment('shop', caller, { timeout: 30 })).rejects.toMatchObject({ exitCode: 8 });
  expect(seconds()).toBe(30);
});

test('a lost connection is waited for; another failure ends it', async () => {
  const lost = new Failure('unreachable', 7, 'It cannot be reached.');
  const { said, caller } = watching([lost, lost, 'deployed']);
  await watchEnvironment('shop', caller, {});
  expect(said.at(-1)).toContain('The next attempt is in 2 s.');
  const missing = watching([new Failure('env_not_found', 3, 'There is none.')]);
  await expect(watchEnvironment('shop', missing.caller, {})).rejects.toMatchObject({ exitCode: 3 });
});

test.each(['error', 'config_error', 'cancelled', 'superseded'])(
  'a build that ends as %s ends with 1',
  async (status) => {
    await expect(watchBuild('bld_1', watching(['queued', status]).caller, {})).rejects.toMatchObject({
      exitCode: 1,
    });
  },
);

test('an Environment is found by its name, its link and the address of a service', async () => {
  const origin = 'https://postern.example.com';
  const call = (async () => [environment]) as Call;
  expect(await environmentAt('shop', origin, call)).toBe('shop');
  expect(await environmentAt(`${origin}/e/env_9`, origin, call)).toBe('env_9');
  expect(await environmentAt('https://web--k3.example.org/a?b', origin, call)).toBe('env_1');
  await expect(environmentAt('https://other.example.org/', origin, call)).rejects.toMatchObject({
    exitCode: 3,
  });
});
