import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { createServer, request as forward, type ServerResponse } from 'node:http';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { missingTools } from '../guides/guides.ts';
import { newRepository, type TestRepository } from '../git-repository.ts';
import { openWorld, type Typing, type World } from './command-line.ts';

// A branch of a real repository, built and run by the local engine, from a clone of it.
describe.skipIf(missingTools('git', 'bwrap', 'slirp4netns').length > 0)('Environments', () => {
  let world: World;
  let env: Record<string, string>;
  let repository: TestRepository;
  let clone: string;

  beforeAll(async () => {
    world = await openWorld({ ENVIRONMENTS_ENGINE: 'local', ENVIRONMENTS_ALLOW_FILE_REPOSITORIES: 'true' });
    repository = newRepository();
    repository.commit(shop('first'));
    const { data } = await world.browser.api('GET', '/config/api-environments');
    const policy = { ...data.policy, enabled: true };
    await world.browser.api('PUT', '/config/api-environments', policy, { 'if-match': '*' });
    await world.browser.api('POST', '/repositories', { fullName: 'acme/shop', cloneUrl: repository.url });
    env = {
      PATH: process.env['PATH'] ?? '',
      POSTERN_URL: world.server.origin,
      POSTERN_KEY: await world.newKey(['env:write', 'repos:read']),
    };
    clone = `${world.home}/clone`;
    execFileSync('git', ['clone', '--quiet', repository.url, clone]);
  });
  afterAll(async () => {
    if (world === undefined) return;
    for (const id of (await postern(['env', 'list', '--fields', 'id'])).out.split('\n').filter(Boolean)) {
      await postern(['env', 'delete', id, '--yes']);
      await postern(['watch', id]);
    }
    await world.close();
    repository?.remove();
  });

  const postern = async (args: string[], typing: Typing = {}) =>
    await world.postern(args, { cwd: clone, ...typing, env: { ...env, ...typing.env } });
  const only = async (fields: string) => (await postern(['env', 'list', '--fields', fields])).out.trim();

  test('env up creates the Environment of the branch, waits, and prints its address', async () => {
    const dry = await postern(['env', 'up', '--dry-run', '--json']);
    expect(JSON.parse(dry.out).data).toEqual({ repository: 'acme/shop', branch: 'main', environment: null });
    const { code, out, err } = await postern(['env', 'up', '--timeout', '240']);
    expect({ code, err }).toMatchObject({
      code: 0,
      err: expect.stringMatching(/^Created main-\w+: main of acme\/shop\.\n/),
    });
    expect(out).toMatch(/^http:\/\/web-\S+\n(?:http:\/\/api-\S+\n)?$/);
    // Which states it sees depends on when it asks.
    const states = err.trim().split('\n').slice(1);
    for (const state of states) expect(state).toMatch(/^main-\w+: (?:queued|building|deploying)$/);
  });

  test('env up again deploys the same Environment, with the new commit', async () => {
    const before = await only('id');
    const sha = repository.commit(shop('second'));
    const { code, out } = await postern(['env', 'up', 'main', '--json']);
    expect(code).toBe(0);
    expect(JSON.parse(out).data).toMatchObject({ id: before, status: 'deployed', sha });
  });

  test('watch returns at once when it is ready, and ends with 8 while nothing happens', async () => {
    const name = await only('uuid');
    expect(await postern(['watch', name, '--fields', 'uuid,status'])).toMatchObject({
      code: 0,
      out: `${name}\tdeployed\n`,
    });
    expect(await postern(['watch', 'none'])).toMatchObject({ code: 3, out: '' });
    const waiting = await world.browser.api('POST', '/environments', {
      repository: 'acme/shop',
      branch: 'main',
    });
    const { id, uuid } = waiting.data;
    expect(await postern(['watch', uuid, '--timeout', '0'])).toMatchObject({ code: 8, out: '' });
    expect((await postern(['watch', uuid])).code).toBe(0);
    // Two of one branch: which is meant must be said.
    expect((await postern(['env', 'up'])).code).toBe(2);
    await postern(['env', 'delete', uuid, '--yes']);
    // By its id: the name is free as soon as the teardown has ended.
    expect((await postern(['watch', id])).code).toBe(1);
  });

  test('builds logs -f prints the whole log of a build, one line each, and ends with it', async () => {
    const build = (
      await postern(['builds', 'list', '--environment', await only('uuid'), '--limit', '1', '--fields', 'id'])
    ).out.trim();
    const { code, out } = await postern(['builds', 'logs', build, '-f']);
    expect(code).toBe(0);
    expect(out).toMatch(/^\S+\t\d{4}-\S+\tweb\tbuild\tstdout\tsecond$/m);
    const lines = (await postern(['builds', 'logs', build, '-f', '--json'])).out.trimEnd().split('\n');
    const envelopes = lines.map((line) => JSON.parse(line));
    expect(envelopes.at(-1)).toMatchObject({ ok: true, data: { text: expect.any(String) }, error: null });
    const { cursor } = envelopes.at(-1).data;
    expect(await postern(['builds', 'logs', build, '-f', '--cursor', cursor])).toMatchObject({
      code: 0,
      out: '',
    });
  });

  test('env logs -f continues after a lost connection with the next line, and ends with the teardown', async () => {
    const name = await only('uuid');
    const written = (await postern(['env', 'logs', name, '--fields', 'text'])).out;
    expect(written).toContain('line 1\nline 2\nline 3\n');
    const way = await cutting();
    const followed = postern(['env', 'logs', name, '-f', '--service', 'api', '--fields', 'text'], {
      env: { POSTERN_URL: way.origin },
    });
    await way.cut();
    await way.cut();
    // By its name it is found until the teardown is done.
    await way.isRead();
    await postern(['env', 'delete', name, '--yes']);
    const { code, out, err } = await followed;
    await way.close();
    expect(code).toBe(0);
    expect(out.slice(0, written.length)).toBe(written);
    expect(out.match(/^line 1$/gm)).toHaveLength(written.match(/^line 1$/gm)?.length ?? 0);
    expect(err.match(/The next attempt is in /g)).toHaveLength(2);
    expect(way.continued().slice(1)).toEqual([
      expect.stringMatching(/^api\.\d+$/),
      expect.stringMatching(/^api\.\d+$/),
    ]);
  });

  test('why says what is wrong; env up ends with 1 and the same words', async () => {
    repository.commit({ 'postern.yaml': 'version: 1\nservices:\n  web: { build: { outptu: dist } }\n' });
    const up = await postern(['env', 'up']);
    expect(up).toMatchObject({ code: 1, out: '' });
    expect(up.err).toContain('(config_error)');
    const name = await only('uuid');
    const { code, out } = await postern(['why', name, '--json']);
    expect(code).toBe(0);
    const [first] = JSON.parse(out).data;
    expect(first).toMatchObject({ step: 'configuration', ok: false });
    expect(up.err).toContain(first.message);
    const place = /postern\.yaml:3:\d+ .*outptu.*Did you mean output\?/;
    expect(up.err).toMatch(place);
    expect((await postern(['why', name])).out).toMatch(place);
    await writeFile(join(clone, 'postern.yaml'), 'version: 1\nserviecs: {}\n');
    const checked = await postern(['schema', 'validate', 'postern.yaml']);
    expect(checked).toMatchObject({ code: 1, out: expect.stringMatching(/^postern\.yaml:2:1 .+\n/m) });
    expect(await postern(['schema', 'validate', 'absent.yaml'])).toMatchObject({ code: 2, out: '' });
    await rm(join(clone, 'postern.yaml'));
    const link = (await postern(['env', 'get', name, '--fields', 'link'])).out.trim();
    expect((await postern(['why', link, '--json'])).out).toBe(out);
    expect((await postern(['why', 'http://web--none.sites.localhost/'])).code).toBe(3);
  });

  test('open prints the link of an Environment, piped', async () => {
    const name = await only('uuid');
    expect(await postern(['open', name])).toEqual({
      code: 0,
      out: (await postern(['env', 'get', name, '--fields', 'link'])).out,
      err: '',
    });
    expect((await postern(['open', 'none'])).code).toBe(3);
  });

  test('a repository that is not registered ends with 3, a folder without a remote with 2', async () => {
    const other = `${world.home}/other`;
    execFileSync('git', ['init', '--quiet', '--initial-branch=main', other]);
    expect((await postern(['env', 'up'], { cwd: other })).code).toBe(2);
    execFileSync('git', ['-C', other, 'remote', 'add', 'origin', 'git@git.example.com:acme/shop.git']);
    expect((await postern(['env', 'up'], { cwd: other })).code).toBe(3);
  });

  /** Another way to the server, which can cut what is under way. */
  async function cutting() {
    const { hostname, port, host } = new URL(world.server.origin);
    const open = new Set<ServerResponse>();
    const cursors: string[] = [];
    let wakeUp = () => {};
    const proxy = createServer((request, response) => {
      const { method, url: path, headers } = request;
      cursors.push(String(headers['last-event-id'] ?? ''));
      const onward = forward({ hostname, port, method, path, headers: { ...headers, host } }, (answer) => {
        response.writeHead(answer.statusCode ?? 0, answer.headers);
        answer.on('data', (part: Buffer) => {
          response.write(part);
          // The keep-alive comment, or lines: the client has begun to read.
          open.add(response);
          wakeUp();
        });
        answer.on('end', () => response.end());
      });
      response.on('close', () => onward.destroy());
      request.pipe(onward);
    });
    proxy.listen(0, '127.0.0.1');
    await once(proxy, 'listening');
    const isRead = async () => {
      while (open.size === 0)
        await new Promise<void>((resolve) => {
          wakeUp = resolve;
        });
    };
    const address = proxy.address();
    if (address === null || typeof address === 'string') throw new Error('The proxy has no port.');
    return {
      origin: `http://127.0.0.1:${address.port}`,
      continued: () => cursors,
      isRead,
      async cut() {
        await isRead();
        for (const response of open) response.socket?.destroy();
        open.clear();
      },
      async close() {
        proxy.closeAllConnections();
        proxy.close();
        await once(proxy, 'close');
      },
    };
  }
});

/** A page that the build writes, and a process that writes three lines. */
function shop(text: string): Record<string, string> {
  return {
    'postern.yaml': `version: 1
services:
  web:
    build: { image: 'node:24', command: "echo ${text} && mkdir dist && echo ${text} > dist/index.html", output: dist }
    static: {}
    routes: { /api: api }
  api:
    build: { image: 'node:24', directory: api }
    run: { command: node server.js, port: 8080 }
`,
    'api/server.js': `console.log('line 1\\nline 2\\nline 3');
require('node:http').createServer((q, r) => r.end('${text}')).listen(process.env.PORT);
`,
  };
}
