import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type Overrides, plan } from './plan.ts';
import { readConfigurationFile } from './read.ts';
import { unsupportedIn } from './unsupported.ts';

const folder = join(import.meta.dirname, 'golden');
const commit = { branch: 'feature/search', sha: '0123456789abcdef0123456789abcdef01234567' };
const policy = { defaultTtlHours: 72, maxTtlHours: 336, allowedAccess: ['owner', 'members'] } as const;
const noOverrides: Overrides = { access: null, ttlHours: null, services: [], env: {}, initEnv: {} };

function fileOf(text: string) {
  const read = readConfigurationFile(text);
  if (read.kind === 'invalid') throw new Error(JSON.stringify(read.problems));
  return read.file;
}

const services = (...lines: string[]) => fileOf(['version: 1', 'services:', ...lines].join('\n'));
const node = 'build: { image: "node:24" }, run: { command: node ., port: 80 }';
const planned = (file: ReturnType<typeof services>, overrides: Partial<Overrides> = {}) =>
  plan(file, commit, policy, { ...noOverrides, ...overrides });

describe('what an Environment should be', () => {
  // A changed plan rebuilds or restarts services: read the difference before you accept it with `-u`.
  test.each<[name: string, overrides: Partial<Overrides>]>([
    ['shop', {}],
    [
      'shop-changed',
      {
        access: 'owner',
        ttlHours: 500,
        env: { LOG_LEVEL: 'trace', LITERAL: '${services.api.url}' },
        initEnv: { BUILD_FLAVOUR: 'fast' },
        services: [
          { name: 'admin', isActive: false },
          { name: 'payments', url: 'http://payments.example:8080/test' },
        ],
      },
    ],
  ])('the plan of golden/%s.plan.txt', async (name, overrides) => {
    const file = fileOf(readFileSync(join(folder, 'shop.yaml'), 'utf8'));
    const text = `${JSON.stringify(planned(file, overrides), null, 2)}\n`;
    await expect(text).toMatchFileSnapshot(join(folder, `${name}.plan.txt`));
  });
});

describe('services', () => {
  const chain = services(
    `  web: { ${node}, requires: [api] }`,
    `  api: { ${node}, requires: [cache, queue] }`,
    `  cache: { ${node} }`,
    `  queue: { ${node}, requires: [cache] }`,
  );

  test('start after everything that they require, and together where they can', () => {
    expect(planned(chain).levels).toEqual([['cache'], ['queue'], ['api'], ['web']]);
    const flat = services(`  a: { ${node} }`, `  b: { ${node} }`, `  c: { ${node}, requires: [a] }`);
    expect(planned(flat).levels).toEqual([['a', 'b'], ['c']]);
  });

  test('that run elsewhere do not start', () => {
    const file = services(
      '  docs: { external: { url: "https://docs.example.com" } }',
      `  api: { ${node}, requires: [docs] }`,
    );
    expect(planned(file).levels).toEqual([['api']]);
  });

  test('that are switched off are active where an active one requires them', () => {
    const off = (...names: string[]) => ({ services: names.map((name) => ({ name, isActive: false })) });
    expect(planned(chain, off('cache', 'queue')).levels.flat().toSorted()).toEqual([
      'api',
      'cache',
      'queue',
      'web',
    ]);
    expect(planned(chain, off('web', 'api')).levels).toEqual([['cache'], ['queue']]);
  });

  test('that this commit does not have are ignored in what people changed', () => {
    expect(planned(chain, { services: [{ name: 'gone', isActive: false }] })).toEqual(planned(chain));
  });
});

describe('access', () => {
  const withAccess = (access: string) =>
    fileOf(`version: 1\nenvironment: { access: ${access} }\nservices:\n  web: { build: {}, static: {} }`);

  test.each([
    ['public', ['owner', 'members', 'public'], 'public'],
    ['public', ['owner', 'members'], 'members'],
    ['public', ['owner'], 'owner'],
    ['members', ['owner', 'public'], 'owner'],
    ['owner', ['members', 'public'], 'owner'],
  ] as const)('%s is at most what the policy allows (%s): %s', (access, allowedAccess, expected) => {
    expect(plan(withAccess(access), commit, { ...policy, allowedAccess }, noOverrides).access).toBe(expected);
  });

  test('a file that widens access later does not widen that of an Environment', () => {
    const allowing = { ...policy, allowedAccess: ['owner', 'members', 'public'] } as const;
    const current = { ...noOverrides, access: 'owner' } as const;
    expect(plan(withAccess('public'), commit, allowing, current).access).toBe('owner');
  });
});

test('the lease is that of the file, or the policy’s default, and at most the policy’s maximum', () => {
  const site = (hours: string) =>
    fileOf(`version: 1\nenvironment: { ${hours} }\nservices:\n  web: { build: {}, static: {} }`);
  expect(planned(site('ttlHours: 48')).ttlHours).toBe(48);
  expect(planned(site('')).ttlHours).toBe(72);
  expect(planned(site('ttlHours: 500')).ttlHours).toBe(336);
  expect(planned(site('ttlHours: 48'), { ttlHours: 5 }).ttlHours).toBe(5);
});

test.each([
  ['cpu: 500m, memory: 256Mi', { milliCpu: 500, memoryBytes: 268_435_456 }],
  ['cpu: 1.5, memory: 2Gi', { milliCpu: 1_500, memoryBytes: 2_147_483_648 }],
  ['', { milliCpu: null, memoryBytes: null }],
])('the resources { %s } are amounts with units', (resources, expected) => {
  const { api } = planned(
    services(
      `  api: { build: { image: node }, run: { command: node ., port: 80, resources: { ${resources} } } }`,
    ),
  ).services;
  expect(api).toMatchObject({ run: expected });
});

describe('the digest of a build', () => {
  const digestOf = (build: string, more = '', overrides: Partial<Overrides> = {}) => {
    const { web } = planned(
      services(`  web: { build: { image: node, ${build} }, static: {}${more} }`),
      overrides,
    ).services;
    return web?.kind === 'static' ? web.build.digest : undefined;
  };
  const same = digestOf('command: make');

  test('stays when nothing changes that decides about the result', () => {
    expect(digestOf('command: make, directory: ./')).toBe(same);
    expect(digestOf('command: make', ', routes: {}, exposed: false')).toBe(same);
    expect(digestOf('inputs: [a, b]')).toBe(digestOf('inputs: [b, a]'));
  });

  test.each([
    ['the command', 'command: make all', ''],
    ['the folder', 'command: make, directory: web', ''],
    ['the output', 'command: make, output: dist', ''],
    ['the inputs', 'command: make, inputs: [web]', ''],
    ['a secret', 'command: make, secrets: { A: a }', ''],
    ['the name of a variable', 'command: make', ', env: { A: x }'],
  ])('changes with %s', (_title, build, more) => {
    expect(digestOf(build, more)).not.toBe(same);
  });

  test('does not depend on the values of variables, which a worker adds as HMACs', () => {
    expect(digestOf('command: make', ', env: { A: x }')).toBe(digestOf('command: make', ', env: { A: y }'));
  });

  test('of files that are used as they are depends on no variable', () => {
    expect(digestOf('output: dist', ', env: { A: x }')).toBe(digestOf('output: dist'));
  });

  test('of a process depends on none of its variables: they exist when it runs', () => {
    const digest = (env: string) => {
      const { api } = planned(services(`  api: { ${node}, env: { ${env} } }`)).services;
      return api?.kind === 'process' ? api.build.digest : undefined;
    };
    expect(digest('A: x')).toBe(digest(''));
  });
});

describe('what this version cannot deploy', () => {
  test('is a sentence for each service, and the file is valid nevertheless', () => {
    const file = fileOf(readFileSync(join(folder, 'every-kind.yaml'), 'utf8'));
    expect(unsupportedIn(file, false)[0]).toEqual({
      service: 'db',
      message: 'The service db is a database, and this installation has none for Environments.',
      fix: 'Ask an administrator to set ENVIRONMENTS_DATABASE_URL, or use a database that runs elsewhere, as an external service.',
    });
    expect(unsupportedIn(file)).toEqual([
      {
        service: 'legacy',
        message: 'The service legacy is built from a Dockerfile, which this version of Postern cannot do.',
        fix: 'Use build.image and build.command, and start it with run.command.',
      },
    ]);
    const image = services('  cache: { image: "redis:8", run: { port: 6379 } }');
    expect(unsupportedIn(image)).toMatchObject([{ service: 'cache' }]);
    const ofNode = (replicas: number) =>
      unsupportedIn(services(`  api: { ${node.replace(/run: \{/, `run: { replicas: ${replicas},`)} }`));
    expect(ofNode(2)).toEqual([
      {
        service: 'api',
        message: 'The service api runs 2 processes, which this version of Postern cannot do.',
        fix: 'Remove run.replicas: a service has one process.',
      },
    ]);
    expect(ofNode(1)).toEqual([]);
  });
});
