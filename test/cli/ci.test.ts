import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { githubUrl, gitlabUrl } from '../api/federation/platforms.ts';
import { openPlatform } from '../id-tokens/platforms.ts';
import { startRunner } from '../id-tokens/runner.ts';
import { openWorld, type World } from './command-line.ts';
import { newFederatedKey } from './federated-key.ts';

// Runs the steps of deploy/ci as the runners would, against a real server that serves the command line.
const ci = join(import.meta.dirname, '../../deploy/ci');
const github = openPlatform('github', githubUrl);
const gitlab = openPlatform('gitlab', gitlabUrl);
let world: World;
let key: string;
let site: string;
let folder: string;
/** A federated key, and a site that it created. */
let keyless: { id: string; site: string };

beforeAll(async () => {
  world = await openWorld();
  key = await world.newKey(['sites:write']);
  folder = join(world.home, 'project');
  await mkdir(join(folder, 'dist'), { recursive: true });
  await mkdir(join(world.home, 'bin'));
  await symlink(process.execPath, join(world.home, 'bin/node'));
  await writeFile(join(folder, 'dist/index.html'), '<h1>Pipeline</h1>');
  const env = { POSTERN_URL: world.server.origin, POSTERN_KEY: key };
  const first = await world.postern(['deploy', '--public', '--fields', 'site'], { cwd: folder, env });
  site = first.out.trim();
  const id = await newFederatedKey(world.browser, [github, gitlab]);
  const create = ['sites', 'create', '--name', 'Keyless', '--visibility', 'public', '--fields', 'id'];
  const made = await world.postern(create, {
    env: { POSTERN_URL: world.server.origin, POSTERN_KEY_ID: id, POSTERN_ID_TOKEN: await idTokenOf(gitlab) },
  });
  keyless = { id, site: made.out.trim() };
});
afterAll(async () => await world?.close());

async function idTokenOf({ sign, claims }: typeof gitlab, audience = world.server.origin): Promise<string> {
  return await sign(claims(Date.now(), audience));
}

async function runScript(script: string, env: Record<string, string>) {
  const child = spawn('bash', ['--noprofile', '--norc', '-eo', 'pipefail', '-c', script], {
    cwd: folder,
    env: { PATH: `${world.home}/bin:/usr/bin:/bin`, HOME: world.home, ...env },
  });
  let out = '';
  let err = '';
  child.stdout.on('data', (part) => (out += part));
  child.stderr.on('data', (part) => (err += part));
  await once(child, 'close');
  return { code: child.exitCode, out, err };
}

type Input = { readonly default?: string };

/** Every value with its inputs, which are those given or their defaults. */
function filled(
  values: Readonly<Record<string, string>>,
  inputs: Readonly<Record<string, Input>>,
  given: Readonly<Record<string, string>>,
  form: RegExp,
): Record<string, string> {
  const valueOf = (name: string) => {
    const value = given[name] ?? inputs[name]?.default;
    if (value === undefined) throw new Error(`There is no input ${name}.`);
    return value;
  };
  return Object.fromEntries(
    Object.entries(values).map(([name, text]) => [name, text.replace(form, (_, input) => valueOf(input))]),
  );
}

async function runAction(
  given: Readonly<Record<string, string>>,
  ofRunner: Readonly<Record<string, string>> = {},
) {
  const { inputs, runs, outputs } = parse(await readFile(join(ci, 'github/action.yml'), 'utf8'));
  const [step] = runs.steps;
  const files = {
    GITHUB_OUTPUT: join(world.home, 'output'),
    GITHUB_STEP_SUMMARY: join(world.home, 'summary'),
  };
  for (const file of Object.values(files)) await writeFile(file, '');
  const all = { server: world.server.origin, ...given };
  const env = filled(step.env, inputs, all, /\$\{\{ inputs\.([\w-]+) \}\}/);
  const ran = await runScript(step.run, {
    ...env,
    ...files,
    ...ofRunner,
    GITHUB_ACTIONS: 'true',
    CI: 'true',
  });
  const lines = (await readFile(files.GITHUB_OUTPUT, 'utf8')).split('\n').filter(Boolean);
  return {
    ...ran,
    declared: Object.keys(outputs),
    values: Object.fromEntries(lines.map((line) => line.split(/=(.*)/).slice(0, 2))),
    summary: await readFile(files.GITHUB_STEP_SUMMARY, 'utf8'),
  };
}

test('GitHub Actions: with the ID token of the job, no secret is needed, stored or shown', async () => {
  const runner = await startRunner(github);
  const given = { 'key-id': keyless.id, site: keyless.site, visibility: 'public' };
  const { code, out, err, values } = await runAction(given, runner.env);
  expect({ code, err }).toMatchObject({ code: 0 });
  expect(values).toMatchObject({ site: keyless.site, version: '1' });
  expect(out).toBe(`${values['url']}\n`);
  for (const secret of ['_fed_', ...runner.given]) expect(out + err).not.toContain(secret);
  runner.close();
});

test('GitHub Actions: a job of another branch is refused, and one without permission learns what to add', async () => {
  const given = { 'key-id': keyless.id, site: keyless.site, visibility: 'public' };
  const runner = await startRunner(github, { ref: 'refs/heads/topic' });
  const refused = await runAction(given, runner.env);
  runner.close();
  expect({ code: refused.code, values: refused.values }).toEqual({ code: 4, values: {} });
  expect(refused.err).toMatch(/\/settings\/refusals\?requestId=(\S+)[^]*Request: \1/);
  const without = await runAction(given);
  expect({ code: without.code, err: without.err }).toEqual({
    code: 4,
    err: expect.stringContaining('id-token: write'),
  });
});

test('GitHub Actions: the key is masked, the address is an output and in the summary', async () => {
  const { code, out, err, declared, values, summary } = await runAction({ key, visibility: 'public' });
  expect({ code, err }).toMatchObject({ code: 0 });
  const { url = '' } = values;
  expect(out).toBe(`::add-mask::${key}\n${url}\n`);
  expect(err).not.toContain(key);
  expect(Object.keys(values).toSorted()).toEqual(declared.toSorted());
  expect(values).toMatchObject({ site, version: '2', url: expect.stringContaining('http') });
  expect(summary).toBe(`Published version 2: <${url}>\n`);
  expect((await runAction({ key, site })).values).toEqual({ site, url, version: '3' });
});

test('GitHub Actions: without a committed postern.site.json and without a site, nothing is published', async () => {
  const file = join(folder, 'postern.site.json');
  const committed = await readFile(file, 'utf8');
  await rm(file);
  const { code, err, values } = await runAction({ key, visibility: 'public' });
  await writeFile(file, committed);
  expect({ code, values }).toEqual({ code: 2, values: {} });
  expect(err).toContain('commit postern.site.json');
});

test('a service key publishes only with --public, and the refusal says why', async () => {
  const made = await world.browser.api('POST', '/tokens', {
    name: 'pipeline',
    scopes: ['sites:write'],
    repositoryAccess: { mode: 'all' },
  });
  const env = { POSTERN_URL: world.server.origin, POSTERN_KEY: made.data.token };
  const deploy = async (...options: string[]) =>
    await world.postern(['deploy', 'dist', '--name', 'own', ...options], { cwd: folder, env });
  const own = ['--site-file', 'own.json'];
  const refused = await deploy(...own);
  expect(refused).toMatchObject({ code: 2, out: '' });
  expect(refused.err).toContain('The sites of a service key are public');
  expect((await deploy(...own, '--private')).code).toBe(2);
  expect((await deploy(...own, '--public')).code).toBe(0);
});

/** `variables`: of the project. GitLab signs the ID token for the audience that the job names. */
async function runComponent(
  given: Readonly<Record<string, string>>,
  variables: Readonly<Record<string, string>> = {},
) {
  const text = await readFile(join(ci, 'gitlab/templates/deploy.yml'), 'utf8');
  const [{ spec }, jobs] = parseAllDocuments(text).map((document) => document.toJS());
  const job = jobs['publish-with-postern'];
  const all = { server: world.server.origin, visibility: 'public', ...given };
  const form = /\$\[\[ inputs\.([\w-]+) \]\]/;
  const { aud = '' } = filled(job.id_tokens.POSTERN_ID_TOKEN, spec.inputs, all, form);
  const idToken = await idTokenOf(gitlab, aud);
  const ran = await runScript(job.script.join('\n'), {
    ...filled(job.variables, spec.inputs, all, form),
    POSTERN_ID_TOKEN: idToken,
    ...variables,
    GITLAB_CI: 'true',
    CI: 'true',
  });
  const made = await readFile(join(folder, job.artifacts.reports.dotenv), 'utf8');
  expect(job.environment.url).toBe('$SITE_URL');
  return { ...ran, idToken, variables: made };
}

test('GitLab: with the ID token of the job, no secret is needed or shown', async () => {
  const ran = await runComponent({ 'key-id': keyless.id, site: keyless.site });
  const { code, out, err, idToken, variables } = ran;
  expect({ code, err }).toMatchObject({ code: 0 });
  expect(variables).toContain(`SITE_ID=${keyless.site}\n`);
  for (const secret of ['_fed_', idToken]) expect(out + err).not.toContain(secret);
});

test('GitLab: later jobs and the environment have the address as a variable, and no log has the key', async () => {
  const { code, out, err, variables } = await runComponent({}, { POSTERN_KEY: key });
  expect({ code, err }).toMatchObject({ code: 0 });
  expect(out + err).not.toContain(key);
  expect(variables).toMatch(/^SITE_URL=http\S+\nSITE_ID=\w+\nSITE_VERSION=\d+\n$/);
  expect(out).toBe(`${/^SITE_URL=(.*)$/m.exec(variables)?.[1]}\n`);
});
