import { expect, test } from 'vitest';
import { Failure } from '../core/failure.ts';
import { onEachChange } from './watch-folder.ts';

/** Looks see these states, one after the other; the last one throws, which ends the test. */
function watching(states: readonly (string | undefined)[], publish: () => Promise<{ data: unknown }>) {
  const left = [...states];
  const looked = async () => {
    if (left.length === 0) throw new Error('no more looks');
    return left.shift();
  };
  return onEachChange(looked, publish, { err: () => undefined, wait: async () => undefined });
}

async function published(states: readonly (string | undefined)[]) {
  const seen: unknown[] = [];
  let count = 0;
  const results = watching(states, async () => {
    count += 1;
    return { data: count };
  });
  await expect(async () => {
    for await (const result of results) seen.push(result);
  }).rejects.toThrow('no more looks');
  return seen.length;
}

test('a folder that stays the same is published once', async () => {
  expect(await published(['a', 'a', 'a', 'a'])).toBe(1);
});

test('a change is published when it has settled, not while a build writes it', async () => {
  expect(await published(['a', 'b', 'c', 'd'])).toBe(1);
  expect(await published(['a', 'b', undefined, undefined, 'c', 'c', 'c', 'c'])).toBe(2);
});

test('a change during the publish is published next', async () => {
  expect(await published(['a', 'b', 'b', 'b'])).toBe(2);
});

test('what the server refuses is a result; a missing site ends it', async () => {
  const refused = new Failure('upload_rejected', 1, 'Two files cannot be published.');
  const missing = new Failure('site_not_found', 3, 'There is no such site.');
  const failures = [refused, missing];
  const results = watching(['a', 'b', 'b', 'b'], async () => {
    throw failures.shift();
  });
  expect((await results.next()).value).toBe(refused);
  await expect(results.next()).rejects.toBe(missing);
});
