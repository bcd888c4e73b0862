import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { expect, test } from 'vitest';
import { errorCodes } from '../src/core/errors.ts';

// The rule in one sentence: run → operations → composition → config → surfaces → features → platform → core; a feature uses
// another only through its public file and never in a circle; only composition/ constructs; only config/ reads the environment.
const root = resolve(import.meta.dirname, '..');
const layers = ['core', 'platform', 'features', 'surfaces', 'config', 'composition', 'operations', 'run'];
const entry = 'src/main.ts';
type File = { path: string; text: string; imports: { names: string; target: string }[] };

const files = (readdirSync(join(root, 'src'), { recursive: true }) as string[])
  .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
  .map((name) => read(join('src', name).split(sep).join('/')));

function read(path: string): File {
  const text = readFileSync(join(root, path), 'utf8');
  const found = text.matchAll(/(?:import|export)\s([^;'"]*?)\bfrom\s*'(\.[^']+)'|import\(?\s*'(\.[^']+)'/g);
  const imports = [...found].map(([, names = '', from, bare]) => ({
    names,
    target: relative(root, resolve(root, dirname(path), from ?? bare ?? ''))
      .split(sep)
      .join('/'),
  }));
  return { path, text, imports };
}

const edges = files.flatMap(({ path, imports }) => imports.map((one) => ({ path, ...one })));
const layer = (path: string) => layers.indexOf(path.split('/')[1] ?? '');
const isBuilder = (path: string) => /^src\/(?:composition|operations)\//.test(path);
/** `keys` of src/features/keys/…, `web` of src/surfaces/web/…; undefined elsewhere. */
const part = (path: string) => /^src\/(?:features|surfaces)\/([^/]+)\//.exec(path)?.[1];
const feature = (path: string) => (layer(path) === 2 ? part(path) : undefined);
const isPublicFile = (path: string) => path === `src/features/${feature(path)}/${feature(path)}.ts`;
const print = (found: { path: string; target: string }[]) =>
  found.map((one) => `${one.path} → ${one.target}`);

test('src has no loose file but its entry point, which no file imports', () => {
  expect(files.filter(({ path }) => layer(path) === -1).map(({ path }) => path)).toEqual([entry]);
  expect(print(edges.filter(({ target }) => target === entry))).toEqual([]);
});

test('imports go down: run → operations → composition → config → surfaces → features → platform → core', () => {
  const up = edges.filter(({ path, target }) => path !== entry && layer(target) > layer(path));
  expect(print(up)).toEqual([]);
});

test('a feature uses another feature only through its public file', () => {
  const crossing = edges.filter(
    ({ path, target }) => feature(path) && feature(target) && part(path) !== part(target),
  );
  expect(print(crossing.filter(({ target }) => !isPublicFile(target)))).toEqual([]);
});

/** The circles of what `roomOf` names; edges from or to undefined do not count. */
function circlesOf(roomOf: (path: string) => string | undefined): string[] {
  const uses = new Map<string, Set<string>>();
  for (const { path, target } of edges) {
    const [from, to] = [roomOf(path), roomOf(target)];
    if (from && to && from !== to) uses.set(from, (uses.get(from) ?? new Set()).add(to));
  }
  const circles: string[] = [];
  const walk = (name: string, path: string[]): void => {
    if (path.includes(name)) return void circles.push([...path.slice(path.indexOf(name)), name].join(' → '));
    for (const next of uses.get(name) ?? []) walk(next, [...path, name]);
  };
  for (const name of uses.keys()) walk(name, []);
  return circles;
}

test('features form no circle', () => {
  expect(circlesOf(feature)).toEqual([]);
});

test.each(['environments', 'sites'])(
  'the folders of %s form no circle, and nothing but the public file lies beside them',
  (name) => {
    const folder = (path: string) => (feature(path) === name ? path.split('/')[3] : undefined);
    expect(circlesOf((path) => folder(path)?.replace(/.*\.ts$/, ''))).toEqual([]);
    expect(files.map(({ path }) => folder(path)).filter((one) => one?.endsWith('.ts'))).toEqual([
      `${name}.ts`,
    ]);
  },
);

test('only composition/, and commands of operations/, construct what features and surfaces make', () => {
  const made = edges.filter(
    ({ path, target, names }) =>
      layer(target) >= 2 && !isBuilder(path) && part(path) !== part(target) && /\bcreate[A-Z]\w*/.test(names),
  );
  expect(print(made)).toEqual([]);
});

test('a part of the composition imports features of its group; from other features it imports types only', () => {
  const groups: Record<string, readonly string[]> = {
    audit: ['audit'],
    notices: ['notices'],
    'rate-limits': ['rate-limit'],
    'access-config': ['people', 'settings'],
    keys: ['keys', 'settings'],
    federation: ['federation'],
    repositories: ['repositories'],
    identity: ['accounts', 'keycloak', 'oidc-provider', 'passkeys', 'people'],
    agents: ['agents', 'connections', 'oidc-provider', 'settings'],
    sites: ['grants', 'settings', 'sites'],
    environments: ['builds', 'engine', 'environments', 'grants', 'settings', 'sites'],
    gateway: ['environments', 'grants', 'keys', 'rate-limit', 'settings', 'sites'],
    web: ['settings'],
    'encrypted-tables': ['connections', 'oidc-provider', 'people', 'repositories'],
    'all-routes': ['rate-limit'],
    backends: ['keycloak', 'oidc-provider', 'rate-limit'],
    // These put the parts together.
    app: [],
    'app-settings': [],
    part: [],
    'part-list': [],
    stores: [],
  };
  const isType = (names: string) =>
    /^type\b/.test(names) || /^\{\s*type\b[^,]*(?:,\s*type\b[^,]*)*,?\s*\}/.test(names);
  const used: Record<string, Set<string>> = {};
  for (const { path, target, names } of edges.filter((edge) => edge.path.startsWith('src/composition/'))) {
    const group = (used[path.split('/')[2]?.replace('.ts', '') ?? ''] ??= new Set());
    const name = feature(target);
    if (name !== undefined && !isType(names)) group.add(name);
  }
  const found = Object.entries(used).map(([group, names]) => [group, [...names].toSorted()]);
  expect(Object.fromEntries(found)).toEqual(groups);
});

const app = (readdirSync(join(root, 'ui/src'), { recursive: true }) as string[])
  .filter((name) => /\.tsx?$/.test(name) && !name.endsWith('.test.ts'))
  .map((name) => read(join('ui/src', name).split(sep).join('/')));
const appEdges = app.flatMap(({ path, imports }) => imports.map(({ target }) => ({ path, target })));

test('the web app knows the server only by its API, and shares its rules for the file names', () => {
  const rules = 'src/features/sites/content/paths.ts';
  expect(print(appEdges.filter(({ target }) => !target.startsWith('ui/src/')))).toEqual([
    `ui/src/sites/upload/precheck.ts → ${rules}`,
  ]);
  expect(files.find(({ path }) => path === rules)?.imports).toEqual([]);
});

const commandLine = (readdirSync(join(root, 'cli/src'), { recursive: true }) as string[])
  .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
  .map((name) => read(join('cli/src', name).split(sep).join('/')));
const commandLineEdges = commandLine.flatMap(({ path, imports }) =>
  imports.map(({ target }) => ({ path, target })),
);

test('the command line knows the server only by the verbs that are generated from its routes', () => {
  expect(commandLine.length).toBeGreaterThan(0);
  expect(print(commandLineEdges.filter(({ target }) => !target.startsWith('cli/src/')))).toEqual([]);
});

test('in the command line, imports go down: program → verbs → deploy, environments, sign-in → import, scan, sealed → files → print → http → core', () => {
  const rooms = [
    ['core', 'verbs.json'],
    ['http'],
    ['print'],
    ['files'],
    ['import', 'scan', 'sealed'],
    ['deploy', 'environments', 'sign-in'],
    ['verbs'],
    ['program.ts'],
    ['main.ts'],
  ];
  const room = (path: string) => path.split('/')[2] ?? '';
  const level = (path: string) => rooms.findIndex((names) => names.includes(room(path)));
  expect(commandLine.filter(({ path }) => level(path) < 0).map(({ path }) => path)).toEqual([]);
  const up = commandLineEdges.filter(
    ({ path, target }) => room(target) !== room(path) && level(target) >= level(path),
  );
  expect(print(up)).toEqual([]);
});

test('in the web app, imports go down: router → administration, settings, start → keys, sessions, sites, environments, agents → shell, lists → api', () => {
  const rooms = [
    ['api'],
    ['shell', 'lists'],
    ['keys', 'sessions', 'sites', 'environments', 'agents'],
    ['administration', 'settings', 'start'],
  ];
  const room = (path: string) => path.split('/')[2] ?? '';
  const level = (path: string) =>
    /^ui\/src\/(?:main\.tsx|shell\/router\.tsx)$/.test(path)
      ? rooms.length
      : rooms.findIndex((names) => names.includes(room(path)));
  expect(app.filter(({ path }) => level(path) < 0).map(({ path }) => path)).toEqual([]);
  const inside = appEdges.filter(({ target }) => target.startsWith('ui/src/'));
  const up = inside.filter(({ path, target }) => {
    const isAside = level(target) === level(path) && room(target) !== room(path) && level(path) > 1;
    return level(target) > level(path) || isAside;
  });
  expect(print(up.filter(({ path }) => path !== 'ui/src/main.tsx'))).toEqual([]);
});

test('only config/ reads the environment, and nothing in src imports from test', () => {
  // A service of an Environment, which gets its variables as every service does.
  const database = 'src/features/engine/local/database/program.ts';
  const readers = files.filter(
    ({ path, text }) => !path.startsWith('src/config/') && path !== database && /process\.env\b/.test(text),
  );
  expect(readers.map(({ path }) => path)).toEqual([]);
  expect(print(edges.filter(({ target }) => !target.startsWith('src/')))).toEqual([]);
});

test('only a worker loads the engine for Kubernetes: the composition imports it when it is configured', () => {
  const folder = 'src/features/engine/kubernetes/';
  const engine = edges.filter(({ path, target }) => target.startsWith(folder) && !path.startsWith(folder));
  const store = `${folder}service-log-store.ts`;
  expect(print(engine.filter(({ target }) => target !== store))).toEqual([
    `src/composition/environments/environment-engine.ts → ${folder}kubernetes-engine.ts`,
  ]);
  const opener = files.find(({ path }) => path === 'src/composition/environments/environment-engine.ts');
  expect(/await import\(\s*'[^']*\/kubernetes-engine\.ts'/.test(opener?.text ?? '')).toBe(true);
  const clients = files.filter(({ text }) => text.includes("'@kubernetes/client-node'"));
  expect(clients.filter(({ path }) => !path.startsWith(folder)).map(({ path }) => path)).toEqual([]);
});

test('every error code is one that Postern produces', () => {
  // A list of a route declares codes; it does not produce them.
  const declared = /(?:errors:|ErrorCode\[\] =) \[[^\]]*\]/g;
  const producers = files
    .filter(({ path }) => !/^src\/(?:core\/errors|surfaces\/web\/openapi\/codes)\.ts$/.test(path))
    .map(({ text }) => text.replaceAll(declared, ''))
    .join('\n');
  expect(errorCodes.filter((code) => !producers.includes(`'${code}'`))).toEqual([]);
});

test('no test replaces a module with vi.mock: the files of one process share their modules', () => {
  const tests = ['src', 'test'].flatMap((folder) =>
    (readdirSync(join(root, folder), { recursive: true }) as string[])
      .filter((name) => name.endsWith('.ts'))
      .map((name) => join(folder, name)),
  );
  const uses = (path: string) => readFileSync(join(root, path), 'utf8').includes(`vi.${'mock'}(`);
  expect(tests.filter(uses), 'use test/replace-builtin.ts, or pass the dependency as an argument').toEqual(
    [],
  );
});
