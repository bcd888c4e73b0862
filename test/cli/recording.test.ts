import { execFileSync } from 'node:child_process';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newRepository, type TestRepository } from '../git-repository.ts';
import { answerForms, missingTools } from '../guides/guides.ts';
import { inTerminal, openWorld, type World } from './command-line.ts';

// The session of docs/how-to/command-line-session.md, typed into a pseudo terminal against a real server. To write the page
// again: RECORD=1 npm run test:cli -- test/cli/recording.test.ts
const page = join(import.meta.dirname, '../../docs/how-to/command-line-session.md');
const interrupt = '\u0003';

describe.skipIf(missingTools('script', 'git', 'bwrap', 'slirp4netns').length > 0)('a session', () => {
  let world: World;
  let repository: TestRepository;
  let clone: string;
  let env: Record<string, string>;
  const session: string[] = [];

  beforeAll(async () => {
    world = await openWorld({ ENVIRONMENTS_ENGINE: 'local', ENVIRONMENTS_ALLOW_FILE_REPOSITORIES: 'true' });
    repository = newRepository();
    repository.commit(shop);
    const { data } = await world.browser.api('GET', '/config/api-environments');
    const policy = { ...data.policy, enabled: true };
    await world.browser.api('PUT', '/config/api-environments', policy, { 'if-match': '*' });
    await world.browser.api('POST', '/repositories', { fullName: 'acme/shop', cloneUrl: repository.url });
    clone = join(world.home, 'shop');
    execFileSync('git', ['clone', '--quiet', repository.url, clone]);
    const programs = join(world.home, 'bin');
    await mkdir(programs);
    // In place of a browser; the test answers the page.
    await writeFile(join(programs, 'xdg-open'), '#!/bin/sh\n');
    await chmod(join(programs, 'xdg-open'), 0o755);
    env = { HOME: world.home, PATH: `${programs}:${process.env['PATH']}`, NO_COLOR: '1' };
    for (const [name, text] of Object.entries({ 'index.html': '<h1>Shop</h1>', 'style.css': 'h1 {}' }))
      await change(`dist/${name}`, text);
  });
  afterAll(async () => {
    if (world === undefined) return;
    const { data } = await world.browser.api('GET', '/environments');
    for (const { id } of data) {
      await world.postern(['env', 'delete', id, '--yes']);
      await world.postern(['watch', id]);
    }
    await world.close();
    repository?.remove();
  });

  async function change(path: string, text: string): Promise<void> {
    await mkdir(join(clone, path, '..'), { recursive: true });
    await writeFile(join(clone, path), text);
  }

  /** Types a command; what the terminal shows then becomes a part of the session. */
  async function typed(command: string, answer?: (shown: string) => string | undefined) {
    const { code, shown } = await inTerminal(command.split(' ').slice(1), {
      env,
      cwd: clone,
      ...(answer === undefined ? {} : { typed: answer }),
    });
    const text = screenOf(shown);
    session.push(`$ ${command}\n${text}`);
    return { code, text };
  }

  test('login, deploy, change a file, deploy, roll back, env up, logs -f', async () => {
    let visit: Promise<unknown> | undefined;
    const login = await typed(`postern login ${world.server.origin}`, (shown) => {
      const address = /^http\S+\/identity\/auth\?\S+$/m.exec(shown)?.[0];
      if (address !== undefined)
        visit ??= answerForms(world.browser, address, [{ decision: 'allow' }]).then(
          async ({ headers }) => await fetch(String(headers['location'])),
        );
      return undefined;
    });
    await visit;
    expect(login.code).toBe(0);

    const first = await typed('postern deploy --name Shop --public');
    expect(first.text).toContain('Version 1 of Shop is live for everyone: 2 files');
    await change('dist/index.html', '<h1>Shop, open on Sundays</h1>');
    session.push("$ echo '<h1>Shop, open on Sundays</h1>' > dist/index.html\n");
    const second = await typed('postern deploy');
    expect(second.text).toMatch(/Version 2 of Shop is live for everyone: 1 file .* sent, 1 file reused\./);

    const listed = await typed('postern sites list --fields id,name,url');
    const [, site = ''] = /^(\S+) +Shop +http/m.exec(listed.text) ?? [];
    const back = await typed(`postern versions publish ${site} 1 --fields id,status`);
    expect(back.code).toBe(0);
    expect((await world.postern(['sites', 'download', site, 'index.html'])).out).toBe('<h1>Shop</h1>');

    const up = await typed('postern env up');
    expect(up).toEqual({ code: 0, text: expect.any(String) });
    const name = /^Created (\S+): main of acme\/shop\.$/m.exec(up.text)?.[1];
    let isSeen = false;
    const logs = await typed(`postern env logs ${name} -f`, (shown) => {
      if (isSeen || !shown.includes('Ready for customers')) return undefined;
      isSeen = true;
      return interrupt;
    });
    expect(logs.text).toContain('api: Ready for customers\n');

    const recorded = pageOf(session, world);
    for (const own of [world.home, world.server.origin, 'app_pat_', 'localhost', '127.0.0.1'])
      expect(recorded).not.toContain(own);
    if (process.env['RECORD'] !== undefined) await writeFile(page, recorded);
  });
});

/** What is left on the screen, where a line of progress replaces the one before. */
function screenOf(shown: string): string {
  const lines = shown.replaceAll('\r\n', '\n').split('\n');
  const last = lines.map((line) => stripVTControlCharacters(line.split('\r\u001b[K').at(-1) ?? ''));
  return `${last.join('\n').trimEnd()}\n`;
}

function pageOf(session: readonly string[], { server, home }: World): string {
  const text = session
    .join('\n')
    .replaceAll(server.origin, 'https://postern.example.com')
    .replaceAll(new URL(server.origin).host, 'postern.example.com')
    .replace(/(\/identity\/auth\?)\S+/g, '$1client_id=…')
    .replace(/http:\/\/([\w-]+)\.sites\.localhost:\d+/g, 'https://$1.sites.example.com')
    .replaceAll(home, '~');
  return `# A session of the command line

<!-- Written by test/cli/recording.test.ts, which types it into a terminal; edits are lost. -->

A person signs in, publishes a folder, changes one file, publishes again and rolls back. Then they run the branch, and follow its log until Ctrl-C.
[Use the command line](use-the-command-line.md) explains it. Addresses are replaced.

\`\`\`text
${text.trimEnd()}
\`\`\`
`;
}

const shop = {
  'postern.yaml': `version: 1
services:
  api:
    build: { image: 'node:24', directory: api }
    run: { command: node server.js, port: 8080 }
`,
  'api/server.js': `require('node:http').createServer((q, r) => r.end('shop')).listen(process.env.PORT);
console.log('Listening');
console.log('Ready for customers');
`,
};
