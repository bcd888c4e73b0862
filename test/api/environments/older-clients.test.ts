import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Person, TestKey } from '../../harness.ts';
import { configurationFile, openShop, page, type Shop } from './shop.ts';

/** Clients of the older system, which know Environments as builds and their services as deploys. */
let shop: Shop;
let ben: Person;
let reader: TestKey;
let writer: TestKey;
beforeAll(async () => {
  shop = await openShop();
  ben = await shop.h.person('Ben');
  reader = await shop.h.serviceKey({ scopes: ['env:read'] });
  writer = await shop.h.serviceKey({ scopes: ['env:write'] });
});
afterAll(() => shop.close());

const built = (command: string) => configurationFile.replace('mkdir', `${command}; mkdir`);

/** Its name and id, deployed. */
async function deployed(name: string, more: Record<string, unknown> = {}) {
  const { data } = await shop.create({ name, access: 'members', ...more });
  await shop.settle(data.id);
  return data as { readonly id: string; readonly uuid: string };
}

test('an older client creates, polls, reads the builds, deploys again and destroys', async () => {
  await shop.h.app.web.listen({ host: '127.0.0.1', port: 0 });
  const { port } = shop.h.app.web.server.address() as AddressInfo;
  async function send(method: string, path: string, body?: object) {
    const headers = {
      host: 'localhost:3000',
      authorization: `Bearer ${writer.value}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    };
    const sent = request({ host: '127.0.0.1', port, method, path: `/api/v2${path}`, agent: false, headers });
    sent.end(body && JSON.stringify(body));
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    // oxlint-disable-next-line typescript/no-explicit-any
    const { data, error } = (await json(answer)) as any;
    return { status: answer.statusCode, data, error };
  }
  /** Polls while the worker deploys, until a terminal status. */
  async function poll(id: string) {
    const seen = new Set<string>();
    for (;;) {
      const { data } = await send('GET', '/builds/legacy');
      seen.add(data.status);
      if (['deployed', 'error', 'config_error'].includes(data.status))
        return { build: data, seen: [...seen] };
      await shop.settle(id, () => true);
    }
  }

  const created = await send('POST', '/environments', {
    repository: 'acme/shop',
    branch: 'main',
    name: 'legacy',
  });
  expect(created).toMatchObject({ status: 202, data: { uuid: 'legacy', status: 'queued' } });
  const { id } = created.data;
  const { build, seen } = await poll(id);
  expect(seen[0]).toBe('queued');
  const { data: environment } = await shop.call('GET', `/environments/${id}`);
  const sha = shop.repository.git('rev-parse', 'HEAD');
  const [{ url }] = environment.services;
  const times = { createdAt: environment.createdAt, updatedAt: environment.updatedAt };
  expect(build).toEqual({
    id,
    uuid: 'legacy',
    status: 'deployed',
    statusMessage: null,
    sha,
    manifest: '',
    kind: 'environment',
    namespace: '',
    isStatic: false,
    pullRequest: null,
    ...times,
    deploys: [
      {
        uuid: 'web-legacy',
        status: 'ready',
        statusMessage: '',
        active: true,
        branchName: 'main',
        sha,
        publicUrl: new URL(url).host,
        publicHref: url,
        dockerImage: '',
        initDockerImage: '',
        buildLogs: '',
        deployPipelineId: '',
        devMode: false,
        ...times,
        deployable: {
          name: 'web',
          type: 'github',
          dockerfilePath: '',
          requires: [],
          deploymentDependsOn: [],
          builder: {},
          ecr: '',
        },
        repository: { fullName: 'acme/shop' },
      },
    ],
  });

  const jobs = await send('GET', '/builds/legacy/services/web/build-jobs');
  const [first] = (await shop.call('GET', '/builds', { query: { environment: id } })).data;
  expect(jobs.data.builds).toEqual([
    {
      jobName: first.id,
      buildUuid: 'legacy',
      sha,
      status: 'Complete',
      startedAt: first.steps[1].startedAt,
      completedAt: first.steps[1].endedAt,
      duration: 0,
      engine: 'unknown',
      source: 'archived',
    },
  ]);
  const log = await send('GET', `/builds/legacy/services/web/build-jobs/${jobs.data.builds[0].jobName}`);
  expect(log.data).toEqual({
    status: 'Archived',
    streamingRequired: false,
    archivedLogs: expect.stringMatching(/^Builds the repository at .*\nbuilt by the shop\n$/),
  });

  expect(await send('PUT', '/builds/legacy/redeploy')).toMatchObject({
    status: 200,
    data: { status: 'success', message: expect.stringMatching(/^The deploy bld_\w+ is queued\.$/) },
  });
  expect((await poll(id)).build.status).toBe('deployed');
  // Nothing changed, so nothing was built.
  expect((await send('GET', '/builds/legacy/services/web/build-jobs')).data).toEqual(jobs.data);

  expect(await send('PUT', '/builds/legacy/destroy', {})).toMatchObject({
    status: 200,
    data: { status: 'success', message: 'The teardown of legacy is queued.' },
  });
  expect((await send('GET', '/builds/legacy')).data.status).toBe('tearing_down');
  await shop.settle(id);
  expect(await send('GET', '/builds/legacy')).toMatchObject({
    status: 404,
    error: { code: 'env_not_found' },
  });
  expect((await send('GET', `/builds/${id}`)).data).toMatchObject({ status: 'torn_down', deploys: [] });
});

const reads = ['', '/metadata', '/services/web/build-jobs'];
const writes = [
  ['PATCH', '', { trackDefaultBranches: true }],
  ['PATCH', '/services', { serviceOverrides: [{ name: 'web', active: true }] }],
  ['PUT', '/redeploy', undefined],
  ['PUT', '/destroy', undefined],
] as const;

describe('an older client has the rights of the Environment', () => {
  test('SC-01 SC-02 reading needs env:read, and changing env:write', async () => {
    // The new commit needs a build: a reused result has none.
    const files = { 'postern.yaml': built('echo scoped'), 'index.html': page('scoped') };
    shop.repository.commit(files, 'scoped');
    const { id, uuid } = await deployed('scoped', { branch: 'scoped' });
    const [build] = (await shop.call('GET', '/builds', { query: { environment: id } })).data;
    const without = await shop.h.serviceKey({ scopes: ['repos:write', 'sites:write'] });
    for (const path of [...reads, `/services/web/build-jobs/${build.id}`]) {
      for (const key of [reader, writer])
        expect([path, (await shop.call('GET', `/builds/${uuid}${path}`, { as: key })).status]).toEqual([
          path,
          200,
        ]);
      const refused = await shop.call('GET', `/builds/${uuid}${path}`, { as: without });
      expect([path, refused.status, refused.error.code]).toEqual([path, 403, 'forbidden_scope']);
    }
    for (const [method, path, body] of writes) {
      for (const key of [reader, without]) {
        const refused = await shop.call(method, `/builds/${uuid}${path}`, { as: key, body });
        expect([path, refused.status, refused.error.code]).toEqual([path, 403, 'forbidden_scope']);
      }
      expect([
        path,
        (await shop.call(method, `/builds/${uuid}${path}`, { as: writer, body })).status,
      ]).toEqual([path, 200]);
    }
  });

  test('an unknown name is 404, and so is the name of a torn-down Environment', async () => {
    const { id, uuid } = await deployed('soon-gone');
    await shop.call('PUT', `/builds/${uuid}/destroy`);
    const ending = await shop.call('PUT', `/builds/${uuid}/redeploy`);
    expect([ending.status, ending.error.code]).toEqual([409, 'env_tearing_down']);
    await shop.settle(id);
    for (const name of ['never-was', uuid]) {
      for (const path of [...reads, '/services/web/build-jobs/bld_none']) {
        const answer = await shop.call('GET', `/builds/${name}${path}`);
        expect([path, answer.status, answer.error.code]).toEqual([path, 404, 'env_not_found']);
      }
      for (const [method, path, body] of writes) {
        const answer = await shop.call(method, `/builds/${name}${path}`, { body });
        expect([path, answer.status, answer.error.code]).toEqual([path, 404, 'env_not_found']);
      }
    }
    // By its id it is readable for 30 days.
    for (const path of reads) expect((await shop.call('GET', `/builds/${id}${path}`)).status).toBe(200);
    for (const [method, path, body] of writes) {
      const answer = await shop.call(method, `/builds/${id}${path}`, { body });
      expect([path, answer.status]).toEqual([path, path === '/destroy' ? 200 : 409]);
    }
  });

  test('an Environment for its owner only does not exist for other people, and an administrator sees its row', async () => {
    // This one has its own build.
    shop.repository.commit({ 'postern.yaml': configurationFile, 'index.html': page('of Ben') }, 'of-ben');
    const { data } = await shop.create({ name: 'of-ben', branch: 'of-ben', access: 'owner' }, ben);
    const own = await shop.settle(data.id);
    expect(own.status).toBe('deployed');
    const cleo = await shop.h.person('Cleo');
    const [build] = (await shop.call('GET', '/builds', { as: ben, query: { environment: data.id } })).data;
    const paths = [...reads, `/services/web/build-jobs/${build.id}`];
    const outcomes = async (as: Person) =>
      await Promise.all(
        paths.map(async (path) => (await shop.call('GET', `/builds/of-ben${path}`, { as })).status),
      );
    expect(await outcomes(ben)).toEqual([200, 200, 200, 200]);
    expect(await outcomes(cleo)).toEqual([404, 404, 404, 404]);
    expect(await outcomes(shop.ada)).toEqual([200, 200, 404, 404]);
    for (const [method, path, body] of writes) {
      expect((await shop.call(method, `/builds/of-ben${path}`, { as: cleo, body })).status).toBe(404);
      const status = path === '/destroy' ? 200 : 404;
      expect((await shop.call(method, `/builds/of-ben${path}`, { body })).status).toBe(status);
    }
  });

  test('the log of a build opens only below its Environment and its service', async () => {
    const { id, uuid } = await deployed('one-of-two');
    await deployed('other-of-two');
    shop.repository.commit({ 'postern.yaml': configurationFile, 'index.html': page('one') }, 'main');
    await shop.call('PUT', `/builds/${uuid}/redeploy`);
    await shop.settle(id);
    const [build] = (await shop.call('GET', '/builds', { query: { environment: id } })).data;
    const status = async (name: string, service: string) =>
      (await shop.call('GET', `/builds/${name}/services/${service}/build-jobs/${build.id}`)).status;
    expect(await status(uuid, 'web')).toBe(200);
    expect(await status('other-of-two', 'web')).toBe(404);
    expect(await status(uuid, 'api')).toBe(404);
    expect((await shop.call('GET', `/builds/${uuid}/services/api/build-jobs`)).data).toEqual({ builds: [] });
  });
});

describe('what older clients read', () => {
  test('an Environment that waits for its first deploy is pending', async () => {
    const { data } = await shop.create({ name: 'waits', access: 'members', deployEnabled: false });
    expect((await shop.call('GET', '/builds/waits')).data).toMatchObject({
      status: 'pending',
      sha: '',
      deploys: [],
    });
    const refused = await shop.call('PUT', '/builds/waits/redeploy');
    expect([refused.status, refused.error.code]).toEqual([409, 'deploy_disabled']);
    await shop.call('PATCH', `/environments/${data.id}`, { body: { deployEnabled: true } });
    await shop.call('PUT', '/builds/waits/redeploy');
    await shop.settle(data.id);
    await shop.call('PATCH', `/environments/${data.id}`, { body: { deployEnabled: false } });
    // Paused afterwards, it is still what its deploy came to.
    expect((await shop.call('GET', '/builds/waits')).data).toMatchObject({
      status: 'deployed',
      statusMessage: expect.stringMatching(/^Deploys are paused\./),
    });
  });

  test('the reason of a failed build is in the build, its deploy and its job', async () => {
    shop.repository.commit({ 'postern.yaml': built('echo no; exit 7'), 'index.html': page('bad') }, 'fails');
    const { uuid } = await deployed('fails', { branch: 'fails' });
    const why = expect.stringMatching(/^web: The command exited with 7 after/);
    expect((await shop.call('GET', `/builds/${uuid}`)).data).toMatchObject({
      status: 'error',
      statusMessage: why,
      deploys: [{ status: 'build_failed', statusMessage: why, active: true }],
    });
    const [job] = (await shop.call('GET', `/builds/${uuid}/services/web/build-jobs`)).data.builds;
    expect(job).toMatchObject({ status: 'Failed', error: why, source: 'archived' });
    const log = await shop.call('GET', `/builds/${uuid}/services/web/build-jobs/${job.jobName}`);
    expect(log.data).toMatchObject({ status: 'Archived', error: why, archivedLogs: /\nno\n/ });
  });

  test('a running build shows its output so far, and where the rest will be', async () => {
    const mayEnd = join(shop.folder, 'may-end');
    const waits = built(`until [ -e ${mayEnd} ]; do sleep 0.1; done`);
    shop.repository.commit({ 'postern.yaml': waits, 'index.html': page('waits') }, 'under-way');
    const { data } = await shop.create({ name: 'under-way', branch: 'under-way', access: 'members' });
    const jobs = '/builds/under-way/services/web/build-jobs';
    await shop.h.app.jobs.runNow('environments');
    await shop.h.app.services.environmentServices.reconciler.idle();
    await shop.h.app.jobs.runNow('builds');
    const [job] = (await shop.call('GET', jobs)).data.builds;
    expect(job).toMatchObject({ status: 'Active', source: 'live', buildUuid: 'under-way' });
    expect(job).not.toHaveProperty('completedAt');
    expect((await shop.call('GET', '/builds/under-way')).data).toMatchObject({
      status: 'building',
      deploys: [{ status: 'building' }],
    });
    const live = `/builds/${job.jobName}/logs`;
    const log = async () => (await shop.call('GET', `${jobs}/${job.jobName}`)).data;
    expect(await log()).toMatchObject({
      status: 'Active',
      message: `GET /api/v2${live}?service=web with Accept: text/event-stream follows this log.`,
    });
    expect((await shop.call('GET', live, { query: { service: 'web' } })).status).toBe(200);
    writeFileSync(mayEnd, '');
    expect((await shop.settle(data.id)).status).toBe('deployed');
    expect(await log()).toMatchObject({ status: 'Archived' });
    expect(await log()).not.toHaveProperty('message');
  });

  test('a long log has its last MiB, in whole lines', async () => {
    const long = built('for n in $(seq 1000 1199); do printf %8000d $n; echo; done');
    shop.repository.commit({ 'postern.yaml': long, 'index.html': page('long') }, 'writes');
    const { uuid } = await deployed('writes', { branch: 'writes' });
    const jobs = `/builds/${uuid}/services/web/build-jobs`;
    const [job] = (await shop.call('GET', jobs)).data.builds;
    const { archivedLogs } = (await shop.call('GET', `${jobs}/${job.jobName}`)).data;
    const lines: string[] = archivedLogs.split('\n');
    expect(lines.slice(-3)).toEqual([expect.stringMatching(/ 1199$/), 'built by the shop', '']);
    expect(new Set(lines.slice(0, -2).map(({ length }) => length))).toEqual(new Set([8_000]));
    expect(archivedLogs.length).toBeLessThanOrEqual(2 ** 20);
    expect(archivedLogs.length).toBeGreaterThan(2 ** 20 - 8_001);
  });

  test('metadata links with the values of the Environment', async () => {
    const text = 'Source';
    // In front, and not shown: the Environment has no such service.
    const { data: other } = await shop.call('POST', '/config/metadata', {
      body: { text: 'Database', icon: 'database', link: 'https://db.example.com/${services.db.url}' },
    });
    const { data: made } = await shop.call('POST', '/config/metadata', {
      body: { text, icon: 'branch', link: 'https://git.example.com/tree/${environment.name}' },
    });
    const { uuid } = await deployed('linked');
    expect((await shop.call('GET', `/builds/${uuid}/metadata`)).data).toEqual({
      links: [
        {
          id: made.links[1].id,
          text,
          icon: 'branch',
          link: 'https://git.example.com/tree/linked',
          position: 1,
        },
      ],
    });
    await shop.call('DELETE', `/config/metadata/${made.links[1].id}`);
    await shop.call('DELETE', `/config/metadata/${other.links[0].id}`);
  });
});

describe('what older clients change', () => {
  test('variables are replaced, take effect with the next deploy, and are not shown', async () => {
    shop.repository.commit(
      { 'postern.yaml': built('echo hello $GREETING$OTHER'), 'index.html': page('greets') },
      'greets',
    );
    const { id, uuid } = await deployed('greets', { branch: 'greets', env: { OTHER: 'before' } });
    const changed = await shop.call('PATCH', `/builds/${uuid}`, {
      body: { commentRuntimeEnv: { GREETING: 'morning' } },
    });
    expect(changed).toMatchObject({ status: 200, data: { uuid, status: 'deployed' } });
    expect(changed.text).not.toContain('morning');
    const jobs = `/builds/${uuid}/services/web/build-jobs`;
    await shop.call('PUT', `/builds/${uuid}/redeploy`);
    await shop.settle(id);
    const { builds } = (await shop.call('GET', jobs)).data;
    expect(builds).toMatchObject([{ status: 'Complete' }, { status: 'Complete' }]);
    const logs: string[] = [];
    for (const { jobName } of builds)
      logs.push((await shop.call('GET', `${jobs}/${jobName}`)).data.archivedLogs);
    expect(logs).toEqual([
      expect.stringContaining('hello morning\n'),
      expect.stringContaining('hello before\n'),
    ]);
  });

  test('a name, isStatic and no field at all are refused', async () => {
    const { uuid } = await deployed('keeps-its-name');
    for (const body of [{ uuid: 'another-name' }, { isStatic: true }, {}]) {
      const refused = await shop.call('PATCH', `/builds/${uuid}`, { body });
      expect([refused.status, refused.error.code]).toEqual([400, 'invalid_body']);
    }
    for (const body of [{ serviceOverrides: [] }, { serviceOverrides: [{ active: true }] }, {}]) {
      const refused = await shop.call('PATCH', `/builds/${uuid}/services`, { body });
      expect([refused.status, refused.error.code]).toEqual([400, 'invalid_body']);
    }
  });

  test('services are switched on and off by name, from the next deploy on', async () => {
    shop.repository.commit(
      {
        'postern.yaml': `${configurationFile}  docs:\n    external: { url: https://docs.example.com/start }\n`,
        'index.html': page('two'),
      },
      'two',
    );
    const { id, uuid } = await deployed('switched', { branch: 'two' });
    const serviceOverrides = [
      { name: 'web', active: false },
      { name: 'docs', branchOrExternalUrl: 'https://other.example.com' },
      { name: 'unknown', active: true },
    ];
    const { data } = await shop.call('PATCH', `/builds/${uuid}/services`, { body: { serviceOverrides } });
    const common = { group: 'default', editable: true, updatedAt: expect.any(String) };
    expect(data).toEqual({
      queued: false,
      serviceOverrides: [
        {
          name: 'web',
          active: false,
          branchOrExternalUrl: null,
          status: 'ready',
          statusMessage: '',
          ...common,
        },
        {
          name: 'docs',
          active: true,
          branchOrExternalUrl: 'https://other.example.com',
          status: 'ready',
          statusMessage: '',
          ...common,
        },
        {
          name: 'unknown',
          active: true,
          branchOrExternalUrl: null,
          status: null,
          statusMessage: null,
          ...common,
        },
      ],
    });
    await shop.call('PUT', `/builds/${uuid}/redeploy`);
    await shop.settle(id);
    const { deploys } = (await shop.call('GET', `/builds/${uuid}`)).data;
    expect(deploys).toMatchObject([
      {
        deployable: { name: 'docs', type: 'externalHTTP' },
        status: 'ready',
        publicUrl: 'other.example.com',
        publicHref: 'https://other.example.com',
      },
      { deployable: { name: 'web' }, active: false, status: 'torn_down', publicUrl: '', publicHref: null },
    ]);
  });
});
