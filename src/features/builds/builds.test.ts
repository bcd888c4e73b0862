import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { openWorld, openWorldWithGit, type World } from '../../../test/environments/builds-world.ts';
import { minute, second } from '../../core/clock.ts';
import { sql } from '../../platform/database/sql.ts';

/** Requests, runs and ends one build. Returns its artifact. */
async function built(world: World, wanted: Parameters<World['request']>[0] = {}) {
  const jobId = await world.requestBuild(wanted);
  const build = await world.start(jobId);
  await build.make({ 'index.html': 'hello' });
  await world.runner.settled();
  const state = await world.builds.job(jobId);
  expect(state?.status).toBe('built');
  return { jobId, artifactId: state?.artifactId ?? '' };
}

test('a request is queued, runs with the files of the commit, and becomes an artifact', async () => {
  const world = await openWorldWithGit();
  const jobId = await world.requestBuild({ variables: { COLOR: 'blue' } });
  expect(await world.builds.job(jobId)).toMatchObject({ status: 'queued', startedAt: null });
  const build = await world.start(jobId);
  expect(build.job).toMatchObject({
    id: jobId,
    command: 'make',
    variables: { COLOR: 'blue' },
    limits: { timeMs: 30 * minute, memoryBytes: 1024 ** 3 },
  });
  expect(readFileSync(join(build.folder, 'src', 'a.txt'), 'utf8')).toBe('one');
  expect(await world.builds.job(jobId)).toMatchObject({
    status: 'running',
    startedAt: world.clock.now(),
  });
  await build.make({ 'index.html': 'hello', 'a/b.css': 'p{}' });
  await world.runner.settled();
  const state = await world.builds.job(jobId);
  expect(state).toMatchObject({ status: 'built', message: null, endedAt: world.clock.now() });
  expect(world.ended).toEqual([jobId]);
  const manifest = await world.read.artifacts.manifest(state?.artifactId ?? '');
  expect([...(manifest ?? [])].map(([path, { size }]) => [path, size])).toEqual([
    ['a/b.css', 3],
    ['index.html', 5],
  ]);
  expect(await world.request({ variables: { COLOR: 'blue' } })).toEqual({
    kind: 'built',
    artifactId: state?.artifactId,
  });
});

test.skipIf(process.platform !== 'linux')(
  'a real command makes the files, from those of the commit',
  async () => {
    const world = await openWorldWithGit({ runsCommands: true });
    world.repository.commit({ 'web/page.txt': 'hello' });
    world.storeSecret('repo_one', 'token', 'a-secret-value');
    const jobId = await world.requestBuild({
      build: {
        command: 'mkdir dist; cat page.txt >dist/index.html; echo "$WORD $(cat "$BUILD_SECRETS_DIR/TOKEN")"',
        directory: 'web',
        inputs: ['web/**'],
        secrets: { TOKEN: 'token' },
      },
      variables: { WORD: 'built' },
      maySecrets: true,
    });
    await world.runner.run();
    await world.runner.settled();
    const state = await world.builds.job(jobId);
    expect(state).toMatchObject({ status: 'built' });
    const manifest = await world.read.artifacts.manifest(state?.artifactId ?? '');
    expect([...(manifest?.keys() ?? [])]).toEqual(['index.html']);
    expect(await text(await world.blobs.read(manifest?.get('index.html')?.digest ?? ''))).toBe('hello');
    expect(await world.textOf(jobId)).toEqual([
      expect.stringContaining('Builds web at '),
      'built [redacted]',
    ]);
  },
);

test('the same inputs are not built again on another branch', async () => {
  const world = await openWorldWithGit();
  const { artifactId } = await built(world);
  world.repository.commit({}, 'feature');
  expect(await world.request({ branch: 'feature' })).toEqual({ kind: 'built', artifactId });
  world.repository.commit({ 'src/a.txt': 'two' }, 'feature');
  expect((await world.request({ branch: 'feature' })).kind).toBe('building');
});

test('a folder that is not an input changes nothing', async () => {
  const world = await openWorldWithGit();
  const build = { inputs: ['src/**'] };
  const { artifactId } = await built(world, { build });
  world.repository.commit({ 'docs/b.txt': 'new' });
  expect(await world.request({ build })).toEqual({ kind: 'built', artifactId });
});

test('two requests for the same inputs share one build, also at the same time', async () => {
  const world = await openWorldWithGit();
  world.repository.commit({}, 'feature');
  const requested = await Promise.all([
    world.request(),
    world.request({ branch: 'feature' }),
    world.request(),
  ]);
  expect(new Set(requested.map((one) => (one.kind === 'building' ? one.jobId : ''))).size).toBe(1);
  const rows = await sql`select 1 from build_jobs`.all(world.database.sql);
  expect(rows.length).toBe(1);
});

test('a request in the moment in which its build ends gets that build or its artifact, never another build', async () => {
  const world = await openWorld();
  for (let n = 0; n < 20; n++) {
    const wanted = { variables: { N: String(n) } };
    const jobId = await world.requestBuild(wanted);
    const build = await world.start(jobId);
    const ending = build.make({ 'index.html': 'hello' }).then(() => world.runner.settled());
    const requested = await Promise.all([1, 2, 3].map(() => world.request(wanted)));
    await ending;
    const artifactId = (await world.builds.job(jobId))?.artifactId;
    for (const one of requested)
      expect([
        { kind: 'building', jobId },
        { kind: 'built', artifactId },
      ]).toContainEqual(one);
  }
  const rows = await sql`select 1 from build_jobs`.all(world.database.sql);
  expect(rows.length).toBe(20);
});

test('another repository shares neither artifacts nor builds under way', async () => {
  const world = await openWorld();
  const first = await built(world);
  const other = await built(world, { repositoryId: 'repo_two' });
  expect(other).not.toEqual(first);
});

test('a branch cannot put another result under the inputs of main', async () => {
  const world = await openWorldWithGit();
  world.repository.commit({ 'src/a.txt': 'one' }, 'hostile');
  const { artifactId } = await built(world, { variables: { A: '1', B: '2' } });
  const same = { branch: 'hostile', variables: { B: '2', A: '1' } };
  expect(await world.request(same)).toEqual({ kind: 'built', artifactId });
  // Everything that affects the result is part of the key.
  world.repository.commit({ 'src/b.txt': 'more' }, 'more-files');
  world.repository.commit({ 'src/a.txt': { to: 'b.txt' } }, 'a-link');
  for (const change of [
    { branch: 'more-files' },
    { branch: 'a-link' },
    { variables: { A: '1' } },
    { variables: { A: '1', B: '3' } },
    { build: { digest: 'e'.repeat(64) } },
  ])
    expect((await world.request({ ...same, ...change })).kind).toBe('building');
});

test('files that are not those of the request are not built under its inputs', async () => {
  const world = await openWorldWithGit();
  const jobId = await world.requestBuild();
  const { checkOut } = world.git;
  world.git.checkOut = async (...args) => {
    const found = await checkOut(...args);
    return found.kind === 'ok' ? { kind: 'ok', value: { tree: '0'.repeat(40) } } : found;
  };
  await world.runner.run();
  await world.runner.settled();
  expect(await world.builds.job(jobId)).toMatchObject({
    status: 'failed',
    message: 'The files of the commit are not those that were requested.',
  });
});

test('a repository that cannot be built is refused with a message, and an unavailable one is retried', async () => {
  const world = await openWorldWithGit();
  expect(await world.request({ build: { inputs: ['web/**'] } })).toEqual({
    kind: 'refused',
    reason: 'wrong_inputs',
    message: 'No file of the commit is an input of the build.',
    fix: 'Correct build.directory or build.inputs in postern.yaml.',
  });
  world.repository.commit({ 'src/large.bin': 'version https://git-lfs.github.com/spec/v1\noid 1\n' });
  const jobId = await world.requestBuild();
  await world.runner.run();
  await world.runner.settled();
  expect(await world.builds.job(jobId)).toMatchObject({
    reason: 'wrong_inputs',
    message:
      'An input of the build is stored in Git LFS, from which Postern does not fetch. The file is src/large.bin.',
  });
  world.git.treeOf = async () => ({ kind: 'failed', reason: 'timed_out' });
  await expect(world.request()).rejects.toMatchObject({ code: 'git_unavailable' });
});

test('repositories take turns: who requests much does not keep others waiting', async () => {
  const world = await openWorld();
  world.shared.policy = { ...world.shared.policy, maxConcurrentBuilds: 2 };
  const many: string[] = [];
  for (const COLOR of ['red', 'green', 'blue']) {
    many.push(await world.requestBuild({ variables: { COLOR } }));
    world.clock.advance(second);
  }
  const other = await world.requestBuild({ repositoryId: 'repo_two' });
  const first = await world.start(many[0] ?? '');
  await world.start(other);
  expect(new Set(world.engine.running())).toEqual(new Set([many[0], other]));
  await first.make({ 'index.html': '1' });
  await world.runner.settled(many[0] ?? '');
  await world.start(many[1] ?? '');
  expect(new Set(world.engine.running())).toEqual(new Set([many[1], other]));
});

test('a repository with few builds waits for one build of another, and not for its queue', async () => {
  const world = await openWorld();
  world.shared.policy = { ...world.shared.policy, maxConcurrentBuilds: 1 };
  const names = new Map<string, string>();
  for (const name of ['one-1', 'one-2', 'one-3', 'two-1', 'two-2']) {
    const repositoryId = name.startsWith('one') ? 'repo_one' : 'repo_two';
    names.set(await world.requestBuild({ repositoryId, variables: { NAME: name } }), name);
    world.clock.advance(second);
  }
  const begun: (string | undefined)[] = [];
  while (begun.length < names.size) {
    await world.runner.run();
    const [jobId = ''] = await world.read.builds.running();
    const build = await world.engine.started(jobId);
    begun.push(names.get(jobId));
    await build.make({ 'index.html': jobId });
    await world.runner.settled(jobId);
    world.clock.advance(second);
  }
  expect(begun).toEqual(['one-1', 'two-1', 'one-2', 'two-2', 'one-3']);
});

test('a build that failed says why, and the next request builds again', async () => {
  const world = await openWorld();
  const jobId = await world.requestBuild();
  const build = await world.start(jobId);
  await build.end({
    kind: 'failed',
    reason: 'exited',
    message: 'The command exited with 1 after 3 s.',
    fix: 'Correct it.',
    lastLines: ['no such file'],
  });
  await world.runner.settled();
  expect(await world.builds.job(jobId)).toMatchObject({
    status: 'failed',
    message: 'The command exited with 1 after 3 s.',
    fix: 'Correct it.',
    lastLines: ['no such file'],
    artifactId: null,
  });
  expect(world.ended).toEqual([jobId]);
  expect(await world.requestBuild()).not.toBe(jobId);
});

test('a build that no deploy waits for is cancelled; one that was just requested is not', async () => {
  const world = await openWorld();
  const running = await world.requestBuild({ variables: { N: '1' } });
  world.clock.advance(second);
  const wanted = await world.requestBuild({ variables: { N: '2' } });
  world.clock.advance(second);
  const queued = await world.requestBuild({ variables: { N: '3' } });
  const build = await world.start(running);
  world.clock.advance(5 * second);
  expect(await world.requestBuild({ variables: { N: '3' } })).toBe(queued);
  world.clock.advance(6 * second);
  await world.builds.keepOnly(new Set([wanted]));
  expect(await world.builds.job(running)).toMatchObject({ status: 'cancelled' });
  expect(await world.builds.job(queued)).toMatchObject({ status: 'queued' });
  expect(await world.builds.job(wanted)).toMatchObject({ status: 'running' });
  expect(world.ended).toEqual([running]);
  expect(build.signal.aborted).toBe(false);
  await world.runner.run();
  expect(build.signal.aborted).toBe(true);
  await world.runner.settled(running);
  expect(await world.builds.job(running)).toMatchObject({ status: 'cancelled' });
  // A later deploy with the same inputs gets another build.
  expect(await world.requestBuild({ variables: { N: '1' } })).not.toBe(running);
});

test('a build that is cancelled when it has just ended stays cancelled, and leaves no artifact', async () => {
  const world = await openWorld();
  const jobId = await world.requestBuild();
  const build = await world.start(jobId);
  world.clock.advance(minute);
  await world.builds.keepOnly(new Set());
  await build.make({ 'index.html': 'late' });
  await world.runner.settled();
  expect(await world.builds.job(jobId)).toMatchObject({ status: 'cancelled', artifactId: null });
  const rows = await sql`select 1 from artifacts union all select 1 from owner_blobs`.all(world.database.sql);
  expect(rows).toEqual([]);
});
