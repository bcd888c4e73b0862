import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { githubUrl, gitlabUrl, kubernetesUrl } from '../api/federation/platforms.ts';
import { openPlatform } from '../id-tokens/platforms.ts';
import { type Runner, startRunner } from '../id-tokens/runner.ts';
import { openWorld, type World } from './command-line.ts';
import { newFederatedKey } from './federated-key.ts';

// A pipeline that stores no secret: the command line exchanges the ID token of the job, against a real server.
const github = openPlatform('github', githubUrl);
const gitlab = openPlatform('gitlab', gitlabUrl);
const kubernetes = openPlatform('kubernetes', kubernetesUrl);

let world: World;
let env: Record<string, string>;
let runner: Runner;

beforeAll(async () => {
  world = await openWorld();
  const keyId = await newFederatedKey(world.browser, [github, gitlab, kubernetes]);
  env = { POSTERN_URL: world.server.origin, POSTERN_KEY_ID: keyId };
  runner = await startRunner(github);
});
afterAll(async () => {
  runner?.close();
  await world?.close();
});

const whoami = ['whoami', '--json', '--fields', 'authMethod,keyId,act'];
const postern = async (args: string[], change: Readonly<Record<string, string>> = {}) =>
  await world.postern(args, { env: { ...env, ...change } });
const idTokenOf = async (platform = gitlab, more: object = {}) =>
  await platform.sign({ ...platform.claims(Date.now(), world.server.origin), ...more });

test('GitHub Actions: a site is created and published with the ID tokens of the job, and nothing is stored or shown', async () => {
  const home = join(world.home, 'job');
  const folder = join(home, 'dist');
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, 'index.html'), '<h1>Keyless</h1>');
  const inJob = async (...args: string[]) => await postern(args, { ...runner.env, HOME: home });

  const made = await inJob(
    'sites',
    'create',
    '--name',
    'Keyless',
    '--visibility',
    'public',
    '--fields',
    'id',
  );
  expect(made).toMatchObject({ code: 0, err: '' });
  const deploy = ['deploy', folder, '--site', made.out.trim()];
  const refused = await inJob(...deploy);
  expect(refused.code).toBe(2);
  expect(refused.err).toContain('The sites of a service key are public');
  const published = await inJob(...deploy, '--public');
  expect(published).toMatchObject({ code: 0, out: expect.stringMatching(/^http\S+\n$/) });
  const { text } = await world.browser.open(published.out.trim());
  expect(text).toContain('Keyless');

  const entries = await readdir(home, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  const stored = await Promise.all(files.map((file) => readFile(join(file.parentPath, file.name), 'utf8')));
  const seen = [...stored, made.out, published.out, published.err].join('\n');
  expect(runner.given.length).toBeGreaterThan(1);
  for (const secret of ['_fed_', ...runner.given]) expect(seen).not.toContain(secret);
});

test('a job is the key, and the server says which job it is', async () => {
  const { code, out } = await postern(whoami, runner.env);
  expect({ code, data: JSON.parse(out).data }).toEqual({
    code: 0,
    data: {
      authMethod: 'federated',
      keyId: env['POSTERN_KEY_ID'],
      act: { issuer: githubUrl, repository: 'octo-org/octo-repo', ref: 'refs/heads/main', run: '9876543210' },
    },
  });
  const doctor = await postern(['doctor'], runner.env);
  expect(doctor).toMatchObject({
    code: 0,
    out: expect.stringContaining('by an ID token for the key deploys'),
  });
});

test('GitLab and Kubernetes: the ID token is in a variable or in a file, and is good for more than one command', async () => {
  const variable = { POSTERN_ID_TOKEN: await idTokenOf() };
  const file = join(world.home, 'token');
  await writeFile(file, await idTokenOf(kubernetes));
  for (const change of [variable, variable, { POSTERN_ID_TOKEN_FILE: file }])
    expect(await postern(whoami, change)).toMatchObject({
      code: 0,
      out: expect.stringContaining('federated'),
    });
});

test('a key, or a sign-in that is stored, is used instead', async () => {
  const key = await world.newKey(['sites:read']);
  const { out } = await postern(whoami, { ...runner.env, POSTERN_KEY: key });
  expect(JSON.parse(out).data).toMatchObject({ authMethod: 'api_key' });
  const home = join(world.home, 'signed-in');
  await mkdir(home);
  const login = await world.postern(['login', world.server.origin, '--token-stdin'], {
    env: { HOME: home },
    input: key,
  });
  expect(login.code).toBe(0);
  const stored = await postern(whoami, { ...runner.env, HOME: home });
  expect(JSON.parse(stored.out).data).toMatchObject({ authMethod: 'api_key' });
});

test('a refusal ends with 4, and an administrator finds the reason by its request id', async () => {
  const idToken = await idTokenOf(gitlab, { project_id: '23' });
  const { code, out, err } = await postern(whoami, { POSTERN_ID_TOKEN: idToken });
  expect({ code, err }).toEqual({ code: 4, err: '' });
  const { error } = JSON.parse(out);
  expect(error).toMatchObject({ code: 'invalid_grant', hint: expect.stringContaining(error.requestId) });
  expect(out).not.toContain(idToken);
  await expect
    .poll(async () => (await world.browser.api('GET', `/me/refusals/${error.requestId}`)).data)
    .toMatchObject({ message: 'No rule of the key accepts the claims of the ID token.' });
});
