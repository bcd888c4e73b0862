import { branchNamePattern } from '../../src/platform/git/remote.ts';
import fc from 'fast-check';
import type { JsonSchema, OpenApi } from '../../src/surfaces/web/openapi/types.ts';

/** Values that fit a schema of the document: mostly plain ones, often the edges. */
export function valuesOf(document: OpenApi, schema: JsonSchema, depth = 0): fc.Arbitrary<unknown> {
  const inner = (part: JsonSchema) => valuesOf(document, part, depth + 1);
  if (schema.$ref !== undefined) return inner(resolve(document, schema.$ref));
  if ('const' in schema) return fc.constant(schema.const);
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices !== undefined) return fc.oneof(...choices.map((choice) => inner(asSchema(choice))));
  if (schema.allOf !== undefined) {
    const parts = schema.allOf.map((part) => inner(asSchema(part)));
    return fc.tuple(...parts).map((values) => Object.assign({}, ...(values as object[])) as object);
  }
  const types = [schema.type ?? 'object'].flat();
  return fc.oneof(...types.map((type) => valuesOfType(document, { ...schema, type }, depth)));
}

function valuesOfType(document: OpenApi, schema: JsonSchema, depth: number): fc.Arbitrary<unknown> {
  switch (schema.type) {
    case 'string':
      return strings(schema);
    case 'integer':
      return numbers(schema).map(Math.round);
    case 'number':
      return numbers(schema);
    case 'boolean':
      return fc.boolean();
    case 'null':
      return fc.constant(null);
    case 'array': {
      const items = asSchema(Array.isArray(schema.items) ? schema.items[0] : schema.items);
      const least = schema.minItems ?? 0;
      const lengths = { minLength: least, maxLength: Math.max(least, Math.min(schema.maxItems ?? 4, 4)) };
      return fc.array(valuesOf(document, items, depth + 1), lengths);
    }
    case 'object':
    case undefined:
      break;
  }
  return objects(document, schema, depth);
}

function objects(document: OpenApi, schema: JsonSchema, depth: number): fc.Arbitrary<unknown> {
  const fields = Object.entries(schema.properties ?? {}).map(
    ([name, part]) => [name, valuesOf(document, asSchema(part), depth + 1)] as const,
  );
  const requiredKeys = (schema.required ?? []).filter((name) => fields.some(([field]) => field === name));
  const known = fc.record(Object.fromEntries(fields), { requiredKeys, noNullPrototype: true });
  const rest = schema.additionalProperties;
  if (typeof rest !== 'object' || depth > 4) return known;
  const others = fc.dictionary(
    fc.stringMatching(/^[A-Za-z][A-Za-z0-9_]{0,8}$/),
    valuesOf(document, rest, depth + 1),
    {
      maxKeys: 3,
      noNullPrototype: true,
    },
  );
  return fc.tuple(known, others).map(([one, two]) => ({ ...two, ...one }));
}

/** Words that mean something here; the sender replaces «kind» by something that exists (world.ts). */
const words = [
  '«any»',
  'main',
  'acme/website',
  'acme/website',
  'acme/none',
  'repos:read',
  'sites:write',
  'env:admin',
  'Zoë ✓ 名前',
];

/** Forms of ids, and what exists with such an id. */
const idPatterns = new Map([
  ['^[0-9A-Za-z]{12}$', '«tokens»'],
  [String.raw`^[A-Za-z0-9._-]+\/[A-Za-z0-9._-]+$`, 'acme/website'],
  [branchNamePattern.source, 'main'],
]);

function strings(schema: JsonSchema): fc.Arbitrary<string> {
  if (schema.format === 'date-time') return dates;
  if (schema.format === 'email')
    return fc.constantFrom('ada@example.com', 'zoe@example.org', 'a+b@example.com');
  const least = schema.minLength ?? 0;
  const most = Math.max(least, Math.min(schema.maxLength ?? 60, 300));
  const free = fc.string({
    minLength: least,
    maxLength: Math.max(least, Math.min(most, 40)),
    unit: 'binary',
  });
  const edges = fc.constantFrom('a'.repeat(least), 'a'.repeat(most), ...words);
  // Any text of the form would be the id of nothing.
  const known = schema.pattern === undefined ? undefined : idPatterns.get(schema.pattern);
  if (known !== undefined)
    return fc.oneof({ weight: 6, arbitrary: fc.constant(known) }, { weight: 1, arbitrary: free });
  const matching = schema.pattern === undefined ? undefined : matches(schema.pattern);
  if (matching === undefined)
    return fc.oneof({ weight: 3, arbitrary: edges }, { weight: 1, arbitrary: free });
  return fc.oneof({ weight: 4, arbitrary: matching }, { weight: 1, arbitrary: edges });
}

const dates = fc
  .tuple(
    fc.integer({ min: Date.UTC(2025, 11, 30), max: Date.UTC(2026, 1, 15) }),
    fc.constantFrom('Z', 'Z', '+00:00', '-11:30', '+14:00'),
  )
  .map(([at, zone]) => new Date(at).toISOString().replace('Z', zone));

/** undefined = fast-check cannot write text for this pattern (look-around). */
function matches(pattern: string): fc.Arbitrary<string> | undefined {
  try {
    const arbitrary = fc.stringMatching(new RegExp(pattern, 'u'), { size: 'small' });
    fc.sample(arbitrary, 1);
    return arbitrary;
  } catch {
    return undefined;
  }
}

function numbers(schema: JsonSchema): fc.Arbitrary<number> {
  const least = schema.minimum ?? Number(schema.exclusiveMinimum ?? -1_000_000);
  const most = schema.maximum ?? Number(schema.exclusiveMaximum ?? Math.max(0, least) + 1_000_000);
  return fc.oneof(
    fc.constantFrom(least, most, Math.min(Math.max(1, least), most), Math.min(Math.max(24, least), most)),
    fc.integer({ min: Math.ceil(least), max: Math.floor(most) }),
    fc.double({ min: least, max: most, noNaN: true }),
  );
}

function resolve(document: OpenApi, reference: string): JsonSchema {
  const name = reference.slice(reference.lastIndexOf('/') + 1);
  const found = document.components.schemas[name];
  if (found === undefined) throw new Error(`${reference} does not resolve.`);
  return found;
}

/** A schema may be written `true` (anything) or `false` (nothing); the document writes neither where values are sent. */
function asSchema(part: unknown): JsonSchema {
  // Objects are what the document writes in the places where this is asked.
  return typeof part === 'object' && part !== null ? (part as JsonSchema) : { type: 'string' };
}

/** Text and values that have broken servers before. */
export const junkText = fc.oneof(
  fc.constantFrom(
    '',
    ' ',
    '\0',
    'a\0b',
    '\ud800',
    '\u202e',
    '%',
    '%00',
    '../../etc/passwd',
    "' or 1=1 --",
    '\\',
    '${7*7}',
    '{{7*7}}',
    '<script>alert(1)</script>',
    'a\r\nset-cookie: x=1',
    'x'.repeat(5_000),
    '__proto__',
    'null',
    'undefined',
    'NaN',
    '9'.repeat(40),
    '-1',
    '1e309',
    `app_pat_${'x'.repeat(50)}`,
  ),
  fc.string({ unit: 'binary', maxLength: 30 }),
);

export const junk: fc.Arbitrary<unknown> = fc.oneof(
  junkText,
  fc.constantFrom(null, true, false, 0, -0, -1, 1.5, 2 ** 53, 1e308, -1e308, [], {}, [[]], [null], { a: {} }),
  fc.jsonValue({ maxDepth: 3 }),
  fc.constant(nested(200)),
);

function nested(depth: number): unknown {
  let value: unknown = 'deep';
  for (let level = 0; level < depth; level += 1) value = [value];
  return value;
}
