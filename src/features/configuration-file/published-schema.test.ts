import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { parse } from 'yaml';
import { expect, test } from 'vitest';
import { publishedSchema } from './published-schema.ts';
import { readConfigurationFile } from './read.ts';

type Validate = (value: unknown) => boolean;
// Uses the validator of Fastify, so that the tests need no other package.
const { resolve } = createRequire(import.meta.url);
const Ajv: new (options: object) => { compile(schema: object): Validate } = createRequire(resolve('fastify'))(
  'ajv',
);

const schema = publishedSchema('https://postern.example/api/v2/schema/postern.json');
const fits = new Ajv({ strict: false, allErrors: true }).compile(schema);
const everyKind = readFileSync(join(import.meta.dirname, 'golden/every-kind.yaml'), 'utf8');

test('the schema names its address and its draft, which editors look at', () => {
  expect(schema).toMatchObject({
    $schema: 'http://json-schema.org/draft-07/schema#',
    $id: 'https://postern.example/api/v2/schema/postern.json',
    title: 'postern.yaml',
    additionalProperties: false,
  });
});

test('an editor accepts the example with every kind of service', () => {
  expect(fits(parse(everyKind))).toBe(true);
});

test('every field has a meaning, which editors show', () => {
  const silent: string[] = [];
  const walk = (part: unknown, path: string): void => {
    if (typeof part !== 'object' || part === null) return;
    const { properties = {}, additionalProperties, items } = part as Record<string, object>;
    for (const [name, field] of Object.entries(properties)) {
      if (!('description' in field)) silent.push(`${path}.${name}`);
      walk(field, `${path}.${name}`);
    }
    walk(additionalProperties, `${path}.*`);
    walk(items, `${path}[]`);
  };
  walk(schema, '');
  expect(silent).toEqual([]);
});

const start =
  'version: 1\nservices:\n  web: { build: { image: node }, run: { command: node ., port: 80 } }\n';
test.each([
  ['an unknown field of the file', `${start}other: 1\n`],
  ['an unknown field of a service', start.replace('build:', 'route: {}, build:')],
  ['an unknown field of a build', start.replace('{ image', '{ imag: x, image')],
  ['an unknown field of a run', start.replace('port: 80', 'port: 80, prot: 1')],
  ['an unknown field of the Environment', `${start}environment: { ttl: 1 }\n`],
  ['a path that leads out', start.replace('{ image', '{ directory: ../x, image')],
  ['a name that is no DNS label', start.replace('web:', 'Web:')],
  ['a route without /', start.replace('build:', 'routes: { api: web }, build:')],
  ['two kinds in one service', start.replace('build:', 'static: {}, build:')],
  ['no services', 'version: 1\nservices: {}\n'],
  ['a port that does not exist', start.replace('80', '65536')],
  ['another version', start.replace('version: 1', 'version: 2')],
])('an editor and Postern both refuse %s', (_title, text) => {
  expect(fits(parse(text))).toBe(false);
  expect(readConfigurationFile(text).kind).toBe('invalid');
});
