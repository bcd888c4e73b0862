// @module-tag sql
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { hour, minute, second } from '../../../src/core/clock.ts';
import { newRepository, type TestRepository } from '../../git-repository.ts';
import { fromGithub, fromGitlab } from '../../git-webhooks.ts';
import type { CallOptions } from '../../harness.ts';
import { configurationFile, openShop, page, type Shop } from './shop.ts';

type Event = {
  readonly event: string;
  readonly reason: string | null;
  readonly outcome: string;
  readonly details: { readonly sha?: string };
};

let shop: Shop;
beforeAll(async () => {
  shop = await openShop();
});
afterAll(() => shop.close());

test('a branch is built and deployed, and its next Environment reuses the builds', async () => {
  const { data: created, status } = await shop.create({ name: 'first-shop' });
  expect(status).toBe(202);
  expect(created).toMatchObject({ uuid: 'first-shop', status: 'queued', replayed: false });

  const environment = await shop.settle(created.id);
  expect(environment).toMatchObject({
    status: 'deployed',
    statusMessage: null,
    sha: shop.repository.git('rev-parse', 'HEAD'),
    access: 'members',
    activeServiceCount: 1,
    hasReadyActiveService: true,
    createdBy: { kind: 'user', name: 'Ada' },
    services: [{ name: 'web', kind: 'static', status: 'ready', active: true, reason: null }],
  });
  expect(environment.services[0].url).toMatch(/^http:\/\/web-e[a-z2-7]{17}\.sites\.localhost:3001$/);

  const { data: builds } = await shop.call('GET', '/builds', { query: { environment: created.id } });
  expect(builds).toMatchObject([
    {
      status: 'deployed',
      trigger: 'api',
      steps: [
        { service: '', step: 'fetch', status: 'done' },
        { service: 'web', step: 'build', status: 'done', reused: false },
        { service: '', step: 'route', status: 'done' },
      ],
    },
  ]);
  const log = await shop.call('GET', `/builds/${builds[0].id}/logs`);
  expect(log.data).toMatchObject([
    {
      id: 'web.1',
      service: 'web',
      stream: 'postern',
      text: expect.stringMatching(/^Builds the repository at/),
    },
    { id: 'web.2', service: 'web', stream: 'stdout', text: 'built by the shop' },
  ]);
  const rest = await shop.call('GET', `/builds/${builds[0].id}/logs`, {
    query: { cursor: log.metadata.pagination.nextCursor },
  });
  expect(rest.data).toEqual([]);
  expect(rest.metadata.pagination.nextCursor).toBe(log.metadata.pagination.nextCursor);

  const { data: why } = await shop.call('GET', `/environments/${created.id}/why`);
  expect(why.map(({ step, ok }: { step: string; ok: boolean }) => [step, ok])).toEqual([
    ['configuration', true],
    ['fetch', true],
    ['build', true],
    ['start', true],
    ['health', true],
    ['route', true],
  ]);
  const said = (explained: { message: string }[]) => explained[2]?.message;
  expect(said(why)).toBe('1 built, 0 cached.');
  const { data: events } = await shop.call('GET', '/environments/first-shop/events');
  expect(events.map(({ event }: { event: string }) => event)).toEqual([
    'build.deployed',
    'build.created',
    'environment.created',
  ]);

  const template =
    'https://git.example.com/${environment.repository}/${environment.branch}/${environment.sha}';
  await shop.call('POST', '/config/metadata', { body: { text: 'Source', icon: 'branch', link: template } });
  const linked = await shop.call('GET', `/builds/${builds[0].id}`);
  const url = `https://git.example.com/${environment.repository}/main/${environment.sha}`;
  expect(linked.data.links).toEqual([{ text: 'Source', icon: 'branch', url }]);

  const second = await shop.create();
  await shop.settle(second.data.id);
  const again = await shop.call('GET', '/builds', { query: { environment: second.data.id } });
  expect(again.data[0].steps).toMatchObject([{}, { step: 'build', status: 'done', reused: true }, {}]);
  const { data: whyAgain } = await shop.call('GET', `/environments/${second.data.id}/why`);
  expect(said(whyAgain)).toBe('0 built, 1 cached.');
});

test('each change starts the next step: a deploy ends without the periodic rounds', async () => {
  const { app } = shop.h;
  // Everything that is due now. The clock stands still, so no round becomes due again.
  await app.jobs.tick();
  shop.repository.commit({ 'postern.yaml': configurationFile, 'index.html': page('quick') }, 'quick');
  const { data: created } = await shop.create({ branch: 'quick' });
  const statuses = new Set<string>();
  for (let ticks = 0; ticks < 50 && !statuses.has('deployed'); ticks += 1) {
    await app.jobs.tick();
    await app.services.environmentServices.reconciler.idle();
    await app.services.buildServices.buildRunner?.settled();
    statuses.add((await shop.call('GET', `/environments/${created.id}`)).data.status);
  }
  expect([...statuses].at(-1)).toBe('deployed');
});

test('the log is a stream too: it continues after an event, and ends with the build', async () => {
  const [build] = (await shop.call('GET', '/builds', { query: { environment: 'first-shop' } })).data;
  const path = `/builds/${build.id}/logs`;
  const headers = { accept: 'text/event-stream' };
  const whole = await shop.call('GET', path, { headers });
  expect(whole.headers['content-type']).toBe('text/event-stream');
  const second = /id: web\.2\ndata: \{.*"text":"built by the shop".*\}\n\n/;
  expect(whole.text).toMatch(/^id: web\.1\n/);
  expect(whole.text).toMatch(second);
  const after = await shop.call('GET', path, { headers: { ...headers, 'last-event-id': 'web.1' } });
  expect(after.text.replace(second, '')).toBe('event: end\ndata: {}\n\n');
  expect((await shop.call('GET', '/builds/bld_none/logs', { headers })).status).toBe(404);
});

describe('a failed deploy explains itself, and the version before is still served', () => {
  test('after a file with problems', async () => {
    shop.repository.commit({ 'postern.yaml': 'version: 1\nservices: {}\nserviecs: {}\n' }, 'broken');
    const { data } = await shop.create({ branch: 'broken' });
    const environment = await shop.settle(data.id);
    expect(environment).toMatchObject({ status: 'config_error' });
    const [build] = (await shop.call('GET', '/builds', { query: { environment: data.id } })).data;
    expect(build).toMatchObject({ status: 'config_error' });
    expect(build.problems).toContainEqual(expect.objectContaining({ line: 3, rule: 'unknown_field' }));
    const { data: why } = await shop.call('GET', `/environments/${data.id}/why`);
    expect(why[0]).toMatchObject({ step: 'configuration', ok: false, message: environment.statusMessage });
    expect(why[0].problems).toEqual(build.problems);
  });

  test('after a build that fails', async () => {
    shop.repository.commit({ 'postern.yaml': configurationFile, 'index.html': page('good') }, 'turns-bad');
    const { data } = await shop.create({ branch: 'turns-bad' });
    const good = await shop.settle(data.id);
    shop.repository.commit(
      { 'postern.yaml': configurationFile.replace('mkdir', 'echo no; exit 7; mkdir') },
      'turns-bad',
    );
    await shop.call('POST', `/environments/${data.id}/deploy`, { body: {} });
    const bad = await shop.settle(data.id);
    expect(bad).toMatchObject({ status: 'error', services: good.services });
    expect(bad.statusMessage).toMatch(
      /^The newest deploy failed; the previous deploy is still live\. web: The command exited with 7 after/,
    );
    const { data: why } = await shop.call('GET', `/environments/${data.id}/why`);
    expect(why[2]).toMatchObject({ step: 'build', ok: false, fix: expect.stringContaining('log') });
  });

  test('a failed deploy is a notice to the creator, once for each commit, and its outcome is an event', async () => {
    const creator = await shop.h.person('Mara');
    const as = creator;
    const good = { 'postern.yaml': configurationFile, 'index.html': page('good') };
    const first = shop.repository.commit(good, 'told');
    const { data } = await shop.create({ branch: 'told', autoTrack: true }, creator);
    await shop.settle(data.id);
    const bad = shop.repository.commit(
      { 'postern.yaml': 'version: 1\nservices: {}\nserviecs: {}\n' },
      'told',
    );
    await shop.h.app.jobs.runNow('environment-branches');
    await shop.settle(data.id);
    const [build] = (await shop.call('GET', '/builds', { query: { environment: data.id } })).data;
    expect(build).toMatchObject({ status: 'config_error', commitSubject: 'A change', isLive: false });
    await shop.call('POST', `/builds/${build.id}/retry`, { as });
    await shop.settle(data.id);
    const { data: notices } = await shop.call('GET', '/me/notices', { as });
    expect(notices).toMatchObject([
      { kind: 'environment_deploy_failed', environmentId: data.id, environmentExpiresAt: null },
    ]);
    expect(notices[0].message).toContain(
      `Postern could not deploy ${bad.slice(0, 12)} of told to the Environment “`,
    );
    expect(notices[0].message).toContain('The previous deploy is still live.');
    const { data: events } = await shop.call('GET', `/environments/${data.id}/events`, { as });
    const outcomes = events.flatMap(({ event, reason, outcome, details }: Event) =>
      /deployed|failed/.test(event) ? [[event, reason, outcome, details.sha]] : [],
    );
    expect(outcomes).toEqual([
      ['build.failed', 'config_error', 'failure', bad],
      ['build.failed', 'config_error', 'failure', bad],
      ['build.deployed', 'api', 'success', first],
    ]);
    await shop.call('DELETE', `/environments/${data.id}`, { as });
  });

  test.each([
    ['a pointer of Git LFS', 'is stored in Git LFS', 'film.mp4'],
    ['a submodule', 'is a submodule', 'module'],
  ])('with %s among the inputs of a build', async (_, words, path) => {
    const pointer = 'version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n';
    const isSubmodule = path === 'module';
    const files = isSubmodule ? {} : { [path]: pointer };
    const sha = shop.repository.commit({ 'postern.yaml': configurationFile, ...files }, path);
    if (isSubmodule) {
      shop.repository.git('update-index', '--add', '--cacheinfo', `160000,${sha},${path}`);
      shop.repository.git('commit', '--quiet', '--message', 'A submodule');
    }
    const { data } = await shop.create({ branch: path });
    const environment = await shop.settle(data.id);
    expect(environment.status).toBe('config_error');
    expect(environment.statusMessage).toContain(`web: An input of the build ${words}`);
    expect(environment.statusMessage).toContain(`The file is ${path}.`);
    const [build] = (await shop.call('GET', '/builds', { query: { environment: data.id } })).data;
    expect(build).toMatchObject({
      status: 'config_error',
      steps: [
        { step: 'fetch', status: 'done' },
        { service: 'web', step: 'build', status: 'failed' },
      ],
    });
    const { data: why } = await shop.call('GET', `/environments/${data.id}/why`);
    expect(why[0]).toMatchObject({ step: 'configuration', ok: false, message: environment.statusMessage });
    expect(why[0].fix).toContain('build.inputs');
  });

  test('after the branch was deleted', async () => {
    shop.repository.commit({ 'postern.yaml': configurationFile }, 'short-lived');
    const { data } = await shop.create({ branch: 'short-lived' });
    shop.repository.git('switch', '--quiet', 'main');
    shop.repository.git('branch', '-D', 'short-lived');
    expect(await shop.settle(data.id)).toMatchObject({
      status: 'error',
      statusMessage: 'The repository has no such branch.',
    });
  });

  test.each([
    [
      'is not registered any more',
      () => shop.call('DELETE', '/repositories/acme/leaving'),
      'The repository was removed from the registry.',
      'Register it again and create another Environment.',
    ],
    [
      'is gone from its git server',
      async (leaving: TestRepository) => leaving.remove(),
      'The git server has no such repository, or hides it from this credential.',
      'Check the clone URL, and that the credential may read the repository.',
    ],
  ])('with a repository that %s', async (_, leave, words, fix) => {
    const leaving = newRepository();
    onTestFinished(() => leaving.remove());
    leaving.commit({ 'postern.yaml': configurationFile, 'index.html': page('leaving') });
    const repository = 'acme/leaving';
    await shop.call('POST', '/repositories', { body: { fullName: repository, cloneUrl: leaving.url } });
    const { data } = await shop.create({ repository, autoTrack: false });
    const { status, services } = await shop.settle(data.id);
    expect(status).toBe('deployed');
    await leave(leaving);
    await shop.call('POST', `/environments/${data.id}/deploy`, { body: {} });
    expect(await shop.settle(data.id)).toMatchObject({
      status: 'error',
      statusMessage: `The newest deploy failed; the previous deploy is still live. ${words}`,
      services,
    });
    const [build] = (await shop.call('GET', '/builds', { query: { environment: data.id } })).data;
    expect(build).toMatchObject({ status: 'error', message: words, fix });
    await shop.call('DELETE', `/environments/${data.id}`);
    expect(await shop.settle(data.id)).toMatchObject({ status: 'torn_down' });
  });
});

const change = (id: string, body: object) => shop.call('PATCH', `/environments/${id}`, { body });

describe('a deploy', () => {
  test('that is cancelled changes nothing, and can be tried again', async () => {
    const { data } = await shop.create();
    const [build] = (await shop.call('GET', '/builds', { query: { environment: data.id } })).data;
    expect((await shop.call('POST', `/builds/${build.id}/retry`)).error.code).toBe('state_conflict');
    expect((await shop.call('POST', `/builds/${build.id}/cancel`)).status).toBe(202);
    expect((await shop.call('POST', `/builds/${build.id}/cancel`)).error.code).toBe('state_conflict');
    expect(await shop.settle(data.id)).toMatchObject({ status: 'error', services: [] });
    const again = await shop.call('POST', `/builds/${build.id}/retry`);
    expect(again.status).toBe(202);
    expect(await shop.settle(data.id)).toMatchObject({ status: 'deployed' });
    const { data: newest } = await shop.call('GET', `/builds/${again.data.id}`);
    expect(newest).toMatchObject({ trigger: 'retry', status: 'deployed' });
  });

  test('ends as superseded when a newer one is requested', async () => {
    const { data } = await shop.create();
    await shop.call('POST', `/environments/${data.id}/deploy`, { body: {} });
    await shop.settle(data.id);
    const { data: builds } = await shop.call('GET', '/builds', { query: { environment: data.id } });
    expect(builds.map(({ status }: { status: string }) => status)).toEqual(['deployed', 'superseded']);
  });

  test('waits while deploys are paused', async () => {
    const { data } = await shop.create({ deployEnabled: false });
    expect(await shop.settle(data.id)).toMatchObject({ status: 'paused', services: [] });
    const refused = await shop.call('POST', `/environments/${data.id}/deploy`, { body: {} });
    expect(refused.error.code).toBe('deploy_disabled');
    const { data: enabled } = await change(data.id, { deployEnabled: true });
    expect(enabled.statusMessage).toBe('Nothing was deployed yet.');
    await shop.call('POST', `/environments/${data.id}/deploy`, { body: {} });
    expect(await shop.settle(data.id)).toMatchObject({ status: 'deployed' });
  });

  test('that has ended shows its result again, after deploys were paused', async () => {
    const { data } = await shop.create({ name: 'resting' });
    const { status, statusMessage, services } = await shop.settle(data.id);
    const paused = await change(data.id, { deployEnabled: false });
    expect(paused.data).toMatchObject({
      status: 'paused',
      statusMessage: 'Deploys are paused. What is served stays as it is.',
      services,
    });
    expect(await shop.settle(data.id)).toMatchObject({ status: 'paused', services });
    const idsWithout = async (exclude: string) => {
      const list = await shop.call('GET', '/environments', { query: { search: 'resting', exclude } });
      return list.data.map(({ id }: { id: string }) => id);
    };
    expect(await idsWithout('paused')).toEqual([]);
    expect(await idsWithout('deployed')).toEqual([data.id]);
    expect((await change(data.id, { deployEnabled: true })).data).toMatchObject({ status, statusMessage });

    await shop.call('POST', `/environments/${data.id}/deploy`, { body: {} });
    expect((await change(data.id, { deployEnabled: false })).data).toMatchObject({
      status: 'paused',
      statusMessage: 'Deploys are paused. The newest deploy was cancelled.',
    });
    const { data: builds } = await shop.call('GET', '/builds', { query: { environment: data.id } });
    expect(builds[0]).toMatchObject({ status: 'cancelled', message: 'Deploys were paused.' });
    await shop.call('DELETE', `/environments/${data.id}`);
    expect(await shop.settle(data.id, (one) => one.status !== 'tearing_down')).toMatchObject({
      status: 'torn_down',
      statusMessage: null,
    });
  });

  test('of a commit in the past is pinned to it', async () => {
    const sha = shop.repository.git('rev-parse', 'main');
    shop.repository.commit({ 'index.html': page('newer') }, 'main');
    const { data } = await shop.create({ sha });
    expect(await shop.settle(data.id)).toMatchObject({ status: 'deployed', sha });
    const follow = await shop.call('PATCH', `/environments/${data.id}`, { body: { autoTrack: true } });
    expect(follow.error.code).toBe('auto_track_pinned_source');
  });

  test('follows the branch when asked to, once for each commit', async () => {
    const { data } = await shop.create({ autoTrack: true });
    await shop.settle(data.id);
    const sha = shop.repository.commit({ 'index.html': page('pushed') }, 'main');
    await shop.h.app.jobs.runNow('environment-branches');
    expect(await shop.settle(data.id)).toMatchObject({ status: 'deployed', sha });
    await shop.h.app.jobs.runNow('environment-branches');
    const { data: builds } = await shop.call('GET', '/builds', { query: { environment: data.id } });
    expect(builds.map(({ trigger }: { trigger: string }) => trigger)).toEqual(['push', 'api']);
    expect(builds[0].createdBy).toBeNull();
  });

  test('follows the branch as the file says, unless a caller or a commit says otherwise', async () => {
    const follows = async (body: Record<string, unknown>) => {
      const { data } = await shop.create(body);
      const { autoTrack } = await shop.settle(data.id);
      await shop.call('DELETE', `/environments/${data.id}`);
      return autoTrack;
    };
    const sha = shop.repository.git('rev-parse', 'main');
    expect(await follows({})).toBe(true);
    expect(await follows({ autoTrack: false })).toBe(false);
    expect(await follows({ sha })).toBe(false);
    const quiet = configurationFile.replace('version: 1', 'version: 1\nenvironment: { autoTrack: false }');
    shop.repository.commit({ 'postern.yaml': quiet, 'index.html': page('quiet') }, 'quiet');
    expect(await follows({ branch: 'quiet' })).toBe(false);
    expect(await follows({ branch: 'quiet', autoTrack: true })).toBe(true);
  });

  test('that fails as the first is retried at each push, until one succeeds', async () => {
    const broken = 'version: 1\nservices:\n  web: { build: { outptu: dist } }\n';
    const good = configurationFile.replace(
      'services:',
      'environment: { autoTrack: false, access: members, ttlHours: 9 }\nservices:',
    );
    const pushed = async (files: Record<string, string>) => {
      const sha = shop.repository.commit(files, 'repaired');
      await shop.h.app.jobs.runNow('environment-branches');
      return sha;
    };
    await pushed({ 'postern.yaml': broken, 'index.html': page('one') });
    const ids = [];
    for (const choice of [{}, { access: 'owner', autoTrack: false }]) {
      const { data } = await shop.create({ branch: 'repaired', ...choice });
      expect(await shop.settle(data.id)).toMatchObject({ status: 'config_error' });
      ids.push(data.id);
    }
    const chosenSha = await shop.create({
      branch: 'repaired',
      sha: shop.repository.git('rev-parse', 'repaired'),
    });
    await shop.settle(chosenSha.data.id);
    const sha = await pushed({ 'postern.yaml': good });
    const [byFile, chosen] = [await shop.settle(ids[0]), await shop.settle(ids[1])];
    expect(byFile).toMatchObject({ status: 'deployed', sha, access: 'members', autoTrack: false });
    expect(Date.parse(byFile.expiresAt) - Date.parse(byFile.createdAt)).toBe(9 * hour);
    expect(chosen).toMatchObject({ status: 'deployed', sha, access: 'owner', autoTrack: false });
    await pushed({ 'index.html': page('two') });
    for (const id of ids) expect(await shop.settle(id)).toMatchObject({ status: 'deployed', sha });
    expect(await shop.settle(chosenSha.data.id)).toMatchObject({ status: 'config_error' });
  });

  test('follows a branch that was moved back to an earlier commit', async () => {
    const first = shop.repository.commit(
      { 'postern.yaml': configurationFile, 'index.html': page('one') },
      'moved',
    );
    const { data } = await shop.create({ branch: 'moved', autoTrack: true });
    await shop.settle(data.id);
    const second = shop.repository.commit({ 'index.html': page('two') }, 'moved');
    await shop.h.app.jobs.runNow('environment-branches');
    expect(await shop.settle(data.id)).toMatchObject({ sha: second });
    shop.repository.git('reset', '--quiet', '--hard', first);
    await shop.h.app.jobs.runNow('environment-branches');
    expect(await shop.settle(data.id)).toMatchObject({ status: 'deployed', sha: first });
    await shop.call('DELETE', `/environments/${data.id}`);
  });

  test('of a push is not lost when the access changes during it', async () => {
    shop.repository.commit({ 'postern.yaml': configurationFile, 'index.html': page('one') }, 'contested');
    const { data } = await shop.create({ branch: 'contested', autoTrack: true, access: 'owner' });
    await shop.settle(data.id);
    const pushed = shop.repository.commit({ 'index.html': page('two') }, 'contested');
    await shop.h.app.jobs.runNow('environment-branches');
    await shop.call('PATCH', `/environments/${data.id}`, { body: { access: 'members' } });
    expect(await shop.settle(data.id)).toMatchObject({ status: 'deployed', access: 'members', sha: pushed });
    await shop.call('DELETE', `/environments/${data.id}`);
  });

  test('begins at most 65 seconds after a push, even without a webhook', async () => {
    const { app, clock } = shop.h;
    const { data } = await shop.create({ autoTrack: true });
    await shop.settle(data.id);
    // The worker asks the git server, and the push comes right after it.
    await app.jobs.tick();
    const pushedAt = clock.now();
    const sha = shop.repository.commit({ 'index.html': page('pushed later') }, 'main');
    clock.advance(minute);
    for (let ticks = 0; ticks < 3; ticks += 1) {
      await app.jobs.tick();
      await app.services.environmentServices.reconciler.idle();
    }
    const { data: builds } = await shop.call('GET', '/builds', { query: { environment: data.id } });
    expect(builds[0]).toMatchObject({ trigger: 'push', sha });
    expect(Date.parse(builds[0].startedAt) - pushedAt).toBeLessThanOrEqual(65 * second);
  });
});

describe('after a webhook, an Environment that follows its branch', () => {
  let secret: string;
  let path: string;
  beforeAll(async () => {
    const { data } = await shop.call('POST', '/repositories/acme/shop/webhook');
    secret = data.secret;
    path = new URL(data.url).pathname;
  });
  const send = (options: CallOptions) => shop.h.call('POST', path, options);
  /** The worker at this moment: no clock moves, so nothing periodic becomes due. */
  async function work(): Promise<void> {
    const { jobs, services } = shop.h.app;
    for (let ticks = 0; ticks < 3; ticks += 1) {
      await jobs.tick();
      await services.environmentServices.tracking.idle();
      await services.environmentServices.reconciler.idle();
    }
  }
  const buildsOf = async (id: string) =>
    (await shop.call('GET', '/builds', { query: { environment: id } })).data as {
      trigger: string;
      sha: string;
      startedAt: string;
    }[];
  async function following(): Promise<string> {
    const { data } = await shop.create({ autoTrack: true });
    await shop.settle(data.id);
    await work();
    return data.id;
  }

  test.each([
    ['GitHub', fromGithub],
    ['GitLab', fromGitlab],
  ] as const)(
    'SC-08 of %s begins to deploy at once, at the commit that git has',
    async (provider, webhook) => {
      const id = await following();
      const sha = shop.repository.commit({ 'index.html': page(`pushed to ${provider}`) }, 'main');
      await work();
      expect(await buildsOf(id)).toHaveLength(1);
      const pushedAt = shop.h.clock.now();
      expect((await send(webhook(secret))).status).toBe(202);
      await work();
      const [build] = await buildsOf(id);
      expect(build).toMatchObject({ trigger: 'push', sha });
      expect(Date.parse(build?.startedAt ?? '')).toBe(pushedAt);
      // Nothing is new, and nothing that the payload says counts.
      expect((await send(webhook(secret))).status).toBe(202);
      await work();
      expect(await buildsOf(id)).toHaveLength(2);
    },
  );

  test('is not deployed while Environments are switched off', async () => {
    const id = await following();
    shop.repository.commit({ 'index.html': page('pushed in vain') }, 'main');
    await shop.change({ enabled: false });
    expect((await send(fromGithub(secret))).status).toBe(202);
    await work();
    await shop.change({});
    expect(await buildsOf(id)).toHaveLength(1);
  });
});

test('a teardown ends everything, and a second request changes nothing', async () => {
  const { data } = await shop.create({ name: 'going' });
  await shop.settle(data.id);
  const removed = await shop.call('DELETE', '/environments/going');
  expect(removed).toMatchObject({ status: 202, data: { uuid: 'going', status: 'tearing_down_queued' } });
  expect((await shop.call('DELETE', `/environments/${data.id}`)).status).toBe(202);
  for (const [method, path] of [
    ['POST', 'deploy'],
    ['POST', 'extend'],
  ] as const) {
    const late = await shop.call(method, `/environments/${data.id}/${path}`, { body: {} });
    expect(late.error.code).toBe('env_tearing_down');
  }
  expect(await shop.settle(data.id)).toMatchObject({ status: 'torn_down', services: [] });
  const { data: events } = await shop.call('GET', `/environments/${data.id}/events`);
  expect(events.filter(({ event }: { event: string }) => event === 'environment.torn_down')).toHaveLength(1);
});

test('a repeated request with the same key creates nothing; another body with it is refused', async () => {
  const first = await shop.create({ idempotencyKey: 'once' });
  const again = await shop.create({ idempotencyKey: 'once' });
  expect([first.status, again.status]).toEqual([202, 200]);
  expect(again.data).toMatchObject({ id: first.data.id, replayed: true });
  const other = await shop.create({ idempotencyKey: 'once', ttlHours: 3 });
  expect(other.error.code).toBe('idempotency_conflict');
  // The key of one creator is nothing to another.
  const ofAnother = await shop.create({ idempotencyKey: 'once', ttlHours: 3 }, await shop.h.person('Ben'));
  expect([ofAnother.status, ofAnother.data.replayed]).toEqual([202, false]);
});

test('bodies that differ only in the order of variables are the same', async () => {
  const [env, initEnv] = [
    { A: '1', B: '2' },
    { C: '3', D: '4' },
  ];
  const reversed = (map: object) => Object.fromEntries(Object.entries(map).toReversed());
  const first = await shop.create({ idempotencyKey: 'ordered', env, initEnv });
  const again = await shop.create({
    idempotencyKey: 'ordered',
    env: reversed(env),
    initEnv: reversed(initEnv),
  });
  expect([again.status, again.data.id]).toEqual([200, first.data.id]);
  for (const other of [
    { env: { A: '1' }, initEnv },
    { env: initEnv, initEnv: env },
  ]) {
    const refused = await shop.create({ idempotencyKey: 'ordered', ...other });
    expect(refused.error.code).toBe('idempotency_conflict');
  }
});

test('two requests at once with the same key at the last place of the quota create one Environment', async () => {
  const dora = await shop.h.person('Dora');
  await shop.change({ maxPerOwner: 1 });
  const create = () => shop.create({ idempotencyKey: 'at-once' }, dora);
  const [one, other] = await Promise.all([create(), create()]);
  await shop.change({});
  expect(new Set([one.status, other.status])).toEqual(new Set([200, 202]));
  expect(one.data.id).toBe(other.data.id);
});

test('variables cannot be chosen for an Environment that uses stored secrets', async () => {
  const text = `${configurationFile}  api:
    build: { image: 'node:24' }
    run: { command: node server.js, port: 80 }
    secrets: { TOKEN: api-token }
`;
  shop.repository.commit({ 'postern.yaml': text }, 'with-secrets');
  const { data } = await shop.create({ branch: 'with-secrets', env: { NODE_OPTIONS: '--require=/x' } });
  expect(await shop.settle(data.id)).toMatchObject({
    status: 'config_error',
    statusMessage:
      'api uses stored secrets, so nobody can choose variables or URLs for this Environment (NODE_OPTIONS).',
  });
});

describe('the lease', () => {
  test('is extended within the maximum, and a lower maximum never shortens it', async () => {
    const { data } = await shop.create({ ttlHours: 10 });
    const { data: extended } = await shop.call('POST', `/environments/${data.id}/extend`, {
      body: { hours: 5 },
    });
    expect(Date.parse(extended.expiresAt)).toBe(shop.h.clock.now() + 15 * hour);
    await shop.change({ maxTtlHours: 12, defaultTtlHours: 12, extensionHours: 12 });
    const { data: same } = await shop.call('POST', `/environments/${data.id}/extend`, { body: {} });
    expect(same.expiresAt).toBe(extended.expiresAt);
    const long = await shop.call('POST', `/environments/${data.id}/extend`, { body: { hours: 13 } });
    expect(long.error).toMatchObject({ code: 'lifetime_too_long', details: { maxTtlHours: 12 } });
    await shop.change({});
  });

  test('of the file applies when the request has none', async () => {
    const text = configurationFile.replace(
      'services:',
      'environment: { ttlHours: 7, access: owner }\nservices:',
    );
    shop.repository.commit({ 'postern.yaml': text, 'index.html': page('short') }, 'with-lease');
    const { data } = await shop.create({ branch: 'with-lease' });
    // The file has not been read yet.
    const { data: unread } = await shop.call('GET', `/environments/${data.id}`);
    expect([unread.expiresAt, unread.autoTrack]).toEqual([data.expiresAt, true]);
    const environment = await shop.settle(data.id);
    expect(Date.parse(environment.expiresAt) - Date.parse(environment.createdAt)).toBe(7 * hour);
    expect(environment.access).toBe('owner');

    const withAccess = await shop.create({ branch: 'with-lease', access: 'members' });
    const { access, expiresAt, createdAt } = await shop.settle(withAccess.data.id);
    expect([access, Date.parse(expiresAt) - Date.parse(createdAt)]).toEqual(['members', 7 * hour]);

    const extended = await shop.create({ branch: 'with-lease' });
    const { data: longer } = await shop.call('POST', `/environments/${extended.data.id}/extend`, {
      body: { hours: 5 },
    });
    expect(await shop.settle(extended.data.id)).toMatchObject({
      access: 'owner',
      expiresAt: longer.expiresAt,
    });
  });

  test('of the file does not end an Environment whose first deploy comes later', async () => {
    const text = configurationFile.replace('services:', 'environment: { ttlHours: 1 }\nservices:');
    shop.repository.commit({ 'postern.yaml': text, 'index.html': page('late') }, 'late');
    const { data } = await shop.create({ branch: 'late', deployEnabled: false });
    const { data: before } = await shop.call('GET', `/environments/${data.id}`);
    shop.h.clock.advance(hour + 1);
    await change(data.id, { deployEnabled: true });
    await shop.call('POST', `/environments/${data.id}/deploy`, { body: {} });
    const { status, expiresAt } = await shop.settle(data.id);
    expect([status, expiresAt]).toEqual(['deployed', before.expiresAt]);
  });

  test('ends with a teardown; the name is free, and the id answers for 30 days', async () => {
    const { data } = await shop.create({ name: 'leased', ttlHours: 1 });
    await shop.settle(data.id);
    shop.h.clock.advance(hour + 1);
    expect(await shop.settle(data.id)).toMatchObject({ status: 'torn_down', services: [] });
    expect((await shop.call('GET', '/environments/leased')).error.code).toBe('env_not_found');
    const { data: events } = await shop.call('GET', `/environments/${data.id}/events`);
    expect(events[0]).toMatchObject({
      event: 'environment.torn_down',
      reason: 'expired',
      actor: { kind: 'system' },
    });
    expect((await shop.create({ name: 'leased' })).status).toBe(202);
    shop.h.clock.advance(30 * 24 * hour + 1);
    await shop.h.app.jobs.runNow('environment-prune');
    const ada = await shop.signIn();
    expect((await shop.call('GET', `/environments/${data.id}`, { as: ada })).status).toBe(404);
  });

  test('notifies the creator a day and an hour before its end, and at the end; again after an extension', async () => {
    const creator = await shop.h.person('Noor');
    const heard = async () => {
      await shop.h.app.jobs.runNow('environment-notices');
      const recipient = { kind: 'user', userId: creator.user.id } as const;
      const found = await shop.h.app.services.read.notices.list(recipient, { page: 1, limit: 100 });
      return found.notices.map(({ kind }) => kind);
    };
    const { data } = await shop.create({ name: 'announced', ttlHours: 26 }, creator);
    // The creator of a lease shorter than a day knew its end from the start.
    await shop.create({ ttlHours: 23 }, creator);
    expect(await heard()).toEqual([]);
    shop.h.clock.advance(3 * hour);
    expect(await heard()).toEqual(['environment_expires_1d']);
    await shop.call('POST', `/environments/${data.id}/extend`, { as: creator, body: { hours: 2 } });
    expect(await heard()).toEqual(['environment_expires_1d']);
    shop.h.clock.advance(2 * hour);
    expect(await heard()).toEqual(['environment_expires_1d', 'environment_expires_1d']);
    shop.h.clock.advance(22 * hour + hour / 2);
    const [last, ...earlier] = await heard();
    expect(last).toBe('environment_expires_1h');
    shop.h.clock.advance(hour);
    await shop.h.app.jobs.runNow('environments');
    await shop.h.app.services.environmentServices.reconciler.idle();
    expect(earlier).not.toContain('environment_expired');
    expect((await heard()).filter((kind) => kind === 'environment_expired')).toHaveLength(2);
  });
});
