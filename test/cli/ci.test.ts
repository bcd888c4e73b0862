import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { openWorld, type World } from './command-line.ts';

// The steps of deploy/ci, as the runners would run them: with a service key, against a real server.
const ci = join(import.meta.dirname, '../../deploy/ci');
let world: World;
let key: string;
let sha256: string;
let folder: string;

beforeAll(async () => {
  world = await openWorld();
  const made = await world.browser.api('POST', '/tokens', {
    name: 'pipeline',
    scopes: ['sites:write'],
    repositoryAccess: { mode: 'all' },
  });
  key = made.data.token;
  sha256 = (await (await fetch(`${world.server.origin}/cli/postern.mjs.sha256`)).text()).slice(0, 64);
  folder = join(world.home, 'project');
  await mkdir(join(folder, 'dist'), { recursive: true });
  await mkdir(join(world.home, 'bin'));
  await symlink(process.execPath, join(world.home, 'bin/node'));
  await writeFile(join(folder, 'dist/index.html'), '<h1>Pipeline</h1>');
});
afterAll(async () => await world?.close());

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

async function runAction(given: Readonly<Record<string, string>>) {
  const { inputs, runs, outputs } = parse(await readFile(join(ci, 'github/action.yml'), 'utf8'));
  const [step] = runs.steps;
  const files = {
    GITHUB_OUTPUT: join(world.home, 'output'),
    GITHUB_STEP_SUMMARY: join(world.home, 'summary'),
  };
  for (const file of Object.values(files)) await writeFile(file, '');
  const all = { server: world.server.origin, key, sha256, ...given };
  const env = filled(step.env, inputs, all, /\$\{\{ inputs\.(\w+) \}\}/);
  const ran = await runScript(step.run, { ...env, ...files, GITHUB_ACTIONS: 'true' });
  const lines = (await readFile(files.GITHUB_OUTPUT, 'utf8')).split('\n').filter(Boolean);
  return {
    ...ran,
    declared: Object.keys(outputs),
    values: Object.fromEntries(lines.map((line) => line.split(/=(.*)/).slice(0, 2))),
    summary: await readFile(files.GITHUB_STEP_SUMMARY, 'utf8'),
  };
}

test('GitHub Actions: the key is masked, the address is an output and in the summary', async () => {
  const { code, out, err, declared, values, summary } = await runAction({ visibility: 'public' });
  expect({ code, err }).toMatchObject({ code: 0 });
  const { url = '', site = '' } = values;
  expect(out).toBe(`::add-mask::${key}\n${url}\n`);
  expect(err).not.toContain(key);
  expect(Object.keys(values).toSorted()).toEqual(declared.toSorted());
  expect(values).toMatchObject({ version: '1', url: expect.stringContaining('http') });
  expect(summary).toBe(`Published version 1: <${url}>\n`);
  expect((await runAction({ site })).values).toEqual({ site, url, version: '2' });
});

test('GitHub Actions: another command line than the one written down does not run', async () => {
  const { code, values } = await runAction({ sha256: '0'.repeat(64) });
  expect(code).not.toBe(0);
  expect(values).toEqual({});
});

test('GitLab: the address is a variable of later jobs and of the environment, and no log has the key', async () => {
  const text = await readFile(join(ci, 'gitlab/templates/deploy.yml'), 'utf8');
  const [{ spec }, jobs] = parseAllDocuments(text).map((document) => document.toJS());
  const job = jobs['publish-with-postern'];
  const given = { server: world.server.origin, sha256, visibility: 'public' };
  const env = filled(job.variables, spec.inputs, given, /\$\[\[ inputs\.(\w+) \]\]/);
  const { code, out, err } = await runScript(job.script.join('\n'), {
    ...env,
    POSTERN_KEY: key,
    GITLAB_CI: 'true',
  });
  expect({ code, err }).toMatchObject({ code: 0 });
  expect(out + err).not.toContain(key);
  const variables = await readFile(join(folder, job.artifacts.reports.dotenv), 'utf8');
  expect(variables).toMatch(/^SITE_URL=http\S+\nSITE_ID=\w+\nSITE_VERSION=\d+\n$/);
  expect(job.environment.url).toBe('$SITE_URL');
  expect(out).toBe(`${/^SITE_URL=(.*)$/m.exec(variables)?.[1]}\n`);
  const wrong = await runScript(job.script.join('\n'), { ...env, SHA256: '0'.repeat(64), POSTERN_KEY: key });
  expect(wrong.out).not.toContain('http');
  expect(wrong.code).not.toBe(0);
});
