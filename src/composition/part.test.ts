import { expect, test } from 'vitest';
import { type Part, settleAll, startAll, stopAll } from './part.ts';

function partsThat(note: (step: string) => Promise<void>): readonly Part[] {
  return ['audit', 'keys', 'sites'].map((name) => ({
    services: {},
    start: () => note(`start ${name}`),
    settled: () => note(`settled ${name}`),
    stop: () => note(`stop ${name}`),
  }));
}

test('parts start in the order in which they are built, and stop in reverse, each when its work is done', async () => {
  const steps: string[] = [];
  const parts = partsThat(async (step) => void steps.push(step));
  await startAll([...parts, { services: {} }]);
  await settleAll(parts);
  await stopAll(parts);
  expect(steps).toEqual([
    'start audit',
    'start keys',
    'start sites',
    'settled sites',
    'settled keys',
    'settled audit',
    'settled sites',
    'stop sites',
    'settled keys',
    'stop keys',
    'settled audit',
    'stop audit',
  ]);
});

test('a part that cannot start leaves the later ones for the next attempt', async () => {
  const steps: string[] = [];
  const parts = partsThat(async (step) => {
    steps.push(step);
    if (step === 'start keys') throw new Error('The database is unavailable.');
  });
  await expect(startAll(parts)).rejects.toThrow('unavailable');
  expect(steps).toEqual(['start audit', 'start keys']);
});

test('a part that cannot stop keeps no other from writing what it holds', async () => {
  const steps: string[] = [];
  const parts = partsThat(async (step) => {
    steps.push(step);
    if (/(?:settled|stop) keys/.test(step)) throw new Error(`cannot ${step}`);
  });
  const failed = await stopAll(parts).catch((error: unknown) => error);
  expect(steps.filter((step) => step.startsWith('stop'))).toEqual(['stop sites', 'stop keys', 'stop audit']);
  expect(failed).toBeInstanceOf(AggregateError);
  expect(failed).toMatchObject({
    errors: [{ message: 'cannot settled keys' }, { message: 'cannot stop keys' }],
  });
});
