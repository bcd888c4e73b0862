import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request as plainRequest } from 'node:http';
import { type RequestOptions, request } from 'node:https';
import type { IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { setTimeout as wait } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { findPostgres, freePort } from '../../scripts/local-servers.ts';
import { startObjectStore, type TestObjectStore } from '../../scripts/object-store.ts';
import { archiveOf } from '../api/sites/uploads.ts';
import { isRedisMissing, type RedisServer, startRedis } from '../contract/kv-redis-server.ts';
import { Browser, type Way } from '../faults/browser.ts';
import { type PostgresServer, startPostgres } from '../faults/postgres-server.ts';
import { administrator } from '../faults/program.ts';
import { isObjectStoreMissing, settingOf } from '../objects/object-store.ts';
import { type Nginx, startNginx } from './nginx.ts';
import { type Machine, onMachine, type RunningUnit, startUnit } from './units.ts';

// docs/how-to/run-on-your-own-machines.md as it is written: the units of deploy/systemd on two machines (folders and ports of
// this one), behind the nginx of deploy/nginx.
const root = join(import.meta.dirname, '../..');
const find = (program: string) => {
  try {
    return execFileSync('sh', ['-c', `PATH="$PATH:/usr/sbin" command -v ${program}`], {
      encoding: 'utf8',
    }).trim();
  } catch {
    return undefined;
  }
};
const [postgresBin, nginxProgram, analyze] = [findPostgres(), find('nginx'), find('systemd-analyze')];
const isMissing =
  process.env['CI'] !== 'true' &&
  (postgresBin === undefined || nginxProgram === undefined || isRedisMissing || isObjectStoreMissing);

const uiUrl = 'https://postern.example.com';
/** The address of the visitor, which nginx must forward. */
const visitor = '127.0.0.2';

test.skipIf(analyze === undefined && process.env['CI'] !== 'true')('systemd takes the units', () => {
  const folder = mkdtempSync(join(tmpdir(), 'postern-units-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const names = readdirSync(join(root, 'deploy/systemd')).filter((name) => name.endsWith('.service'));
  for (const name of names) {
    const text = readFileSync(join(root, 'deploy/systemd', name), 'utf8');
    writeFileSync(join(folder, name), text.replaceAll('/opt/postern', root));
  }
  const args = ['verify', '--man=no', ...names.map((name) => join(folder, name))];
  // It warns of a setting that it does not know, and ends with 0.
  expect(execFileSync('sh', ['-c', '"$@" 2>&1', 'sh', analyze ?? '', ...args], { encoding: 'utf8' })).toBe(
    '',
  );
});

describe.skipIf(isMissing)('two machines with a web and a gateway each, and a worker, behind nginx', () => {
  const home = mkdtempSync(join(tmpdir(), 'postern-machines-'));
  let postgres: PostgresServer;
  let redis: RedisServer;
  let store: TestObjectStore;
  let nginx: Nginx;
  let first: MachineWithPorts;
  let second: MachineWithPorts;
  let way: Way;
  let ada: Browser;
  const units = new Map<string, RunningUnit>();

  beforeAll(async () => {
    [postgres, redis, store] = await Promise.all([
      startPostgres(postgresBin ?? ''),
      startRedis('--maxmemory-policy', 'noeviction'),
      startObjectStore(),
    ]);
    await runSql(postgres.url, blocksOf('sql')[0] ?? '');
    first = await prepareMachine('first');
    second = await prepareMachine('second', first);

    const migration = start('postern-migrate', first);
    if ((await migration.ended) !== 0)
      throw new Error(`The migration ended with an error:\n${migration.output()}`);
    for (const [machine, names] of [
      [first, ['web', 'gateway', 'worker']],
      [second, ['web', 'gateway']],
    ] as const)
      for (const name of names) start(`postern-${name}`, machine);
    await Promise.all([...units.keys()].filter((key) => !key.includes('migrate')).map(untilReady));

    nginx = await startNginx(nginxProgram ?? '', join(home, 'nginx'), {
      '10.0.0.11:3000': `127.0.0.1:${first.ports.web}`,
      '10.0.0.12:3000': `127.0.0.1:${second.ports.web}`,
      '10.0.0.11:3001': `127.0.0.1:${first.ports.gateway}`,
      '10.0.0.12:3001': `127.0.0.1:${second.ports.gateway}`,
    });
    way = { port: nginx.tlsPort, ca: nginx.ca, localAddress: visitor };
    ada = new Browser(uiUrl, way);
    await ada.signIn(administrator.email, administrator.password);
  });
  afterAll(async () => {
    ada?.disconnect();
    await nginx?.stop();
    await Promise.all([...units.values()].map((unit) => unit.end('SIGKILL')));
    await Promise.all([postgres?.stop(), redis?.stop(), store?.close()]);
    rmSync(home, { recursive: true, force: true });
  });

  type MachineWithPorts = Machine & {
    readonly name: string;
    readonly ports: Readonly<Record<'web' | 'gateway' | 'worker' | 'migrate', number>>;
    readonly metrics: Readonly<Record<'web' | 'gateway' | 'worker' | 'migrate', number>>;
  };

  /** Steps 3 of the page, then the addresses of this test in the files that the page says to edit. */
  async function prepareMachine(name: string, like?: MachineWithPorts): Promise<MachineWithPorts> {
    const [etc, state] = [join(home, name, 'etc'), join(home, name, 'state')];
    const machine = { etc, state };
    for (const path of [etc, state]) mkdirSync(path, { recursive: true });
    const [folders = '', secrets = '', value = ''] = blocksOf('sh').filter((block) =>
      block.includes('/etc/postern/'),
    );
    shell(folders, machine);
    if (like === undefined) shell(secrets, machine);
    else
      for (const place of ['secrets', 'gateway-secrets'])
        cpSync(join(like.etc, place), join(etc, place), { recursive: true });
    for (const file of readdirSync(etc).filter((one) => one.endsWith('.env')))
      writeFileSync(join(etc, file), onMachine(readFileSync(join(etc, file), 'utf8'), machine));
    const ofRole = (role: string) =>
      Object.assign(new URL(postgres.url), { username: role, pathname: '/postern' }).href;
    shell(value, machine, ofRole('postern'));
    writeFileSync(join(etc, 'gateway-secrets/database_url'), ofRole('postern_gateway'));
    for (const place of ['secrets', 'gateway-secrets']) {
      writeFileSync(join(etc, place, 'kv_url'), redis.url);
      writeFileSync(join(etc, place, 'object_store_access_key'), store.accessKey);
      writeFileSync(join(etc, place, 'object_store_secret_key'), store.secretKey);
    }
    const free = async () => ({
      web: await freePort(),
      gateway: await freePort(),
      worker: await freePort(),
      migrate: await freePort(),
    });
    const [ports, metrics] = [await free(), await free()];
    edit(join(etc, 'postern.env'), { TRUSTED_PROXIES: '127.0.0.1', OBJECT_STORE_URL: settingOf(store.url) });
    edit(join(etc, 'web.env'), { HOST: '127.0.0.1', PORT: ports.web, METRICS_PORT: metrics.web });
    edit(join(etc, 'gateway.env'), {
      HOST: '127.0.0.1',
      GATEWAY_PORT: ports.gateway,
      METRICS_PORT: metrics.gateway,
    });
    edit(join(etc, 'worker.env'), { METRICS_PORT: metrics.worker });
    // The first administrator; step 4 prints a link for people.
    const { email, password } = administrator;
    const bootstrap = `BOOTSTRAP_ADMIN_EMAIL="${email}"\nBOOTSTRAP_ADMIN_PASSWORD="${password}"\n`;
    if (like === undefined) writeFileSync(join(etc, 'web.env'), bootstrap, { flag: 'a' });
    return { ...machine, name, ports, metrics };
  }

  function start(unit: string, machine: MachineWithPorts): RunningUnit {
    const running = startUnit(unit, machine);
    units.set(`${machine.name} ${unit}`, running);
    return running;
  }

  async function untilReady(key: string): Promise<void> {
    const [name = '', service = ''] = key.split(' ');
    const machine = name === 'first' ? first : second;
    const port = machine.metrics[service.replace('postern-', '') as keyof MachineWithPorts['metrics']];
    const unit = units.get(key);
    const failed = unit?.ended.then((code) => {
      throw new Error(`${key} ended with ${code}:\n${unit.output()}`);
    });
    const isReady = async () =>
      (await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined))?.ok === true;
    while (!(await Promise.race([isReady(), failed]))) await wait(50);
    failed?.catch(() => undefined);
  }

  /** Through nginx, as a browser or a script outside. */
  async function outside(url: string, options: RequestOptions = {}, body?: Buffer | string) {
    const { hostname, pathname, search } = new URL(url);
    const reach = {
      host: '127.0.0.1',
      port: nginx.tlsPort,
      servername: hostname,
      ca: nginx.ca,
      localAddress: visitor,
    };
    const headers = { host: hostname, ...(options.headers as Record<string, string>) };
    const sent = request({ ...reach, agent: false, path: pathname + search, ...options, headers });
    sent.end(body);
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    const bytes = await buffer(answer);
    return { status: answer.statusCode ?? 0, headers: answer.headers, bytes, text: bytes.toString() };
  }

  const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

  async function makeKey(
    name: string,
    headers: Record<string, string> = {},
  ): Promise<{ id: string; token: string }> {
    const wanted = { name, scopes: ['sites:write'], repositoryAccess: { mode: 'all' }, ttlHours: 1 };
    const made = await ada.api('POST', '/me/tokens', wanted, headers);
    expect(made.status).toBe(201);
    return made.data;
  }

  /** A person has at most ten. */
  async function revokeKeys(): Promise<void> {
    for (const { id } of (await ada.api('GET', '/me/tokens?limit=100')).data)
      await ada.api('DELETE', `/me/tokens/${id}`);
  }

  async function publish(token: string, visibility: 'public' | 'private', text: string) {
    const { type, bytes } = archiveOf({ 'index.html': text });
    const headers = { ...bearer(token), 'content-type': type };
    const made = await outside(
      `${uiUrl}/api/v2/sites?visibility=${visibility}`,
      { method: 'POST', headers },
      bytes,
    );
    expect([made.status, made.text]).toEqual([201, expect.any(String)]);
    return (JSON.parse(made.text) as { data: { id: string; url: string; link: string } }).data;
  }

  test('http redirects to https, and a foreign name gets no certificate', async () => {
    const sent = plainRequest({
      host: '127.0.0.1',
      port: nginx.plainPort,
      path: '/sites?a=1',
      headers: { host: 'postern.example.com' },
    });
    const [answer] = (await once(sent.end(), 'response')) as [IncomingMessage];
    expect([answer.resume().statusCode, answer.headers.location]).toEqual([308, `${uiUrl}/sites?a=1`]);
    await expect(outside('https://other.example.org/')).rejects.toThrow('unrecognized name');
  });

  test('the address of a visitor is the real one, whatever the visitor claims', async () => {
    const lies = {
      'x-forwarded-for': '203.0.113.7',
      forwarded: 'for=203.0.113.8',
      'x-real-ip': '203.0.113.9',
    };
    const { id } = await makeKey('address', lies);
    const { data } = await ada.api('GET', `/audit/events?keyId=${id}&event=api_key.created`);
    expect(data).toMatchObject([{ address: visitor }]);
  });

  test('a public site with a large file is published and served, and the proxy stores none of it', async () => {
    const { token } = await makeKey('large');
    const film = randomBytes(40 * 1024 * 1024);
    const { type, bytes } = archiveOf({ 'index.html': '<p>large</p>', 'film.mp4': film });
    const headers = { ...bearer(token), 'content-type': type };
    const made = await outside(`${uiUrl}/api/v2/sites?visibility=public`, { method: 'POST', headers }, bytes);
    expect([made.status, made.text]).toEqual([201, expect.any(String)]);
    const { url } = (JSON.parse(made.text) as { data: { url: string } }).data;
    expect((await outside(url)).text).toBe('<p>large</p>');
    expect((await outside(`${url}film.mp4`)).bytes.equals(film)).toBe(true);
    expect(
      readdirSync(nginx.temporary, { recursive: true, withFileTypes: true }).filter((one) => one.isFile()),
    ).toEqual([]);

    // Postern says what is too large, not the proxy.
    const upload = { method: 'POST', headers };
    const refused = await outside(`${uiUrl}/api/v2/sites`, upload, Buffer.alloc(101 * 1024 * 1024));
    expect([refused.status, JSON.parse(refused.text).error.code]).toEqual([413, 'upload_too_large']);
  });

  test('a private site opens only for its owner', async () => {
    const { token } = await makeKey('private');
    const { url } = await publish(token, 'private', '<p>for Ada only</p>');
    const stranger = await outside(url, {
      headers: { 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image' },
    });
    expect([stranger.status, stranger.text.includes('for Ada only')]).toEqual([401, false]);
    expect((await ada.open(url)).text).toBe('<p>for Ada only</p>');
    const capabilities = await ada.api('GET', '/sites/capabilities');
    expect(capabilities.data.visibilityReasons ?? {}).toEqual({});
  });

  test('readers do not notice a killed web and a killed gateway, and restarted ones join', async () => {
    const { token } = await makeKey('killed');
    const { url } = await publish(token, 'public', '<p>there</p>');
    const ask = async () => [
      (await outside(`${uiUrl}/api/v2/auth/context`, { headers: bearer(token) })).status,
      (await outside(url)).status,
    ];
    for (const name of ['postern-web', 'postern-gateway']) await units.get(`first ${name}`)?.end('SIGKILL');
    for (let times = 0; times < 10; times += 1) expect(await ask()).toEqual([200, 200]);
    const answered = () =>
      [first.ports.web, first.ports.gateway].map(
        (port) => nginx.log().split(` 127.0.0.1:${port} 200 `).length,
      );
    const before = answered();
    for (const name of ['postern-web', 'postern-gateway']) start(name, first);
    for (const name of ['web', 'gateway']) await untilReady(`first postern-${name}`);
    // The proxy leaves them out for a second more.
    const haveJoined = async () => {
      expect(await ask()).toEqual([200, 200]);
      return answered().every((count, at) => count > (before[at] ?? 0));
    };
    await expect.poll(haveJoined).toBe(true);
  });

  test('the processes of a machine restart in turn, and every request is answered', async () => {
    const { url } = await publish((await makeKey('restarts')).token, 'public', '<p>there</p>');
    const statuses = new Set<number>();
    let isOver = false;
    const load = ['one', 'two', 'three', 'four'].map(async (name) => {
      const headers = bearer((await makeKey(name)).token);
      while (!isOver) {
        statuses.add((await outside(`${uiUrl}/api/v2/auth/context`, { headers })).status);
        statuses.add((await outside(url)).status);
        // A key may ask 600 times a minute.
        await wait(25);
      }
    });
    for (const name of ['gateway', 'web']) {
      expect(await units.get(`second postern-${name}`)?.end('SIGTERM')).toBe(0);
      start(`postern-${name}`, second);
      await untilReady(`second postern-${name}`);
    }
    isOver = true;
    await Promise.all(load);
    expect([[...statuses], nginx.errors()]).toEqual([[200], expect.any(String)]);
  });

  test('without the object store, a page that no gateway has is refused with 503, and the others are served', async () => {
    const { token } = await makeKey('without the store');
    const [cold, warm] = [
      await publish(token, 'public', randomBytes(100).toString('hex')),
      await publish(token, 'public', '<p>there</p>'),
    ];
    // Each gateway reads it once.
    for (let times = 0; times < 4; times += 1) await outside(warm.url);
    const statuses = { cold: new Set<number>(), warm: new Set<number>() };
    const open = async (name: 'cold' | 'warm') => {
      statuses[name].add((await outside((name === 'cold' ? cold : warm).url)).status);
    };
    await store.stop();
    try {
      // After three failures within a second, nginx skips a process. Its 503 is no failure.
      for (let round = 0; round < 6; round += 1)
        await Promise.all([open('cold'), open('cold'), open('warm'), open('cold'), open('warm')]);
    } finally {
      await store.start();
    }
    expect(statuses).toEqual({ cold: new Set([503]), warm: new Set([200]) });
    expect(nginx.errors()).not.toContain('no live upstreams');
  });

  test('the log of the proxy has paths without queries, which can contain a code or a key', async () => {
    await revokeKeys();
    const { token } = await makeKey('in a query');
    await outside(`${uiUrl}/api/v2/auth/context?key=${token}`);
    await expect.poll(nginx.log).toContain('"GET postern.example.com/api/v2/auth/context" 400');
    expect(nginx.log()).toContain(`${visitor} [`);
    expect(nginx.log()).not.toContain(token);
    expect(nginx.log()).not.toContain('code=');
  });

  test('the command next to the units has their settings: doctor finds no problem, and the audit chain is complete', async () => {
    const command = onMachine(readFileSync(join(root, 'deploy/systemd/postern-server'), 'utf8'), first);
    const run = (...args: string[]) =>
      execFileSync('sh', ['-s', '--', ...args], {
        input: command,
        encoding: 'utf8',
        env: { PATH: process.env['PATH'] },
        stdio: ['pipe', 'pipe', 'pipe'],
      });
    expect(run('web', 'doctor', 'web')).toContain('ok');
    expect(run('gateway', 'doctor', 'gateway')).toContain('can read its views and nothing else');
    expect(run('worker', 'audit', 'verify')).toContain('intact');
  });

  // The last one: it stops every process, and loses what came after the dump.
  test('back up and restore, as the page says: the content of the dump is served, and the audit log has its head', {
    timeout: 5 * 60_000,
  }, async () => {
    const [
      stores = '',
      head = '',
      dump = '',
      stop = '',
      restore = '',
      empty = '',
      startAgain = '',
      look = '',
    ] = blocksOf('sh', 'back-up-production.md');
    const [sql = ''] = blocksOf('sql', 'back-up-production.md');
    // A command of the page in an empty folder, with systemd and the cluster left out.
    const commands = onMachine(readFileSync(join(root, 'deploy/systemd/postern-server'), 'utf8'), first);
    const copy = join(home, 'copy');
    mkdirSync(copy);
    writeFileSync(join(copy, 'postern-server'), commands);
    const type = (sample: string) =>
      execFileSync(
        'bash',
        [
          '-euo',
          'pipefail',
          '-c',
          `sudo() { if [ "$1" = -u ]; then shift 2; fi; "$@"; }
postern-server() { sh ./postern-server "$@"; }
systemctl() { echo "systemctl $*"; }; kubectl() { :; }; helm() { :; }
${onMachine(stores, first)}${sample.replace('postern-….dump', 'postern-*.dump')}`,
        ],
        {
          cwd: copy,
          encoding: 'utf8',
          stdio: ['ignore', 'pipe', 'pipe'],
          env: { PATH: `${postgresBin}:${process.env['PATH']}` },
        },
      );
    const context = async (token: string) =>
      (await outside(`${uiUrl}/api/v2/auth/context`, { headers: bearer(token) })).status;

    await revokeKeys();
    const key = await makeKey('in the dump');
    const before = await publish(key.token, 'public', '<p>in the dump</p>');
    const [, headBefore = ''] = /^Head: (\d+:[0-9a-f]+)$/m.exec(type(head)) ?? [];
    type(dump);
    const after = await publish(key.token, 'public', '<p>after the dump</p>');
    expect((await ada.api('DELETE', `/me/tokens/${key.id}`)).status).toBe(200);
    expect(await context(key.token)).toBe(401);

    expect(type(stop)).toBe('systemctl stop postern-web postern-gateway postern-worker\n');
    const running = [...units.keys()].filter((unit) => !unit.includes('migrate'));
    for (const unit of running) await units.get(unit)?.end('SIGTERM');
    await runSql(postgres.url, 'drop database postern with (force)');
    await runSql(postgres.url, sql.replaceAll(/^ *create role.*$/gm, ''));
    type(restore);
    type(empty);
    expect(type(startAgain)).toMatch(
      /start postern-migrate\n.*start postern-web postern-gateway postern-worker/,
    );
    expect(await start('postern-migrate', first).ended).toBe(0);
    for (const unit of running) start(unit.split(' ')[1] ?? '', unit.startsWith('first') ? first : second);
    await Promise.all(running.map(untilReady));

    const said = type(look.replace('SEQ:HASH', headBefore));
    expect(said).toContain('The audit log is intact');
    expect(said).toContain('can read its views and nothing else');
    await expect.poll(async () => (await outside(before.url)).text).toBe('<p>in the dump</p>');
    expect((await outside(after.url)).status).toBe(404);
    // As the page warns: what was revoked after the dump works again.
    expect(await context(key.token)).toBe(200);
  });
});

/** What a page tells people to type, block by block. */
function blocksOf(language: 'sh' | 'sql', page = 'run-on-your-own-machines.md'): string[] {
  const text = readFileSync(join(root, 'docs/how-to', page), 'utf8');
  return [...text.matchAll(new RegExp(`\`\`\`${language}\n([^]*?)\`\`\``, 'g'))].map(
    ([, block = '']) => block,
  );
}

/** Runs as the current user: the test creates no system users. */
function shell(block: string, machine: Machine, input = ''): void {
  const text = onMachine(block, machine).replaceAll(/ -g postern(?:-gateway)?\b/g, '');
  const script = `sudo() { "$@"; }\n${text}`;
  execFileSync('bash', ['-euo', 'pipefail', '-c', script], {
    cwd: root,
    input: `${input}\n`,
    stdio: ['pipe', 'ignore', 'pipe'],
  });
}

/** Settings of a file of deploy/systemd; one that is not in it is a mistake of the file. */
function edit(path: string, values: Readonly<Record<string, string | number>>): void {
  let text = readFileSync(path, 'utf8');
  for (const [name, value] of Object.entries(values)) {
    const line = new RegExp(`^${name}=.*$`, 'm');
    if (!line.test(text)) throw new Error(`${path} has no ${name}.`);
    text = text.replace(line, () => `${name}="${value}"`);
  }
  writeFileSync(path, text);
}

async function runSql(url: string, text: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  // PostgreSQL's own role of the test has the name that the page gives to the owner.
  const statements = text
    .split(';')
    .filter((one) => one.trim() !== '' && !one.includes('create role postern login'));
  for (const statement of statements) await client.query(statement);
  await client.end();
}
