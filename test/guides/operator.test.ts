import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePort } from '../../scripts/local-servers.ts';
import { Browser } from '../faults/browser.ts';
import { administrator } from '../faults/program.ts';
import { answerForms, type Guides, missingTools, openGuides, samplesOf } from './guides.ts';

/** The time limit of tests that stop and start the server, on a busy machine. */
const minutes = 6 * 60_000;

// What the guides tell an operator of one machine, and the author of a program, to type, letter by letter.
describe.skipIf(missingTools().length > 0)('the samples for one machine', () => {
  let guides: Guides;
  let signIn: string;
  beforeAll(async () => {
    guides = await openGuides();
    [signIn = ''] = await samplesOf('how-to/get-a-session-by-curl.md', '## With a password, built-in');
  });
  afterAll(() => guides.close());

  const asAdministrator = (sample: string) =>
    sample.replace('ada@example.com', administrator.email).replace('at least twelve', administrator.password);
  const statusOf = (headers: string, path: string) =>
    guides.bash(`curl -s -o /dev/null -w '%{http_code}' ${headers} http://localhost:3000${path}`);
  const ask = async (path: string) =>
    JSON.parse(await guides.bash(`curl -s -b jar http://localhost:3000${path}`));
  const begin = () => `BASE=${guides.origin}\n`;

  test('get a session by curl: with a password, copied from a browser, and ended', async () => {
    const [look = '', end = ''] = await samplesOf('how-to/get-a-session-by-curl.md', '## Look who it is');
    expect(await guides.bash(`mv jar before\n${asAdministrator(signIn)}${look}`)).toMatch(
      /^200\n\{\n {2}"kind": "user"/,
    );
    const jar = readFileSync(join(guides.folder, 'jar'), 'utf8');
    const [copy = ''] = await samplesOf('how-to/get-a-session-by-curl.md', '## The browser’s session');
    const value = /__Host-postern_session\t(\S+)/.exec(jar)?.[1] ?? '';
    const at = begin().replace(/:\d+/, '');
    const copied = `rm jar\n${copy.replace(/^BASE=.*$/m, at)}\n${begin()}${look}`;
    expect(await guides.bash(copied, { input: `${value}\n` })).toContain('"kind": "user"');
    expect(
      await guides.bash(`cp jar copy\n${begin()}${end}mv copy jar\n${look}rm jar; mv before jar`),
    ).toMatch(/^204\nnull\n$/);
  });

  test('sign in from a program by a code: tokens, one refreshed, the connection listed and ended', async () => {
    const [issuer = '', start = '', poll = ''] = await samplesOf('how-to/sign-in-from-a-program.md');
    const [use = '', refresh = '', handBack = '', list = ''] = await samplesOf(
      'how-to/sign-in-from-a-program.md',
      '## Use it',
    );
    const browser = new Browser(guides.origin);
    await browser.signIn(administrator.email, administrator.password);
    let visit: Promise<unknown> | undefined;
    const printed = await guides.bash(`${issuer}${start}${poll}`, {
      said: (so) => {
        const [, address, code] = /^Open (\S+) and type (\S+)$/m.exec(so) ?? [];
        if (address === undefined || code === undefined) return;
        const forms = [{ user_code: code }, { confirm: 'yes' }, { decision: 'allow' }];
        visit ??= answerForms(browser, address, forms);
      },
    });
    await visit;
    expect(printed).toMatch(/"error": null,\s*"expires_in": (?:29\d|300)/);
    expect(await guides.bash(issuer + use)).toMatch(/"repos:read"/);
    const before = readFileSync(join(guides.folder, 'tokens.json'), 'utf8');
    await guides.bash(issuer + refresh);
    expect(readFileSync(join(guides.folder, 'tokens.json'), 'utf8')).not.toBe(before);
    expect(await guides.bash(issuer + use)).toMatch(/"repos:read"/);
    expect(await guides.bash(issuer + list)).toMatch(/postern-cli/);
    browser.disconnect();
    expect(await guides.bash(issuer + handBack)).toBe('');
  });

  test('sign in from a program by a redirect: the program gets the code and exchanges it for tokens', async () => {
    const [issuer = ''] = await samplesOf('how-to/sign-in-from-a-program.md');
    const [wait = '', redeem = ''] = await samplesOf('how-to/sign-in-from-a-program.md', '## By a redirect');
    const [use = ''] = await samplesOf('how-to/sign-in-from-a-program.md', '## Use it');
    const browser = new Browser(guides.origin);
    await browser.signIn(administrator.email, administrator.password);
    const port = await freePort();
    let visit: Promise<unknown> | undefined;
    const printed = await guides.bash(
      `${issuer}${wait.replace('PORT=45123', `PORT=${port}`)}${redeem}${use}`,
      {
        said: (so) => {
          const address = /^http\S+\/identity\/auth\?\S+$/m.exec(so)?.[0];
          if (address === undefined || visit !== undefined) return;
          visit = answerForms(browser, address, [{ decision: 'allow' }]).then((last) =>
            fetch(String(last.headers['location'])),
          );
        },
      },
    );
    await visit;
    browser.disconnect();
    expect(printed).toMatch(/^\/callback\?code=\S+&state=\S+&iss=/m);
    expect(printed).toMatch(/"error": null,[^]*offline_access[^]*"authMethod"/);
  });

  test('find out what is wrong: nothing, next to a running server, for a person and for a script', async () => {
    const [doctor = ''] = await samplesOf('how-to/find-out-what-is-wrong.md');
    const [forPeople = '', forScripts = ''] = doctor.trim().split('\n');
    expect(await guides.bash(forPeople)).toMatch(/ok +data.lock +in use by process \d+/);
    const { ok, checks } = JSON.parse(await guides.bash(forScripts));
    expect([ok, checks[0]]).toEqual([true, expect.objectContaining({ check: 'node', state: 'ok' })]);
  });

  test('import older keys: the old value works, under its name and with its rights', {
    timeout: minutes,
  }, async () => {
    const page = readFileSync(join(import.meta.dirname, '../../docs/how-to/import-older-keys.md'), 'utf8');
    const [command = ''] = await samplesOf('how-to/import-older-keys.md');
    const value = `app_pat_${'0123456789'.repeat(4)}`;
    const digest = /`(printf %s "\$VALUE" .*?)`/.exec(page)?.[1]?.replace('\\|', '|') ?? '';
    const hex = (await guides.bash(`VALUE=${value}; ${digest}`)).slice(0, 64);
    const subject: string = (await ask('/api/v2/users')).data[0].subject;
    const line = (/```json\n([^]*?)```/.exec(page)?.[1] ?? '')
      .replaceAll(/\n\s*/g, '')
      .replace(/<64 hex[^>]*>/, hex)
      .replace(/<subject[^>]*>/, subject);
    writeFileSync(join(guides.folder, 'keys.ndjson'), `${line}\n`);
    writeFileSync(
      join(guides.folder, 'repository.json'),
      JSON.stringify({ fullName: 'acme/web', cloneUrl: 'https://git.example.com/acme/web.git' }),
    );
    await guides.bash(
      `curl -sf -b jar -H 'Origin: ${guides.origin}' -H 'Content-Type: application/json' ${guides.origin}/api/v2/repositories -d @repository.json`,
    );
    await guides.stop();
    const importing = command.replace('/path/to/keys.ndjson', join(guides.folder, 'keys.ndjson'));
    const printed = await guides.bash(importing + importing);
    expect(printed).toMatch(/1 [^]*1 /);
    await guides.start();
    expect((await ask('/api/v2/tokens?kind=all')).data.map(({ name }: { name: string }) => name)).toContain(
      'nightly report',
    );
    expect(await statusOf(`-H 'Authorization: Bearer ${value}'`, '/api/v2/auth/context')).toBe('200');
  });

  test('back up and restore: with the secrets beside the backup, and in it', {
    timeout: minutes,
  }, async () => {
    const pageOf = 'how-to/back-up-and-restore.md';
    const [backUp = '', copy = '', sealed = ''] = await samplesOf(pageOf, '## Back up');
    const [restore = '', unseal = '', verify = ''] = await samplesOf(pageOf, '## Restore');
    const at = (name: string) => join(guides.folder, name);
    const own = (sample: string, to = at('restored')) =>
      sample
        .replaceAll('/backups/postern-2026-11-22.tar.gz', at('backup.tar.gz'))
        .replace('FILE ', `${at('sealed.tar.gz')} `)
        .replace('FILE\n', `${at('sealed.tar.gz')}\n`)
        .replace('/run/secrets/backup', at('passphrase'))
        .replace('/var/lib/postern', to)
        .replace('/safe/place', at('safe'));
    writeFileSync(at('passphrase'), 'a passphrase of more than 16\n');
    const { token } = await guides.makeKey('of before');
    await guides.stop();
    mkdirSync(at('safe'));
    const printed = await guides.bash(own(backUp) + own(copy) + own(sealed));
    const [, head = ''] = /^audit head (\d+:[0-9a-f]+)$/m.exec(printed) ?? [];
    const restored = await guides.bash(`${own(restore)}\n${verify.replace('1234:…', head)}`);
    expect(restored).toMatch(/Restored[^]*The audit log is intact[^]*Nothing needs fixing/);
    expect(restored).not.toContain('advice  data.folder');
    await guides.start({ dataDir: at('restored') });
    expect(await statusOf(`-H 'Authorization: Bearer ${token}'`, '/api/v2/auth/context')).toBe('200');
    expect(await statusOf('-b jar', '/api/v2/sites')).toBe('200');
    await guides.stop();
    expect(await guides.bash(own(unseal, at('unsealed')))).toContain('Restored');
    await guides.start();
  });

  test('reset a password: by an administrator, and from the command line while no one can sign in', {
    timeout: minutes,
  }, async () => {
    const [byAdministrator = '', byCommand = ''] = await samplesOf('how-to/reset-a-password.md');
    const isPassword = async (password: string) => {
      const typed = signIn
        .replace('ada@example.com', administrator.email)
        .replace('at least twelve', password);
      return (await guides.bash(`rm -f jar\n${typed}`)) === '200\n';
    };
    const { generatedPassword } = JSON.parse(await guides.bash(byAdministrator)) as {
      generatedPassword: string;
    };
    expect(await isPassword(generatedPassword)).toBe(true);
    await guides.stop();
    const printed = await guides.bash(`(${byCommand.trim()}) 2>&-`);
    await guides.start();
    expect(await isPassword(generatedPassword)).toBe(false);
    expect(await isPassword(printed.trim())).toBe(true);
  });
});
