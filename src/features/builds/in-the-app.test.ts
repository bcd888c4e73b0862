import { Readable } from 'node:stream';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Harness, openHarness } from '../../../test/harness.ts';
import { day } from '../../core/clock.ts';
import { sql } from '../../platform/database/sql.ts';

let h: Harness;
beforeAll(async () => {
  h = await openHarness();
});
afterAll(() => h.close());

test('without an engine nothing is built: a request says so, and no job looks for builds', async () => {
  const { builds } = h.app.services.buildServices;
  const build = {
    image: null,
    command: null,
    directory: '.',
    output: '.',
    inputs: ['**'],
    variables: {},
    secrets: {},
    digest: '',
  };
  const wanted = {
    repositoryId: 'repo_one',
    remote: { id: 'repo_one', cloneUrl: 'https://git.example.com/a.git', credential: null },
    branch: 'main',
    sha: '1'.repeat(40),
    kind: 'static',
    build,
    variables: {},
    maySecrets: true,
    redactedSecrets: [],
  } as const;
  await expect(builds.request(wanted)).rejects.toMatchObject({ code: 'engine_unavailable', status: 503 });
  await expect(h.app.jobs.runNow('builds')).rejects.toThrow('There is no job builds.');
});

test('the jobs of the app compress artifacts, and remove those that nothing uses', async () => {
  const { read, tx } = h.app.services;
  const blob = await h.blobs.write(Readable.from([Buffer.from('hello '.repeat(200))]));
  await tx(async ({ artifacts, content }) => {
    await content.lockForPublish({ kind: 'repository', id: 'repo_one' });
    await artifacts.insert({
      id: 'art_one',
      key: { repositoryId: 'repo_one', engine: 'local', platform: 'linux-x64', digest: 'd' },
      content: { kind: 'static', manifest: new Map([['index.html', blob]]) },
      fileCount: 1,
      sizeBytes: blob.size,
      now: h.clock.now(),
    });
    await content.keep({ kind: 'repository', id: 'repo_one' }, [blob]);
  });
  await h.app.jobs.runNow('site-encodings');
  expect((await read.content.variantsOf([blob.digest])).get(blob.digest)?.length).toBe(3);
  h.clock.advance(15 * day);
  await h.app.jobs.runNow('build-cleanup');
  const rows = await sql`select 1 from artifacts union all select 1 from owner_blobs`.all(h.database.sql);
  expect(rows).toEqual([]);
});

test('repositories are no owners of sites: an administrator does not see them among those', async () => {
  const { read, tx } = h.app.services;
  await tx(({ content }) =>
    content.keep({ kind: 'repository', id: 'repo_two' }, [{ digest: 'a'.repeat(64), size: 1_000 }]),
  );
  expect(await read.oversight.storage(1, 10)).toEqual({ items: [], total: 0, bytes: 0 });
  expect(await read.content.countOwnersAbove(10)).toBe(0);
  expect(await read.content.repositoriesAbove(10)).toEqual(['repo_two']);
});
