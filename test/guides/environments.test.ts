import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Browser } from '../faults/browser.ts';
import { administrator, freePorts } from '../faults/program.ts';
import { missingTools, samplesOf, typeIn } from './guides.ts';

// What the guide about Environments tells people to type, letter by letter: one terminal has the server, another one the rest.
describe.skipIf(missingTools('git', 'bwrap', 'slirp4netns').length > 0)('run a branch', () => {
  const folder = mkdtempSync(join(tmpdir(), 'postern-branch-'));
  const end = Promise.withResolvers<void>();
  let samples: string[];
  let origin: string;
  let server: Promise<string> | undefined;
  beforeAll(async () => {
    const { web, gateway, operations } = await freePorts();
    origin = `http://localhost:${web}`;
    samples = await samplesOf('how-to/run-a-branch.md');
    const settings = {
      DATA_DIR: join(folder, 'data'),
      SERVICE_UI_URL: origin,
      PORT: String(web),
      GATEWAY_PORT: String(gateway),
      METRICS_PORT: String(operations),
      BOOTSTRAP_ADMIN_EMAIL: administrator.email,
      BOOTSTRAP_ADMIN_PASSWORD: administrator.password,
    };
    await new Promise<void>((resolve, reject) => {
      const said = (printed: string) => printed.includes('is ready') && resolve();
      server = typeIn(folder, samples[0] ?? '', { settings, said, interrupt: end.promise });
      server.catch(reject);
    });
    const [signIn = ''] = await samplesOf('how-to/get-a-session-by-curl.md', '## With a password, built-in');
    await type(
      signIn
        .replace('ada@example.com', administrator.email)
        .replace('at least twelve', administrator.password),
    );
  });
  afterAll(async () => {
    // What a failed test left running outlives the server.
    await type(`. ./names && curl -s -H "$AUTH" -X DELETE "$ENVIRONMENT" && follow`).catch(() => undefined);
    end.resolve();
    await server;
    rmSync(folder, { recursive: true, force: true });
  });

  const author = { GIT_AUTHOR_NAME: 'Ada', GIT_AUTHOR_EMAIL: administrator.email };
  const committer = { GIT_COMMITTER_NAME: 'Ada', GIT_COMMITTER_EMAIL: administrator.email };
  const type = (script: string) =>
    typeIn(folder, script.replaceAll('http://localhost:3000', origin), {
      settings: { ...author, ...committer },
    });

  test('every command works: registered, switched on, created, followed, opened, deployed again, explained, extended, torn down', async () => {
    const open = samples.findIndex((sample) => sample.includes("'.data.link'"));
    const created = await type(
      `${samples.slice(1, open + 1).join('\n')}declare -p BASE AUTH ENVIRONMENT >names; declare -f follow >>names`,
    );
    for (const said of [
      /"roles": \[[^\]]*"admin"/,
      /"acme\/website"\n\{\n {2}"problems": \[\],[^]*"levels"/,
      '"enabled": true',
      /"status": "queued"/,
      /^deployed\n[^]*"name": "web",\s*"status": "ready"/m,
      /"name": "api",\s*"status": "ready"/,
      /^web: built search\n[^]*^api: listening/m,
      /^data: .*"text":"built search"[^]*^event: end/m,
    ])
      expect(created).toMatch(said);

    const link = created.trimEnd().split('\n').at(-1) ?? '';
    const ada = new Browser(origin);
    await ada.signIn(administrator.email, administrator.password);
    const url = String((await ada.navigate(link)).headers['location']);
    expect((await ada.open(url)).text).toContain('<h1>This is search</h1>');
    expect((await ada.open(`${url}api/hello`)).text).toBe('Hello from the API');

    const [again = '', webhook = '', why = '', extend = '', tearDown = ''] = samples.slice(open + 1);
    const deployed = await type(['. ./names', again, webhook, why, extend].join('\n'));
    for (const said of [
      /"status": "deploy_queued"[^]*^deployed\n/m,
      /"service": "web",\s*"step": "build",\s*"status": "done",\s*"reused": true/,
      /"service": "api",\s*"step": "build",\s*"status": "done",\s*"reused": false/,
      /"url": "[^"]*\/api\/v2\/webhooks\/git\/repo_\w+",\s*"secret": "[\w-]{43}"/,
      'configuration: postern.yaml has no problems.',
      'route: The gateway serves it.',
      /"uuid": "search-\w+",\s*"expiresAt"/,
    ])
      expect(deployed).toMatch(said);
    expect((await ada.open(`${url}api/hello`)).text).toBe('Hello again from the API');

    expect(await type(['. ./names', tearDown].join('\n'))).toMatch(
      /"status": "tearing_down_queued"[^]*^torn_down\n$/m,
    );
    expect((await ada.open(url)).status).toBe(410);
    ada.disconnect();
  });
});
