import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { maxProblems, type Problem } from './problem.ts';
import { maxFileBytes, readConfigurationFile } from './read.ts';
import { maxTokens, maxValues } from './yaml-text.ts';

const everyKind = readFileSync(join(import.meta.dirname, 'golden/every-kind.yaml'), 'utf8');
const site = '  web: { build: { directory: web }, static: {} }';
const process = (more = '') =>
  `{ build: { image: "node:24" }, run: { command: node server.js, port: 8080 }${more} }`;

function problemsOf(text: string): readonly Problem[] {
  const read = readConfigurationFile(text);
  return read.kind === 'valid' ? [] : read.problems;
}

/** The file without the mark ▸, and the line and column of the mark. */
function marked(text: string): { file: string; line: number; column: number } {
  const [before = ''] = text.split('▸', 1);
  const file = text.replace('▸', '');
  return { file, line: before.split('\n').length, column: before.length - before.lastIndexOf('\n') };
}

/** One file for each way to break a rule: the only problem is at ▸. */
type Row = readonly [title: string, text: string, message: string, fix: string];

function everyRowIsFound(rule: string, rows: readonly Row[]): void {
  test.each(rows)(`${rule}: %s`, (_title, text, message, fix) => {
    const { file, line, column } = marked(text);
    expect(problemsOf(file)).toEqual([{ line, column, path: expect.any(String), rule, message, fix }]);
  });
}

const services = (...lines: string[]) => ['version: 1', 'services:', ...lines].join('\n');

describe('a file that is right', () => {
  test('the example with every kind of service is valid', () => {
    expect(problemsOf(everyKind)).toEqual([]);
  });

  test('what is absent has its default', () => {
    expect(readConfigurationFile(services(`  api: ${process()}`))).toMatchObject({
      kind: 'valid',
      file: {
        environment: { autoTrack: true, access: 'members', env: {} },
        services: { api: { build: { directory: '.', output: '.' }, run: { replicas: 1 }, requires: [] } },
      },
    });
  });

  test('CRLF, a byte order mark, comments and letters of every language are fine', () => {
    expect(problemsOf(`\ufeff${everyKind.replaceAll('\n', '\r\n')}# Größe → ∞ 🚀\r\n`)).toEqual([]);
  });

  test('an alias stands for its anchor', () => {
    const read = readConfigurationFile(
      services(
        '  a: { build: &node { image: "node:24" }, run: &start { command: node ., port: 80 } }',
        '  b: { build: *node, run: *start }',
      ),
    );
    expect(read).toMatchObject({
      file: { services: { b: { build: { image: 'node:24' }, run: { port: 80 } } } },
    });
  });

  test('$${ is a literal ${, and a lonely $ is itself', () => {
    expect(
      problemsOf(services(`  api: ${process(', env: { A: "$${HOME} $5 $", B: "${services.api.url}" }')}`)),
    ).toEqual([]);
  });
});

describe('every rule names the place, the mistake and the fix', () => {
  everyRowIsFound('yaml', [
    [
      'a tab',
      services('\t▸web: {}').replace('\t▸', '▸\t'),
      'The line is indented with a tab.',
      'Indent it with spaces.',
    ],
    [
      'two documents',
      `${services(site)}\n▸---\nversion: 1\n`,
      'The file has more than one YAML document.',
      'Remove the line --- and everything after it.',
    ],
    [
      'a tag',
      `version: ▸!one 1\nservices:\n${site}`,
      'YAML tags (!name) are not supported.',
      'Remove the tag.',
    ],
    [
      'a merge key',
      services(site, '  ▸<<: {}'),
      'Merge keys (<<) are not supported.',
      'Write the fields out, or use environment.env for variables of every service.',
    ],
    [
      'a list as a name',
      services(site, '  ▸[a]: 1'),
      'The name of a field is a list or a map.',
      'Write a plain name, such as web.',
    ],
  ]);

  everyRowIsFound('duplicate_field', [
    [
      'a service that is there twice',
      services(site, '  ▸web: 1'),
      'The field web is here twice.',
      'Keep one of them.',
    ],
  ]);

  everyRowIsFound('alias', [
    [
      'without an anchor',
      services(`  web: ${process(', requires: ▸*none').replace(' }', ' }')}`),
      'There is no anchor &none above this alias.',
      'Write &none before the value.',
    ],
  ]);

  everyRowIsFound('encoding', [
    [
      'a control character',
      services(`${site} # ▸\u0007`),
      'The file is not UTF-8, or contains a control character.',
      'Save the file as UTF-8 text.',
    ],
    [
      'bytes of another encoding',
      services(`${site} # Gr▸\ufffdn`),
      'The file is not UTF-8, or contains a control character.',
      'Save the file as UTF-8 text.',
    ],
  ]);

  everyRowIsFound('unknown_field', [
    [
      'of the file',
      `version: 1\n▸service: {}\nservices:\n${site}`,
      'service is not a field of the file.',
      'Did you mean services?',
    ],
    [
      'of a service',
      services('  web: { build: {}, static: {}, ▸route: {} }'),
      'route is not a field of services.web.',
      'Did you mean routes?',
    ],
    [
      'of a build',
      services('  web: { build: { ▸xyz: 1 }, static: {} }'),
      'xyz is not a field of services.web.build.',
      'Remove it. The fields here are image, command, directory, output, inputs, secrets, dockerfile, target.',
    ],
    [
      'of the Environment',
      `version: 1\nenvironment: { ▸ttlHuors: 5 }\nservices:\n${site}`,
      'ttlHuors is not a field of environment.',
      'Did you mean ttlHours?',
    ],
  ]);

  everyRowIsFound('required', [
    [
      'the port',
      services('  api:', '    build: { image: node }', '    ▸run: { command: node . }'),
      'port is required.',
      'Write, for example, port: 8080',
    ],
    [
      'the address',
      services('  docs: { ▸external: {} }'),
      'url is required.',
      'Write, for example, url: https://docs.example.com',
    ],
  ]);

  everyRowIsFound('type', [
    [
      'a number as a variable',
      `version: 1\nenvironment: { env: { A: ▸1.10 } }\nservices:\n${site}`,
      'A is a number; it must be text.',
      'Put the value into quotation marks.',
    ],
    [
      'an empty service',
      services('  ▸web:'),
      'web is empty; it must be a map of fields.',
      'Correct the value.',
    ],
    [
      'a word as a switch',
      services('  web: { build: {}, static: { spa: ▸yes } }'),
      'spa is text; it must be true or false.',
      'Write, for example, spa: true',
    ],
    [
      'a fraction as hours',
      `version: 1\nenvironment: { ttlHours: ▸1.5 }\nservices:\n${site}`,
      'ttlHours is a number; it must be a whole number.',
      'Write, for example, ttlHours: 48',
    ],
  ]);

  const resources = (text: string) =>
    services(
      '  api:',
      '    build: { image: node }',
      `    run: { command: node ., port: 80, resources: { ${text} } }`,
    );
  everyRowIsFound('value', [
    [
      'another version',
      `version: ▸2\nservices:\n${site}`,
      'version must be 1.',
      'Write, for example, version: 1',
    ],
    [
      'no services',
      'version: 1\n▸services: {}',
      'services must have at least one service.',
      'Correct the value.',
    ],
    [
      'an unknown access',
      `version: 1\nenvironment: { access: ▸member }\nservices:\n${site}`,
      'access must be one of: owner, members, public.',
      'Did you mean members?',
    ],
    [
      'too long a lease',
      `version: 1\nenvironment: { ttlHours: ▸8761 }\nservices:\n${site}`,
      'ttlHours must be at most 8760.',
      'Write, for example, ttlHours: 48',
    ],
    [
      'a port',
      services('  api:', '    build: { image: node }', '    run: { command: node ., port: ▸65536 }'),
      'port must be at most 65535.',
      'Write, for example, port: 8080',
    ],
    [
      'an amount of processors',
      resources('cpu: ▸half'),
      'cpu must be a number of processors, such as 500m (half of one) or 2.',
      'Write, for example, cpu: 500m',
    ],
    [
      'no processors',
      resources('cpu: ▸true'),
      'cpu must be a number of processors, such as 500m (half of one) or 2.',
      'Write, for example, cpu: 500m',
    ],
    [
      'an amount of memory',
      resources('memory: ▸256MB'),
      'memory must be an amount of memory, such as 256Mi or 2Gi.',
      'Write, for example, memory: 256Mi',
    ],
    [
      'an external address',
      services('  docs: { external: { url: ▸"ftp://x" } }'),
      'url must be an http or https URL without a user name.',
      'Write, for example, url: https://docs.example.com',
    ],
    [
      'an external address with a password',
      services('  docs: { external: { url: ▸"https://a:b@x.example" } }'),
      'url must be an http or https URL without a user name.',
      'Write, for example, url: https://docs.example.com',
    ],
    [
      'the name of a secret',
      services(`  api: ${process(', secrets: { A: ▸../etc/passwd }')}`),
      'A must be the name of a stored secret: a–z, 0–9 and -, such as stripe-test.',
      'Correct the value.',
    ],
    [
      'a path of health',
      services('  api:', '    build: { image: node }', '    run: { command: node ., port: 80, health: ▸ok }'),
      'health must be a path that begins with /, such as /healthz.',
      'Write, for example, health: /healthz',
    ],
    [
      'a requirement twice',
      services(site, `  api: ${process(', ▸requires: [web, web]')}`),
      'requires must not name a service twice.',
      'Write, for example, requires: ["db"]',
    ],
  ]);

  const inside = 'must be a relative path that stays inside the repository.';
  everyRowIsFound('value', [
    ...['..', 'a/../../b', '/etc', '"C:/x"', '~/x', 'a\\b', '"a\\0b"', '../../x/**'].map(
      (path): Row => [
        `the folder ${path}`,
        services(`  web: { build: { directory: ▸${path} }, static: {} }`),
        `directory ${inside}`,
        'Write, for example, directory: web',
      ],
    ),
    [
      'an output',
      services('  web: { build: { output: ▸../x }, static: {} }'),
      `output ${inside}`,
      'Write, for example, output: dist',
    ],
    [
      'an input',
      services('  web: { build: { inputs: [web, ▸../x/**] }, static: {} }'),
      `An entry of inputs ${inside}`,
      'Correct the value.',
    ],
    [
      'a seed',
      services('  db: { postgres: { seed: ▸/etc/passwd } }'),
      `seed ${inside}`,
      'Write, for example, seed: db/seed.sql',
    ],
  ]);

  const nameOfService =
    'it must begin with a letter, end with a letter or digit, and have only a–z, 0–9 and -.';
  everyRowIsFound('name', [
    ...['Web', '1st', 'a_b', 'a-', 'ä'].map(
      (name): Row => [
        `the service ${name}`,
        services(`  ▸${name}: ${process()}`),
        `${name} has a name that is not valid: ${nameOfService}`,
        'Choose another name.',
      ],
    ),
    [
      '41 letters',
      services(`  ▸${'a'.repeat(41)}: ${process()}`),
      `${'a'.repeat(41)} has a name that is not valid: it must be at most 40 characters long.`,
      'Choose another name.',
    ],
    [
      'a variable',
      services(`  api: ${process(', env: { ▸PORT: "1" }')}`),
      'PORT has a name that is not valid: it must have only letters, digits and _, must not begin with a digit, and must not be PORT, which Postern sets.',
      'Choose another name.',
    ],
    [
      'a field of JavaScript',
      services(site, '  ▸__proto__: {}'),
      'No field can have the name __proto__.',
      'Choose another name.',
    ],
    ...['api', '/', '/api/', '/a//b', '/../b', '/.postern/x'].map(
      (path): Row => [
        `the route ${path}`,
        services(site, `  api: ${process(`, routes: { ▸${path}: web }`)}`),
        `${path} has a name that is not valid: it must be a path such as /api: it begins with /, does not end with /, and is not below /.postern.`,
        'Choose another name.',
      ],
    ),
  ]);

  everyRowIsFound('kind', [
    [
      'none',
      services('  ▸web: { requires: [] }'),
      'web has no kind.',
      'Add one of static, run, postgres, external.',
    ],
    [
      'two',
      services('  web: { postgres: {}, ▸external: { url: "https://x.example" } }'),
      'web has both postgres and external.',
      'Keep one of them.',
    ],
    [
      'secrets of a static service',
      services('  web: { build: {}, static: {}, ▸secrets: {} }'),
      'secrets does not fit web, which is a static service.',
      'Remove secrets.',
    ],
    [
      'variables of a database',
      services('  db: { postgres: {}, ▸env: {} }'),
      'env does not fit db, which is a database.',
      'Remove env.',
    ],
    [
      'an address of a database',
      services('  db: { postgres: {}, ▸exposed: true }'),
      'A database has no web address.',
      'Remove exposed.',
    ],
    [
      'a static service without files',
      services('  ▸web: { static: {} }'),
      'web has no files.',
      'Add build, with the directory and output of the files.',
    ],
    [
      'a process without files',
      services('  ▸api: { run: { port: 80 } }'),
      'api has nothing to run.',
      'Add build, or image for a ready image.',
    ],
    [
      'build and image',
      services(`  api: ${process(', ▸image: redis')}`),
      'api has both build and image.',
      'Keep one. The image of a build is build.image.',
    ],
    [
      'a command without an image',
      services('  web: { ▸build: { command: make }, static: {} }'),
      'web does not say in which image it runs.',
      'Add build.image, for example node:24.',
    ],
    [
      'a process without an image',
      services('  api: { ▸build: {}, run: { command: node ., port: 80 } }'),
      'api does not say in which image it runs.',
      'Add build.image, for example node:24.',
    ],
    [
      'a process without a command',
      services('  api: { build: { image: node }, ▸run: { port: 80 } }'),
      'api has no command to start.',
      'Add run.command, for example node server.js.',
    ],
    [
      'a static Dockerfile',
      services('  web: { build: { ▸dockerfile: Dockerfile }, static: {} }'),
      'A Dockerfile makes no static service.',
      'Use image, command and output.',
    ],
    [
      'a command beside a Dockerfile',
      services('  web: { build: { dockerfile: Dockerfile, ▸command: make }, run: { port: 80 } }'),
      'command has no meaning beside a Dockerfile.',
      'Remove command, or dockerfile.',
    ],
    [
      'a target without a Dockerfile',
      services('  web: { build: { ▸target: prod }, static: {} }'),
      'target has no meaning without a Dockerfile.',
      'Remove target.',
    ],
    [
      'a variable twice',
      services(`  api: ${process(', env: { A: x }, secrets: { ▸A: a }')}`),
      'The variable A is in env and in secrets.',
      'Keep one of them.',
    ],
  ]);

  everyRowIsFound('unknown_service', [
    [
      'a requirement',
      services(`  api: ${process(', requires: [▸bd]')}`, '  db: { postgres: {} }'),
      'There is no service bd.',
      'Did you mean db?',
    ],
    [
      'a route',
      services(site, `  api: ${process(', routes: { /x: ▸somewhere }')}`),
      'There is no service somewhere.',
      'The services are web, api.',
    ],
    [
      'a reference',
      services(`  api: ${process(', env: { A: ▸"${services.ap.url}" }')}`),
      'There is no service ap.',
      'Did you mean api?',
    ],
  ]);

  const breakIt = 'Remove one of these requirements or references. A process finds its own port in PORT.';
  everyRowIsFound('circle', [
    [
      'of one',
      services(`  api: ${process(', requires: [▸api]')}`),
      'These services wait for each other: api → api.',
      breakIt,
    ],
    [
      'of three',
      services(
        `  a: ${process(', requires: [b]')}`,
        `  b: ${process(', requires: [c]')}`,
        `  c: ${process(', requires: [▸a]')}`,
      ),
      'These services wait for each other: a → b → c → a.',
      breakIt,
    ],
    [
      'of addresses',
      services(
        `  a: ${process(', env: { B: "http://${services.b.host}:${services.b.port}" }')}`,
        `  b: ${process(', env: { A: ▸"${services.a.host}", PORT_OF_A: "${services.a.port}" }')}`,
      ),
      'These services wait for each other: a → b → a.',
      breakIt,
    ],
    [
      'of an address and a requirement',
      services(
        `  a: ${process(', requires: [b]')}`,
        `  b: ${process(', env: { A: ▸"${services.a.port}" }')}`,
      ),
      'These services wait for each other: a → b → a.',
      breakIt,
    ],
    [
      'of a process and its own address, which it gets from the variables of all',
      [
        'version: 1',
        'environment: { env: { API: ▸"${services.api.host}" } }',
        'services:',
        `  web: ${process()}`,
        `  api: ${process()}`,
      ].join('\n'),
      'These services wait for each other: api → api.',
      breakIt,
    ],
  ]);

  test.each([
    ['URLs, which are known before anything starts', 'env: { A: "${services.a.url}" }'],
    ['the same address twice, in one direction', 'env: { C: "${services.c.port}" }, requires: [c]'],
    ['a variable of all that the process replaces', 'env: { B: own }'],
    ['a variable of all that a secret replaces', 'secrets: { B: own }'],
  ])('no circle: %s', (_title, fields) => {
    const shared = /B: own/.test(fields) ? 'environment: { env: { B: "${services.b.port}" } }\n' : '';
    const file = [
      `version: 1\n${shared}services:`,
      ...(shared === '' ? [`  a: ${process(', env: { B: "${services.b.port}" }')}`] : []),
      `  b: ${process(`, ${fields}`)}`,
      `  c: ${process()}`,
    ].join('\n');
    expect(problemsOf(file)).toEqual([]);
  });

  everyRowIsFound('route', [
    [
      'to itself',
      services(`  api: ${process(', routes: { /x: ▸api }')}`),
      'The route leads from api to api itself.',
      'Remove the route.',
    ],
    [
      'to a database',
      services('  db: { postgres: {} }', `  api: ${process(', routes: { /x: ▸db }')}`),
      'db is a database, which answers no request through Postern.',
      'Name a static service or a process.',
    ],
    [
      'to what runs elsewhere',
      services(
        '  docs: { external: { url: "https://x.example" } }',
        `  api: ${process(', routes: { /x: ▸docs }')}`,
      ),
      'docs is an external service, which answers no request through Postern.',
      'Name a static service or a process.',
    ],
  ]);

  const env = (text: string) =>
    services(site, `  api: ${process(`, env: { A: ▸"${text}" }`)}`, `  in: ${process(', exposed: false')}`);
  const forms = 'Use services.<name>.{host,port,url} or environment.{id,name,repository,branch,sha,url}.';
  const literal = 'For the characters themselves, write $${.';
  everyRowIsFound('reference', [
    [
      'a field of a service',
      env('${services.api.prot}'),
      '${services.api.prot} does not exist.',
      'Did you mean port?',
    ],
    [
      'a field of the Environment',
      env('${environment.commit}'),
      '${environment.commit} does not exist.',
      forms,
    ],
    ['a variable of a shell', env('${HOME}'), '${HOME} does not exist.', `${forms} ${literal}`],
    ['no end', env('${services.api.url'), 'A ${ has no closing }.', `Add the }. ${literal}`],
    [
      'the port of a static service',
      env('${services.web.port}'),
      '${services.web.port} does not exist.',
      'web has url.',
    ],
    [
      'the address of a service that has none',
      env('${services.in.url}'),
      '${services.in.url} does not exist.',
      'in has host and port.',
    ],
    [
      'the address of a database in a build',
      services(
        '  web: { build: {}, static: {}, env: { A: ▸"${services.db.url}" } }',
        '  db: { postgres: {} }',
      ),
      'web is a static service, whose build reaches no database.',
      'Use ${services.db.url} in a process.',
    ],
  ]);
});

describe('a value that looks like an API key', () => {
  const value = `app_pat_${'0123456789abcdef'.repeat(2)}`;
  const fix = 'Remove it and revoke the key. Refer to a secret in secrets instead.';
  everyRowIsFound('key', [
    [
      'in a variable',
      services(`  api: ${process(`, env: { A: "x ▸${value}" }`)}`),
      'Here is a value that looks like an API key.',
      fix,
    ],
    ['in a comment', services(`${site} # ▸${value}`), 'Here is a value that looks like an API key.', fix],
    [
      'written with escapes',
      services(`  api: ${process(`, env: { A: ▸"app\\x5fpat\\x5f${'0123456789abcdef'.repeat(2)}" }`)}`),
      'Here is a value that looks like an API key.',
      fix,
    ],
  ]);

  test('is not repeated in any problem, whatever else is wrong with it', () => {
    const problems = problemsOf(
      `${value}: ${value}\n"app\\x5fpat\\x5f${value.slice(8)}": [*${value}, !${value} 1]\n`,
    );
    expect(problems.length).toBeGreaterThan(1);
    expect(JSON.stringify(problems)).not.toContain(value.slice(8));
  });
});

describe('a file that is too much', () => {
  test('more than 256 KiB is one problem', () => {
    const text = `${everyKind}#${'x'.repeat(maxFileBytes)}`;
    expect(problemsOf(text)).toMatchObject([{ rule: 'size', message: 'The file is larger than 256 KiB.' }]);
    expect(problemsOf(`${everyKind}#${'ä'.repeat(maxFileBytes / 2)}`)).toMatchObject([{ rule: 'size' }]);
  });

  test('more tokens than the limit are one problem', () => {
    expect(problemsOf(`[${'[],'.repeat(maxTokens / 3)}]`)).toMatchObject([
      { rule: 'size', message: `The file has more than ${maxTokens} YAML tokens.` },
    ]);
  });

  test('aliases of aliases that stand for a million values are refused by their number, and not expanded', () => {
    const lines = ['a0: &a0 [x, x, x, x, x, x, x, x, x, x]'];
    for (let at = 1; at <= 6; at += 1) lines.push(`a${at}: &a${at} [${`*a${at - 1}, `.repeat(10)}]`);
    expect(problemsOf(lines.join('\n'))).toMatchObject([
      {
        rule: 'alias',
        line: 4,
        message: `With its aliases replaced, the file has more than ${maxValues} values.`,
      },
    ]);
  });

  test('an alias inside what it stands for is refused', () => {
    expect(problemsOf('a: &a [*a]')).toMatchObject([
      { rule: 'alias', column: 8, message: 'The alias *a is part of what it stands for.' },
    ]);
  });

  test('deep nesting is refused', () => {
    expect(problemsOf('['.repeat(20_000))[0]).toMatchObject({
      rule: 'yaml',
      message: 'The file is nested too deeply.',
    });
    expect(problemsOf(`${'['.repeat(30)}${']'.repeat(30)}`)).toMatchObject([{ rule: 'yaml' }]);
  });

  test('21 services are one problem', () => {
    const many = Array.from({ length: 21 }, (_, at) => `  s${at}: ${process()}`);
    expect(problemsOf(services(...many))).toMatchObject([
      { path: 'services', line: 2, message: 'services must have at most 20 entries.' },
    ]);
  });

  test('a thousand problems are reported as the first hundred', () => {
    const many = Array.from({ length: 1_000 }, (_, at) => `x${at}: 1`);
    expect(problemsOf(many.join('\n'))).toHaveLength(maxProblems);
  });
});

test('problems of the schema and of names are found together, in the order of the file', () => {
  const text = services(
    '  web: { build: {}, static: {}, routes: { /a: apii } }',
    '  api: { run: {}, requires: [db] }',
  );
  expect(problemsOf(text).map(({ line, rule }) => [line, rule])).toEqual([
    [3, 'unknown_service'],
    [4, 'kind'],
    [4, 'required'],
    [4, 'unknown_service'],
  ]);
});
