import { randomBytes } from 'node:crypto';
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { missingTools } from '../guides/guides.ts';
import { inTerminal, openWorld, type World } from './command-line.ts';

// What a person at a terminal sees, and a pipe does not: tables, colours, progress, questions, the browser.
describe.skipIf(missingTools('script').length > 0)('in a terminal', () => {
  let world: World;
  let env: Record<string, string>;
  let folder: string;

  beforeAll(async () => {
    world = await openWorld();
    folder = join(world.home, 'project');
    env = {
      HOME: world.home,
      POSTERN_URL: world.server.origin,
      POSTERN_KEY: await world.newKey(['sites:write', 'env:read']),
    };
    for (const name of ['dist', 'out']) await put(`${name}/index.html`, name);
  });
  afterAll(async () => await world?.close());

  async function put(path: string, content: string): Promise<void> {
    await mkdir(join(folder, path, '..'), { recursive: true });
    await writeFile(join(folder, path), content);
  }
  const escape = '\u001b';
  const piped = async (...args: string[]) => await world.postern(args, { cwd: folder, env });

  test('deploy asks for the folder; in a pipe it does not, and ends with 2', async () => {
    expect(await piped('deploy')).toMatchObject({ code: 2, out: '' });
    let isAnswered = false;
    const { code, shown } = await inTerminal(['deploy'], {
      env,
      cwd: folder,
      typed(text) {
        if (isAnswered || !text.includes('Which folder? dist, out: ')) return undefined;
        isAnswered = true;
        return 'out\n';
      },
    });
    expect({ code, shown }).toEqual({
      code: 0,
      shown: expect.stringContaining('Version 1 of project is live'),
    });
    const site = JSON.parse(await readFile(join(folder, 'postern.site.json'), 'utf8')).sites.out;
    expect((await piped('sites', 'download', site, 'index.html')).out).toBe('out');
    expect((await inTerminal(['deploy', '--no-input'], { env, cwd: folder })).code).toBe(2);
  });

  test('a deletion asks, and any other answer than yes declines it with 1', async () => {
    const id = (await piped('sites', 'create', '--name', 'Short', '--fields', 'id')).out.trim();
    const answering = async (answer: string) => {
      let isAnswered = false;
      return await inTerminal(['sites', 'delete', id, '--fields', 'status'], {
        env,
        typed(text) {
          if (isAnswered || !text.includes('Continue? [y/N] ')) return undefined;
          isAnswered = true;
          return answer;
        },
      });
    };
    expect((await answering('\n')).code).toBe(1);
    expect((await piped('sites', 'get', id, '--fields', 'status')).out).not.toBe('deleted\n');
    expect(await answering('y\n')).toEqual({ code: 0, shown: expect.stringMatching(/deleted\s*$/) });
  });

  test('a list has a bold header; NO_COLOR and a pipe have no colour, and a pipe no header', async () => {
    const list = ['sites', 'list', '--fields', 'name'];
    const { shown } = await inTerminal(list, { env });
    expect(shown).toContain(`${escape}[1mNAME${escape}[22m`);
    const plain = await inTerminal(list, { env: { ...env, NO_COLOR: '1' } });
    expect(plain.shown).toMatch(/^NAME\r?\n/);
    expect((await piped(...list)).out).toBe('project\n');
  });

  test('a failure is red, except in a pipe', async () => {
    const missing = ['sites', 'get', 'none'];
    expect((await inTerminal(missing, { env })).shown).toContain(`${escape}[31mpostern: `);
    expect((await piped(...missing)).err).not.toContain(escape);
  });

  test('deploy shows its progress, and removes it; --quiet and a pipe show none', async () => {
    const publish = async (...options: string[]) => {
      // More than one request, and each takes more than a moment.
      for (const name of ['one', 'two', 'three'])
        await put(`large/${name}.txt`, randomBytes(6 * 1024 ** 2).toString('hex'));
      return ['deploy', 'large', '--name', 'Large', '--site-file', join(folder, 'large.json'), ...options];
    };
    const { shown } = await inTerminal(await publish(), { env, cwd: folder });
    expect(shown.replaceAll(escape, '^')).toMatch(
      /\r\^\[K\d[\d.]* (?:bytes|KiB|MiB) of 36\.0 MiB, \S+ \S+\/s, \d+ s left/,
    );
    expect(shown).toContain('\r\u001b[K');
    const quiet = await inTerminal(await publish('--quiet'), { env, cwd: folder });
    expect(quiet.shown).not.toContain(escape);
    expect((await piped(...(await publish()))).err).not.toContain(escape);
  });

  test('open and the pages of session-only routes open the browser, not with --no-browser and not in a pipe', async () => {
    const opened = join(world.home, 'opened');
    const programs = join(world.home, 'bin');
    await mkdir(programs, { recursive: true });
    await writeFile(join(programs, 'xdg-open'), `#!/bin/sh\necho "$1" >>'${opened}'\n`);
    await chmod(join(programs, 'xdg-open'), 0o755);
    const withBrowser = { ...env, PATH: `${programs}:${process.env['PATH']}` };
    const page = `${world.server.origin}/settings/keys`;
    expect((await inTerminal(['keys', '--no-browser'], { env: withBrowser })).shown).toContain(page);
    await world.postern(['keys'], { env: withBrowser });
    expect((await inTerminal(['keys'], { env: withBrowser })).shown).toContain(page);
    const site = await inTerminal(['open', 'project'], { env: withBrowser });
    expect(site.code).toBe(0);
    await expect
      .poll(async () => (await readFile(opened, 'utf8').catch(() => '')).split('\n'))
      .toEqual([page, site.shown.trim(), '']);
  });
});
