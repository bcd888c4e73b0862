import { expect, test } from 'vitest';
import { openWorld, type World } from '../../../test/environments/builds-world.ts';
import { minute, second } from '../../core/clock.ts';
import { AppError } from '../../core/errors.ts';
import { sql } from '../../platform/database/sql.ts';
import { EngineUnavailable } from '../engine/contract.ts';

async function run(world: World) {
  await world.runner.run();
  await world.runner.settled();
}

test('a worker that is killed loses nothing: the next start builds again, and what it left is swept first', async () => {
  const world = await openWorld();
  const jobId = await world.requestBuild();
  await world.start(jobId);
  const next = await world.another();
  const build = await next.start(jobId);
  expect(next.engine.swept).toEqual([[]]);
  await build.make({ 'index.html': 'hello' });
  await next.runner.settled(jobId);
  expect(await next.builds.job(jobId)).toMatchObject({ status: 'built' });
  expect(await next.textOf(jobId)).toContain('The build starts again (attempt 2).');
});

test('what a worker that was taken for dead does later changes nothing', async () => {
  const world = await openWorld();
  const jobId = await world.requestBuild();
  const late = await world.start(jobId);
  const next = await world.another();
  await next.start(jobId);
  late.log.say('too late');
  await late.make({ 'index.html': 'too late' });
  await world.runner.settled();
  expect(await world.builds.job(jobId)).toMatchObject({ status: 'running' });
  expect(await world.textOf(jobId)).not.toContain('too late');
  expect(world.ended).toEqual([]);
});

test('a build that was taken back from a worker does not start there before it has ended there', async () => {
  const world = await openWorld({ engine: 'kubernetes' });
  const jobId = await world.requestBuild();
  const build = await world.start(jobId);
  world.engine.faults.ignoresAbort = true;
  await world.tx(({ builds }) => builds.takeBack('another worker', null));
  await world.runner.run();
  expect([build.signal.aborted, world.engine.builds()]).toEqual([true, 1]);
  expect(await world.builds.job(jobId)).toMatchObject({ status: 'queued' });
  world.engine.faults.ignoresAbort = false;
  await build.end({ kind: 'cancelled' });
  await world.runner.settled();
  await world.start(jobId);
  expect(world.engine.builds()).toBe(2);
});

test('a clean stop ends builds and queues them again, and does not count as a start', async () => {
  const world = await openWorld();
  const jobId = await world.requestBuild();
  const build = await world.start(jobId);
  await world.runner.stop();
  expect(build.signal.aborted).toBe(true);
  expect(await world.builds.job(jobId)).toMatchObject({ status: 'queued', startedAt: null });
  await world.runner.run();
  expect(await world.builds.job(jobId)).toMatchObject({ status: 'queued' });
  const next = await world.another();
  await next.start(jobId);
  expect(await next.textOf(jobId)).not.toContain('The build starts again (attempt 2).');
});

test('a build that ends its worker each time is not started for ever', async () => {
  const world = await openWorld();
  const jobId = await world.requestBuild();
  for (let start = 1; start <= 5; start++) await (await world.another()).start(jobId);
  const last = await world.another();
  await run(last);
  expect(await last.builds.job(jobId)).toMatchObject({
    status: 'failed',
    message: 'The build was started 5 times, and each time its worker ended before it.',
  });
});

test('an engine that cannot run builds: they wait, say why, and run when it can', async () => {
  const world = await openWorld();
  const jobId = await world.requestBuild();
  world.engine.faults.build = new EngineUnavailable('bwrap is missing');
  await run(world);
  for (let tries = 0; tries < 9; tries++) {
    world.clock.advance(minute);
    await run(world);
  }
  const message = 'The engine cannot run builds: bwrap is missing';
  expect(await world.builds.job(jobId)).toMatchObject({ status: 'queued', message });
  const words = (await world.textOf(jobId)).filter((text) => text.startsWith(message));
  expect(words).toEqual([`${message} Postern tries again.`]);
  expect(world.shared.counted).toEqual(Array.from({ length: 10 }, () => 'retry: engine'));
  world.engine.faults.build = undefined;
  await run(world);
  expect(world.engine.running()).toEqual([]);
  world.clock.advance(minute);
  await world.start(jobId);
  expect(await world.builds.job(jobId)).toMatchObject({ status: 'running', message: null });
});

test('a build that harms its own pod each time is not started for ever', async () => {
  const world = await openWorld();
  const jobId = await world.requestBuild();
  const why = 'The container send of Postern exited with 137 after 3 s.';
  world.engine.faults.build = new EngineUnavailable(why, { isItsOwn: true });
  for (let tries = 1; tries <= 6; tries++) {
    expect(await world.builds.job(jobId)).toMatchObject({ status: 'queued' });
    await run(world);
    world.clock.advance(minute);
  }
  expect(await world.builds.job(jobId)).toMatchObject({
    status: 'failed',
    message: `The engine cannot run builds: ${why}`,
  });
  // The engine itself works.
  expect(world.shared.counted).toEqual(['failed']);
});

test('an unavailable git server: the build waits for it, but not forever, and delays no other build', async () => {
  const world = await openWorld();
  world.shared.policy = { ...world.shared.policy, maxConcurrentBuilds: 1 };
  const jobId = await world.requestBuild();
  const { checkOut } = world.git;
  world.git.checkOut = async () => ({ kind: 'failed', reason: 'timed_out' });
  await run(world);
  expect(await world.builds.job(jobId)).toMatchObject({
    status: 'queued',
    message: 'The git server did not answer in time. Try again later.',
  });
  world.git.checkOut = checkOut;
  const other = await world.requestBuild({ repositoryId: 'repo_two' });
  await (await world.start(other)).make({ 'index.html': '' });
  await world.runner.settled();
  world.git.checkOut = async () => ({ kind: 'failed', reason: 'timed_out' });
  for (let tries = 0; tries < 5; tries++) {
    world.clock.advance(minute);
    await run(world);
  }
  expect(await world.builds.job(jobId)).toMatchObject({
    status: 'failed',
    message: 'The git server did not answer in time. Try again later.',
  });
});

test('a repository that is not registered any more is not built', async () => {
  const world = await openWorld();
  const jobId = await world.requestBuild();
  world.unregister('repo_one');
  await run(world);
  expect(await world.builds.job(jobId)).toMatchObject({
    status: 'failed',
    message: 'The repository is not registered any more.',
  });
});

test('an unavailable database when a build ends: the end is written when the database is back', async () => {
  const world = await openWorld();
  const jobId = await world.requestBuild();
  const build = await world.start(jobId);
  world.faults.tx = new AppError('store_unavailable');
  await build.make({ 'index.html': 'hello' });
  await world.runner.settled();
  expect(world.ended).toEqual([]);
  world.faults.tx = undefined;
  world.clock.advance(5 * second);
  await run(world);
  expect(await world.builds.job(jobId)).toMatchObject({ status: 'built' });
  expect(world.ended).toEqual([jobId]);
  expect(world.shared.counted).toEqual(['built']);
  expect(world.engine.builds()).toBe(1);
});

test.each([
  [new AppError('storage_full'), 'The server has no storage space left for the output.', 'failed'],
  [new TypeError('a mistake'), 'Postern could not run the build because of a defect in Postern.', 'mistake'],
])(
  'an end that can never be written is a failure, and frees its place: %s',
  async (error, message, counted) => {
    const world = await openWorld();
    const jobId = await world.requestBuild();
    const build = await world.start(jobId);
    const { has } = world.blobs;
    world.blobs.has = () => Promise.reject(error);
    await build.make({ 'index.html': 'hello' });
    await world.runner.settled();
    world.blobs.has = has;
    world.clock.advance(5 * second);
    await run(world);
    expect(await world.builds.job(jobId)).toMatchObject({ status: 'failed', message });
    expect(world.ended).toEqual([jobId]);
    expect(world.shared.counted).toEqual([counted]);
  },
);

test('a mistake of the engine ends the build, and the log of the server has it', async () => {
  const world = await openWorld();
  const jobId = await world.requestBuild();
  const build = await world.start(jobId);
  await build.fail(new TypeError('x is not a function'));
  await world.runner.settled();
  const state = await world.builds.job(jobId);
  expect(state).toMatchObject({ status: 'failed' });
  expect(state?.message).not.toContain('not a function');
  expect(world.shared.logged.some((line) => line.includes('x is not a function'))).toBe(true);
});

test('never more builds run than the policy allows, with several workers too', async () => {
  const world = await openWorld({ engine: 'kubernetes' });
  world.shared.policy = { ...world.shared.policy, maxConcurrentBuilds: 3 };
  for (let n = 0; n < 6; n++) await world.requestBuild({ variables: { N: String(n) } });
  const other = await world.another();
  await Promise.all([world.runner.run(), other.runner.run()]);
  const rows = await sql`select 1 from build_jobs where status = 'running'`.all(world.database.sql);
  expect(rows.length).toBe(3);
});

test('a worker beside others takes back only what was silent for a minute', async () => {
  const world = await openWorld({ engine: 'kubernetes' });
  const silent = await world.requestBuild({ variables: { N: '1' } });
  await world.start(silent);
  const other = await world.another();
  const own = await world.requestBuild({ variables: { N: '2' } });
  await other.start(own);
  for (let passed = 0; passed < 60; passed += 5) {
    await other.runner.run();
    expect(other.engine.running()).toEqual([own]);
    world.clock.advance(5 * second);
  }
  world.clock.advance(second);
  const build = await other.start(silent);
  // The first worker notices, and ends the build that it no longer owns.
  await world.runner.run();
  await world.runner.settled();
  expect(world.engine.running()).toEqual([]);
  await build.make({ 'index.html': 'hello' });
  await other.runner.settled(silent);
  expect(await other.builds.job(silent)).toMatchObject({ status: 'built' });
  expect(await other.builds.job(own)).toMatchObject({ status: 'running' });
});
