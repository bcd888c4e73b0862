import { expect, test } from 'vitest';
import { format as keys, openWorld, type World } from '../../../test/environments/builds-world.ts';
import { day, hour, minute } from '../../core/clock.ts';
import { systemRandom } from '../../core/ids.ts';
import { sql } from '../../platform/database/sql.ts';
import { createEncoder } from '../sites/lifecycle/encode.ts';
import { artifactsToEncode } from './artifacts-to-encode.ts';

type Files = Readonly<Record<string, string | Buffer>>;

/** Builds these files. Returns the result. */
async function build(world: World, files: Files, wanted: Parameters<World['request']>[0] = {}) {
  const jobId = await world.requestBuild(wanted);
  await (await world.start(jobId)).make(files);
  await world.runner.settled();
  return { jobId, ...(await world.builds.job(jobId)) };
}

async function artifact(world: World, files: Files, wanted: Parameters<World['request']>[0] = {}) {
  const { artifactId, message } = await build(world, files, wanted);
  if (artifactId === null || artifactId === undefined) throw new Error(`Not built: ${message}`);
  return artifactId;
}

async function stored({ blobs }: World) {
  const found: string[] = [];
  for await (const { digest } of blobs.list()) found.push(digest);
  return found.toSorted();
}

const kept = ({ database }: World) =>
  sql<{ owner: string; digest: string; runs: number }>`
    select owner_kind || ':' || owner_id as owner, digest, runs from owner_blobs order by owner, digest`.all(
    database.sql,
  );

test('a process keeps its output as one tar, whatever a site may not have', async () => {
  const world = await openWorld();
  const files = { 'server.js': 'x', 'node_modules/.bin/a.exe': 'y', '.env': 'z' };
  await artifact(world, files, { kind: 'process' });
  const rows = await sql<{ tarDigest: string }>`
    select kind, manifest, tar_digest, file_count, size_bytes::int from artifacts`.all(world.database.sql);
  expect(rows).toMatchObject([{ kind: 'process', manifest: null, fileCount: 3, sizeBytes: 3 }]);
  expect(await kept(world)).toEqual([{ owner: 'repository:repo_one', digest: rows[0]?.tarDigest, runs: 1 }]);
});

test('static files are kept one by one, under their own names, also when all are in one folder', async () => {
  const world = await openWorld();
  const id = await artifact(world, { 'app/index.html': 'a', 'app/b.js': 'b' });
  expect([...((await world.read.artifacts.manifest(id)) ?? []).keys()]).toEqual([
    'app/b.js',
    'app/index.html',
  ]);
  const rows = await sql`select kind, tar_digest, file_count, size_bytes::int from artifacts`.all(
    world.database.sql,
  );
  expect(rows).toEqual([{ kind: 'static', tarDigest: null, fileCount: 2, sizeBytes: 2 }]);
  // The tar is not needed any more.
  await world.cleanSites();
  expect((await stored(world)).length).toBe(2);
});

test.each([
  [{ 'a/.env': 'x' }, '.env usually contains secrets', 'Correct the files'],
  [{ 'a\\b.txt': 'x' }, 'a\\b.txt ', 'Correct the files'],
  [{}, 'The output contains no files.', 'set build.output'],
])('output that cannot be served fails with a message: %o', async (files, words, fix) => {
  const world = await openWorld();
  const state = await build(world, files);
  expect(state).toMatchObject({ status: 'failed', artifactId: null });
  expect(state.message).toContain('The output cannot be served as static files.');
  expect(state.message).toContain(words);
  expect(state.fix).toContain(fix);
  expect((await world.textOf(state.jobId)).some((line) => line.includes(words))).toBe(true);
  expect(await kept(world)).toEqual([]);
});

test('rules of another host in the output are named in the log, and the build succeeds', async () => {
  const world = await openWorld();
  const files = {
    'index.html': '',
    _redirects: '/* /index.html 200\n/a https://b.example\n',
    _headers: '/*\n  Cache-Control: x\n',
  };
  const state = await build(world, files);
  expect(state).toMatchObject({ status: 'built' });
  const lines = await world.textOf(state.jobId);
  expect(lines.filter((line) => line.includes(' is not applied'))).toEqual([
    expect.stringContaining('Line 2 of _redirects is not applied'),
    expect.stringContaining('Line 2 of _headers is not applied'),
  ]);
});

test('a key in the output is reported, and fails the build; no message repeats it', async () => {
  const world = await openWorld();
  const { value } = keys.generate('personal', systemRandom);
  const state = await build(world, { 'index.html': '<p>', 'app.js': `const key = "${value}";` });
  expect(state).toMatchObject({ status: 'failed', fix: 'Revoke the key, and remove it from the files.' });
  expect(state.message).toContain('app.js contains an API key');
  expect(world.shared.exposed).toEqual([value]);
  expect(JSON.stringify([state, await world.textOf(state.jobId), world.shared.logged])).not.toContain(value);
});

test.each([
  ['the tar of a process', 'process', 'tar'],
  ['the tar of static files', 'static', 'tar'],
  ['the files of a static service', 'static', 'files'],
] as const)(
  'the clean-up of Sites removes %s before they are kept: the build runs again',
  async (_, kind, what) => {
    const world = await openWorld();
    const jobId = await world.requestBuild({ kind });
    const first = await world.start(jobId);
    const { batch } = world.blobs;
    if (what === 'files')
      world.blobs.batch = () => {
        const files = batch();
        return { ...files, flush: () => files.flush().then(world.cleanSites) };
      };
    await first.make({ 'index.html': kind }, what === 'tar' ? world.cleanSites : undefined);
    await world.runner.settled();
    world.blobs.batch = batch;
    expect(await world.builds.job(jobId)).toMatchObject({ status: 'queued', artifactId: null });
    expect(await kept(world)).toEqual([]);
    world.clock.advance(minute);
    await (await world.start(jobId)).make({ 'index.html': kind });
    await world.runner.settled();
    expect(await world.builds.job(jobId)).toMatchObject({ status: 'built' });
    await world.cleanSites();
    const left = await kept(world);
    expect(left.length).toBe(1);
    expect(await world.blobs.has(left[0]?.digest ?? '')).toBe(true);
  },
);

test('the clean-up of Sites leaves what artifacts keep', async () => {
  const world = await openWorld();
  await artifact(world, { 'index.html': 'a' });
  await artifact(world, { 'index.html': 'b' }, { kind: 'process', variables: { N: '2' } });
  await world.cleanSites();
  for (const { digest } of await kept(world)) expect(await world.blobs.has(digest)).toBe(true);
  expect((await stored(world)).length).toBe(2);
});

test('an artifact that nothing uses goes after 14 days, and with it the bytes that only it had', async () => {
  const world = await openWorld();
  const old = await artifact(world, { 'a.txt': 'shared', 'b.txt': 'only here' });
  world.clock.advance(13 * day);
  const young = await artifact(world, { 'a.txt': 'shared' }, { variables: { N: '2' } });
  await world.buildCleanup.run();
  expect(await world.read.artifacts.manifest(old)).toBeDefined();
  world.clock.advance(day + minute);
  await world.buildCleanup.run();
  expect(await world.read.artifacts.manifest(old)).toBeUndefined();
  expect(await world.read.artifacts.manifest(young)).toBeDefined();
  expect((await kept(world)).map(({ runs }) => runs)).toEqual([1]);
  await world.cleanSites();
  expect((await stored(world)).length).toBe(1);
  expect((await world.request()).kind).toBe('building');
});

test('a request is a use: what is asked for again stays', async () => {
  const world = await openWorld();
  const id = await artifact(world, { 'a.txt': 'a' });
  world.clock.advance(13 * day);
  await world.request();
  world.clock.advance(2 * day);
  await world.buildCleanup.run();
  expect(await world.request()).toEqual({ kind: 'built', artifactId: id });
});

test('what a living Environment or a deploy under way uses stays, and 14 days after', async () => {
  const world = await openWorld();
  const served = await artifact(world, { 'a.txt': 'a' }, { variables: { N: '1' } });
  const deployed = await artifact(world, { 'a.txt': 'b' }, { variables: { N: '2' } });
  const gone = await artifact(world, { 'a.txt': 'c' }, { variables: { N: '3' } });
  await insertEnvironment(world, 'env_one', { served });
  await insertEnvironment(world, 'env_two', { deployed });
  const left = async () => {
    const rows = await sql<{ id: string }>`select id from artifacts`.all(world.database.sql);
    return rows.map(({ id }) => id).toSorted();
  };
  world.clock.advance(30 * day);
  await world.buildCleanup.run();
  expect(await left()).toEqual([served, deployed].toSorted());
  expect(await left()).not.toContain(gone);
  await sql`update environments set status = 'torn_down'`.run(world.database.sql);
  await sql`update deploys set ended_at = now()`.run(world.database.sql);
  world.clock.advance(13 * day);
  await world.buildCleanup.run();
  expect(await left()).toEqual([served, deployed].toSorted());
  world.clock.advance(2 * day);
  await world.buildCleanup.run();
  expect(await left()).toEqual([]);
});

test('over the maximum of a repository, the longest unused go first, and none that is new or used', async () => {
  const world = await openWorld();
  world.shared.policy = { ...world.shared.policy, artifactBytesPerRepository: 25 };
  const made: string[] = [];
  for (const N of ['0', '1', '2', '3']) {
    made.push(await artifact(world, { 'a.txt': N.repeat(10) }, { variables: { N } }));
    world.clock.advance(2 * hour);
  }
  const other = await artifact(world, { 'a.txt': 'x'.repeat(20) }, { repositoryId: 'repo_two' });
  await insertEnvironment(world, 'env_one', { served: made[0] ?? '' });
  const young = await artifact(world, { 'a.txt': 'y'.repeat(10) }, { variables: { N: '4' } });
  await world.buildCleanup.run();
  const rows = await sql<{ id: string }>`select id from artifacts`.all(world.database.sql);
  expect(new Set(rows.map(({ id }) => id))).toEqual(new Set([made[0], young, other]));
});

test('builds that ended go after 30 days, with their logs', async () => {
  const world = await openWorld();
  const { jobId } = await build(world, { 'a.txt': 'a' });
  expect((await world.textOf(jobId)).length).toBeGreaterThan(0);
  world.clock.advance(29 * day);
  await world.request();
  await world.buildCleanup.run();
  expect(await world.builds.job(jobId)).toBeDefined();
  const waiting = await world.requestBuild({ variables: { N: '2' } });
  world.clock.advance(2 * day);
  await world.buildCleanup.run();
  expect(await world.builds.job(jobId)).toBeUndefined();
  expect(await world.textOf(jobId)).toEqual([]);
  expect(await world.builds.job(waiting)).toBeDefined();
});

test('static files get their compressed forms, and the change of the Environments that serve them is published', async () => {
  const world = await openWorld();
  const page = '<p>hello</p>'.repeat(100);
  const first = await artifact(world, { 'index.html': page });
  await artifact(world, { 'server.js': page }, { kind: 'process', variables: { N: '2' } });
  await insertEnvironment(world, 'env_one', { served: first });
  const asked: string[] = [];
  const { read, tx, clock, blobs } = world;
  const encoder = createEncoder({
    queues: [artifactsToEncode({ read, tx, clock })],
    tx,
    blobs: {
      write: blobs.write,
      read(digest) {
        asked.push(digest);
        return blobs.read(digest);
      },
    },
    clock,
    log: { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined },
  });
  await encoder.run();
  const digest = (await read.artifacts.manifest(first))?.get('index.html')?.digest ?? '';
  expect((await read.content.variantsOf([digest])).get(digest)?.length).toBe(3);
  const published = sql`select topic, subject from changes where topic = 'environment'`;
  expect(await published.all(world.database.sql)).toEqual([{ topic: 'environment', subject: 'env_one' }]);
  expect(await read.artifacts.waitingForForms([], 10)).toEqual([]);
  // Content of an earlier artifact of the repository is not compressed again.
  clock.advance(minute);
  await artifact(world, { 'index.html': page, 'b.css': page }, { variables: { N: '3' } });
  await artifact(world, { 'b.css': page }, { variables: { N: '4' } });
  asked.length = 0;
  await encoder.run();
  await encoder.run();
  expect(asked).toEqual([]);
  // The compressed forms stay as long as the artifact.
  await world.cleanSites();
  expect((await read.content.variantsOf([digest])).get(digest)?.length).toBe(3);
});

/** Inserts the rows that deploys of an Environment leave. */
async function insertEnvironment(
  { database }: World,
  id: string,
  { served, deployed }: { served?: string; deployed?: string },
) {
  await sql`
    insert into environments (id, uuid, repository_id, repository, branch, creator_kind, creator_id, trigger, access, label,
      services, env, init_env, deploy_enabled, auto_track, track_default_branches, status, created_at, updated_at, expires_at)
    values (${id}, ${id}, 'repo_one', 'a/b', 'main', 'user', 'usr_1', 'api', 'members', ${id}, '[]', '{}', '{}', true, true,
      false, 'deployed', now(), now(), now())`.run(database.sql);
  if (served !== undefined)
    await sql`
      insert into environment_services (environment_id, name, position, kind, status, is_exposed, routes, spa, artifact_id)
      values (${id}, 'web', 0, 'static', 'ready', true, '{}', false, ${served})`.run(database.sql);
  if (deployed !== undefined) {
    await sql`
      insert into deploys (id, environment_id, repository_id, branch, trigger, status, creator_kind, created_at)
      values (${`bld_${id}`}, ${id}, 'repo_one', 'main', 'api', 'deploying', 'user', now())`.run(
      database.sql,
    );
    await sql`
      insert into deploy_steps (deploy_id, service, step, status, artifact_id)
      values (${`bld_${id}`}, 'web', 'build', 'done', ${deployed})`.run(database.sql);
  }
}
