import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { allRoutes } from '../../src/composition/all-routes.ts';
import { version } from '../../src/platform/version.ts';
import { buildOpenApi } from '../../src/surfaces/web/openapi/openapi.ts';
import { zipOf } from '../archives/zip.ts';
import { Browser } from '../faults/browser.ts';
import { administrator, freePorts, type Program, startProgram } from '../faults/program.ts';
import { installPackages, openapiGenerator, packages, run, runPackage } from './generators.ts';

const programs = join(import.meta.dirname, 'programs');
let folder: string;
let server: Program;
let environment: Record<string, string>;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'postern-clients-'));
  installPackages();
  server = await startProgram({ dataDir: join(folder, 'data'), ports: await freePorts() });
  const document = buildOpenApi({ routes: await allRoutes(), version, serverUrl: server.origin });
  await writeFile(join(folder, 'document.json'), JSON.stringify(document));
  const browser = new Browser(server.origin);
  await browser.signIn(administrator.email, administrator.password);
  const key = await browser.api('POST', '/me/tokens', {
    name: 'clients',
    scopes: ['env:write', 'sites:write', 'repos:write'],
    repositoryAccess: { mode: 'all' },
  });
  const body = zipOf([{ name: 'index.html', content: '<p>served</p>' }]);
  const site = await browser.upload('/sites?name=served&visibility=public', 'application/zip', body);
  environment = { POSTERN_URL: server.origin, POSTERN_KEY: key.data.token, POSTERN_SITE: site.data.id };
});

afterAll(async () => {
  await server?.end('SIGTERM');
  await rm(folder, { recursive: true, force: true });
});

async function ownFolder(name: string): Promise<string> {
  const made = join(folder, name);
  await mkdir(made);
  return made;
}

/** What every program prints: the same twelve routes, and one that answers 404. */
function parsed(name: string) {
  return {
    keyName: 'clients',
    created: `acme/${name}`,
    repositories: 1,
    environmentDefaults: null,
    maxUploadBytes: expect.any(Number),
    site: [`from ${name}`, 'empty'],
    listed: true,
    noVersion: true,
    restorableUntil: null,
    versions: 1,
    served: 1,
    extended: true,
    deleted: ['deleted', true],
    failure: ['site_not_found', true],
  };
}

test('openapi-generator makes a client for Go that compiles and parses', async () => {
  const made = await ownFolder('go');
  await openapiGenerator('go', made);
  const program = await ownFolder('go-program');
  await cp(join(programs, 'main.go'), join(program, 'main.go'));
  const local = { GOTOOLCHAIN: 'local', GOFLAGS: '-mod=mod', GOWORK: 'off' };
  await run('go', ['mod', 'edit', '-module=postern'], made);
  await run('go', ['mod', 'init', 'program'], program, local);
  await run('go', ['mod', 'edit', '-require=postern@v0.0.0', '-replace=postern=../go'], program, local);
  await run('go', ['build', '-o', 'program', '.'], program, local);
  const printed = await run(join(program, 'program'), [], program, environment);
  expect(JSON.parse(printed)).toEqual(parsed('go'));
});

test('openapi-generator makes a client for Python that parses', async () => {
  const made = await ownFolder('python');
  await openapiGenerator('python', made);
  await run('python3', ['-m', 'venv', 'venv'], made);
  const python = join(made, 'venv/bin/python');
  await run(
    python,
    ['-m', 'pip', 'install', '-q', '--disable-pip-version-check', '-r', 'requirements.txt'],
    made,
  );
  await cp(join(programs, 'client.py'), join(made, 'client.py'));
  expect(JSON.parse(await run(python, ['client.py'], made, environment))).toEqual({
    ...parsed('python'),
    environmentDefaults: {},
  });
});

test('openapi-typescript makes types with which openapi-fetch compiles and parses', async () => {
  const made = await ownFolder('openapi-fetch');
  await runPackage('openapi-typescript/bin/cli.js', ['../document.json', '-o', 'schema.d.ts'], made);
  expect(await compiledAndRun(made, 'openapi-fetch')).toEqual(parsed('fetch'));
});

test('openapi-ts of Hey API makes functions that compile and parse', async () => {
  const made = await ownFolder('hey-api');
  const options = ['-i', '../document.json', '-o', 'sdk', '-c', '@hey-api/client-fetch'];
  await symlink(packages, join(made, 'node_modules'));
  await runPackage('@hey-api/openapi-ts/bin/run.js', options, made);
  expect(await compiledAndRun(made, 'hey-api')).toEqual(parsed('hey'));
});

async function compiledAndRun(made: string, name: string): Promise<unknown> {
  await cp(join(programs, `${name}.ts`), join(made, `${name}.ts`));
  await rm(join(made, 'node_modules'), { force: true });
  await symlink(packages, join(made, 'node_modules'));
  await writeFile(join(made, 'package.json'), '{"type":"module"}');
  const options = ['--strict', '--target', 'es2024', '--module', 'esnext', '--moduleResolution', 'bundler'];
  await runPackage('typescript/bin/tsc', [...options, '--outDir', 'built', `${name}.ts`], made);
  return JSON.parse(await run(process.execPath, [`built/${name}.js`], made, environment));
}
