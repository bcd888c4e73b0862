import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { openWorld } from '../../../test/environments/builds-world.ts';
import type { LogLine } from '../engine/build-log.ts';
import { openLogWriter } from '../engine/log-writer.ts';

const line = (text: string): LogLine => ({ at: 0, stream: 'stdout', text });

/** A writer whose clock the test advances. */
function openWriter() {
  const written: string[][] = [];
  const planned: (() => void)[] = [];
  const faults = { write: undefined as Error | undefined, wait: Promise.resolve() };
  const failures: unknown[] = [];
  const writer = openLogWriter({
    async write(lines) {
      await faults.wait;
      if (faults.write !== undefined) throw faults.write;
      written.push(lines.map(({ text }) => text));
    },
    later: (work, ms) => {
      expect(ms).toBe(250);
      planned.push(work);
    },
    onFailure: (error) => failures.push(error),
  });
  return { writer, written, planned, faults, failures };
}

test('a line is written without what PostgreSQL does not store', async () => {
  const { writer, written } = openWriter();
  writer.add(line('a\0b\ud83d'));
  await turn();
  expect(written).toEqual([['a\ufffdb\ufffd']]);
});

test('the first lines are written at once, and later ones together when 250 ms have passed', async () => {
  const { writer, written, planned } = openWriter();
  for (const text of ['a', 'b']) writer.add(line(text));
  await turn();
  expect(written).toEqual([['a', 'b']]);
  for (const text of ['c', 'd', 'e']) writer.add(line(text));
  await turn();
  expect([written.length, planned.length]).toEqual([1, 1]);
  planned[0]?.();
  await turn();
  expect(written).toEqual([
    ['a', 'b'],
    ['c', 'd', 'e'],
  ]);
  planned[1]?.();
  await turn();
  expect([written.length, planned.length]).toEqual([2, 2]);
});

test('a row has at most 64 KiB, or one line', async () => {
  const { writer, written } = openWriter();
  for (let n = 0; n < 100; n++) writer.add(line('x'.repeat(8_192)));
  writer.add(line('y'.repeat(100_000)));
  await writer.flush();
  const lengths = written.map((lines) => lines.join('').length);
  expect(lengths.slice(0, -1).every((length) => length <= 65_536)).toBe(true);
  expect([written.flat().length, lengths.at(-1)]).toEqual([101, 100_000]);
});

test('lines that could not be written are written with the next, in their order', async () => {
  const { writer, written, faults, failures } = openWriter();
  faults.write = new Error('away');
  writer.add(line('a'));
  await expect(writer.flush()).rejects.toThrow('away');
  expect(failures.length).toBe(1);
  faults.write = undefined;
  writer.add(line('b'));
  await writer.flush();
  expect(written).toEqual([['a', 'b']]);
});

test('while many lines wait there is no room, until most of them are written', async () => {
  const { writer, written, faults } = openWriter();
  const held = Promise.withResolvers<void>();
  faults.wait = held.promise;
  let lines = 0;
  for (; writer.room === undefined; lines++) writer.add(line('y'));
  // 2 MiB; each line takes 100 bytes besides its text.
  expect(lines).toBeLessThan(21_000);
  const { room } = writer;
  held.resolve();
  await room;
  expect(writer.room).toBeUndefined();
  await writer.flush();
  expect(written.flat()).toHaveLength(lines);
});

test('while there is no room, a write that failed is tried again without another line', async () => {
  const { writer, written, planned, faults, failures } = openWriter();
  faults.write = new Error('unavailable');
  while (writer.room === undefined) writer.add(line('y'.repeat(8_192)));
  await turn();
  expect([failures.length, written.length]).toEqual([1, 0]);
  faults.write = undefined;
  planned.shift()?.();
  await writer.room;
  expect(written.length).toBeGreaterThan(0);
  // After the end, the writer does not retry.
  faults.write = new Error('unavailable');
  while (writer.room === undefined) writer.add(line('y'.repeat(8_192)));
  writer.end();
  await turn();
  const before = failures.length;
  for (let work = planned.shift(); work !== undefined; work = planned.shift()) {
    work();
    await turn();
  }
  expect(failures).toHaveLength(before);
});

test('the log of a build is read from any line on, with ids that count from 1', async () => {
  const world = await openWorld();
  const jobId = await world.requestBuild();
  const build = await world.start(jobId);
  world.clock.advance(1_000);
  for (let n = 1; n <= 500; n++) build.log.output('stderr', Buffer.from(`${n} ${'x'.repeat(1_000)}\n`));
  await build.make({ 'index.html': '' });
  await world.runner.settled();
  const [first, second] = await world.builds.log(jobId, 0, 2);
  expect(first).toMatchObject({
    id: 1,
    stream: 'postern',
    text: 'Builds the repository at 111111111111 (main).',
  });
  expect(second).toMatchObject({ id: 2, stream: 'stderr', at: world.clock.now() });
  const seen: number[] = [];
  for (let after = 0; ; ) {
    const page = await world.builds.log(jobId, after, 70);
    if (page.length === 0) break;
    expect(page.length).toBe(Math.min(70, 501 - after));
    expect(page[0]?.id).toBe(after + 1);
    seen.push(...page.map(({ text }) => Number.parseInt(text, 10) || 0));
    after = page.at(-1)?.id ?? 0;
  }
  expect(seen).toEqual([0, ...Array.from({ length: 500 }, (_, n) => n + 1)]);
  expect(await world.builds.log(jobId, 501, 10)).toEqual([]);
  expect(await world.builds.log('job_none', 0, 10)).toEqual([]);
});

test('the policy bounds the log, and its last lines stay', async () => {
  const world = await openWorld();
  world.shared.policy = { ...world.shared.policy, logBytes: 1_024 };
  const jobId = await world.requestBuild();
  const build = await world.start(jobId);
  for (let n = 0; n < 5_000; n++) build.log.output('stdout', Buffer.from(`line ${n}\n`));
  await build.end({ kind: 'failed', reason: 'exited', message: 'It failed.', fix: 'Fix it.', lastLines: [] });
  await world.runner.settled();
  const lines = await world.builds.log(jobId, 0, 10_000);
  expect(lines.length).toBeLessThan(1_500);
  expect(lines.map(({ text }) => text)).toContain(
    'The log is longer than 1024 bytes. The rest is left out, except its last lines.',
  );
  expect(lines.at(-1)?.text).toBe('line 4999');
});
