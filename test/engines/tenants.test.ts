import { spawnSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openShop, page, type Shop } from '../api/environments/shop.ts';
import { newRepository, type TestRepository } from '../git-repository.ts';
import { isBwrapMissing } from './local-machine.ts';

/**
 * Two repositories and a hostile branch in one installation, through the API and the local engine in bubblewrap. Without
 * it, commands of a repository are not kept from anything.
 */
const file = (api: string, web = 'mkdir -p dist && cp index.html dist') => `version: 1
services:
  web:
    build: { image: 'node:24', command: "${web}", directory: web, output: dist }
    static: {}
  api:
    build: { image: 'node:24', directory: api }
    run: ${api}
`;
const server = (answer: string) =>
  `require('node:http').createServer((q, r) => r.end('${answer}')).listen(process.env.PORT);`;
const run = (command: string) => `{ command: "${command}", port: 8080 }`;

/** Prints which of PLACES it can read, whose secrets the processes that it sees have, and which of ADDRESSES answer. */
const spy = `
const { readdirSync, readFileSync } = require('node:fs');
const { connect } = require('node:net');
const attempt = (work) => { try { return work(); } catch { return ''; } };
const text = (path) => attempt(() => readFileSync(path, 'latin1'));
const list = (path) => attempt(() => readdirSync(path)) || [];
const holders = list('/proc').filter((pid) => text('/proc/' + pid + '/environ').includes('value-of-' + 'the-shop'));
const ask = (address) => new Promise((resolve) => {
  const [place, relay] = address.split('@');
  const [host, port] = place.split(':');
  let answer = '';
  const socket = connect(relay ? { path: relay } : { host, port })
    .setTimeout(5000, () => socket.destroy())
    .on('data', (chunk) => (answer += chunk))
    .on('error', () => undefined)
    .on('close', () => resolve(answer.split('\\r\\n\\r\\n')[1]));
  socket.write((relay ? place + '\\n' : '') + 'GET / HTTP/1.0\\r\\n\\r\\n');
});
void (async () => {
  const answers = await Promise.all(process.env.ADDRESSES.split(' ').map(ask));
  const read = process.env.PLACES.split(' ').filter((path) => text(path) !== '' || list(path).length > 0);
  console.log('found ' + JSON.stringify({ read, holdsSecret: holders.length > 0, answers: answers.filter(Boolean) }));
})();
`;
const nothing = { read: [], holdsSecret: false, answers: [] };

describe.skipIf(isBwrapMissing)('tenants in bubblewrap', () => {
  let shop: Shop;
  let other: TestRepository;
  beforeAll(async () => {
    shop = await openShop('bwrap');
    await shop.change({ allowedAccess: ['owner', 'members', 'public'] });
    shop.storeSecret('token', 'value-of-the-shop');
    shop.repository.commit({
      'postern.yaml': `${file(run('node server.js'))}    secrets: { TOKEN: token }\n`,
      'web/index.html': page('shop'),
      'api/server.js': server('shop'),
    });
    other = newRepository();
    other.commit({ 'web/index.html': page('other'), 'api/server.js': server('other'), 'api/spy.js': spy });
    const body = { fullName: 'acme/other', cloneUrl: other.url };
    await shop.call('POST', '/repositories', { body });
  });
  afterAll(async () => {
    await shop.close();
    other.remove();
  });

  async function deployed(body: Record<string, unknown>) {
    const { data } = await shop.create({ access: 'public', ...body });
    const environment = await shop.settle(data.id);
    const [build] = (await shop.call('GET', '/builds', { query: { environment: data.id } })).data;
    return { ...environment, build };
  }

  async function found(path: string) {
    const { data } = await shop.call('GET', path, { query: { limit: '1000' } });
    const lines: string[] = data.map(({ text }: { text: string }) => text);
    return JSON.parse(lines.find((line) => line.startsWith('found '))?.slice('found '.length) ?? 'null');
  }

  test('neither a build nor a process reaches processes, ports, files, secrets, artifacts or logs of another repository', async () => {
    const victim = await deployed({ branch: 'main' });
    expect([victim.status, victim.statusMessage]).toEqual(['deployed', null]);
    const { environments } = shop.h.app.services.read;
    const services = (await environments.services([victim.id])).get(victim.id) ?? [];
    const address = services.find(({ name }) => name === 'api')?.address ?? '';
    const [place = ''] = address.split('@');
    const blobs = dirname(shop.h.incoming);
    const env = {
      PLACES: [join(shop.folder, 'secrets'), join(shop.folder, 'builds'), blobs, other.folder].join(' '),
      ADDRESSES: [address, place, place.replace('127.0.0.1', '10.0.2.2')].join(' '),
    };
    // Without a sandbox, the same program finds everything. The process answers only through the socket of its relay.
    const { stdout } = spawnSync('node', ['-e', spy], { env: { ...process.env, ...env }, encoding: 'utf8' });
    expect(JSON.parse(stdout.slice('found '.length))).toEqual({
      read: env.PLACES.split(' '),
      holdsSecret: true,
      answers: ['shop'],
    });

    other.commit({
      'postern.yaml': file(
        run('node spy.js && node server.js'),
        'node ../api/spy.js && mkdir -p dist && cp index.html dist',
      ).replace('directory: web,', "directory: web, inputs: ['web/**', 'api/spy.js'],"),
    });
    const curious = await deployed({ repository: 'acme/other', branch: 'main', env, initEnv: env });
    expect([curious.status, curious.statusMessage]).toEqual(['deployed', null]);
    expect(await found(`/builds/${curious.build.id}/logs`)).toEqual(nothing);
    expect(await found(`/environments/${curious.id}/logs`)).toEqual(nothing);
    expect((await shop.fetch(`${victim.services[1].url}/`)).body).toBe('shop');
    await shop.call('DELETE', `/environments/${curious.id}`);
  });

  test('a repository that names a secret of another one does not get it', async () => {
    other.commit({ 'postern.yaml': `${file(run('node server.js'))}    secrets: { TOKEN: token }\n` });
    const { status, statusMessage } = await deployed({ repository: 'acme/other', branch: 'main' });
    expect([status, statusMessage]).toEqual(['error', 'The secret token is not stored for this repository.']);
  });

  test('a hostile branch does not change what the main branch reuses', async () => {
    const poison = `echo \\"${server('poisoned')}\\" >server.js && node server.js`;
    shop.repository.commit(
      { 'postern.yaml': file(run(poison), 'mkdir -p dist && echo poisoned >dist/index.html') },
      'hostile',
    );
    // Artifacts of the first test would hide who built what.
    shop.repository.commit({ 'web/index.html': page('new'), 'api/server.js': server('new') }, 'hostile');
    shop.repository.commit({ 'web/index.html': page('new'), 'api/server.js': server('new') }, 'main');
    const hostile = await deployed({ branch: 'hostile' });
    expect([hostile.status, hostile.statusMessage]).toEqual(['deployed', null]);
    expect((await shop.fetch(`${hostile.services[0].url}/`)).body).toBe('poisoned\n');
    expect((await shop.fetch(`${hostile.services[1].url}/`)).body).toBe('poisoned');

    const main = await deployed({ branch: 'main' });
    const builds = main.build.steps.filter(({ step }: { step: string }) => step === 'build');
    expect(builds).toMatchObject([
      { service: 'api', reused: true },
      { service: 'web', reused: false },
    ]);
    expect((await shop.fetch(`${main.services[0].url}/`)).body).toBe(page('new'));
    expect((await shop.fetch(`${main.services[1].url}/`)).body).toBe('new');
  });
});
