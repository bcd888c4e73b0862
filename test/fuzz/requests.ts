import fc from 'fast-check';
import type { HttpMethod, OpenApi, Operation, Parameter } from '../../src/surfaces/web/openapi/types.ts';
import { junk, junkText, valuesOf } from './shapes.ts';

/** Requests over every operation of the document: about half as it says, the others bent in one or two places. */
export type FuzzRequest = {
  readonly operation: OperationAt;
  readonly method: string;
  /** Path and query, with «kind» where something that exists goes. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
  readonly caller: CallerName;
  /** Milliseconds that pass before it. */
  readonly after: number;
};

export type OperationAt = {
  readonly path: string;
  readonly method: HttpMethod;
  readonly operation: Operation;
};

export const callerNames = [
  'nobody',
  'administrator',
  'person',
  'personal key',
  'narrow key',
  'service key',
  'access token',
  'dead key',
  'unknown key',
  'broken key',
  'stray token',
  'basic',
  'ended session',
  'two credentials',
] as const;
export type CallerName = (typeof callerNames)[number];

export function operationsOf(document: OpenApi): OperationAt[] {
  return Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ path, method: method as HttpMethod, operation })),
  );
}

export function requestsOf(document: OpenApi): fc.Arbitrary<FuzzRequest> {
  // After it nothing is left that others could be tried on.
  const weightOf = ({ operation }: OperationAt) => (operation.operationId === 'revokeAllMyKeys' ? 1 : 20);
  return fc.oneof(
    ...operationsOf(document).map((at) => ({ weight: weightOf(at), arbitrary: requestsTo(document, at) })),
  );
}

function requestsTo(document: OpenApi, at: OperationAt): fc.Arbitrary<FuzzRequest> {
  const parameters = at.operation.parameters ?? [];
  const inPath = parameters.filter((one) => one.in === 'path');
  const inQuery = parameters.filter((one) => one.in === 'query');
  return fc
    .record({
      path: fc.tuple(...inPath.map((one) => pathValues(at, one))),
      query: fc.tuple(...inQuery.map((one) => queryValues(document, one))),
      bentQuery: sometimes(bentQueries),
      body: bodies(document, at),
      method: sometimes(
        fc.constantFrom('GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE'),
        40,
      ),
      caller: callersOf(at.operation),
      ifMatch: fc.constantFrom('«etag»', '«etag»', '«etag»', '*', '"old"', 'W/"x"', undefined),
      origin: sometimes(fc.constantFrom('https://evil.example', 'null'), 15),
      stray: sometimes(strayHeaders, 15),
      after: fc.oneof(fc.constant(0), fc.nat(2_000)),
    })
    .map(({ path, query, bentQuery, body, method, caller, ifMatch, origin, stray, after }) => {
      let url = at.path;
      for (const [index, { name }] of inPath.entries()) url = url.replace(`{${name}}`, path[index] ?? '');
      const pairs = [
        ...query.filter((pair) => pair !== undefined),
        ...(bentQuery === undefined ? [] : [bentQuery]),
      ];
      return {
        operation: at,
        method: method ?? at.method.toUpperCase(),
        url: pairs.length === 0 ? url : `${url}?${pairs.join('&')}`,
        headers: {
          ...(ifMatch === undefined ? {} : { 'if-match': ifMatch }),
          ...(body.type === undefined ? {} : { 'content-type': body.type }),
          ...(origin === undefined ? {} : { origin }),
          ...stray,
        },
        body: body.text,
        caller,
        after,
      };
    });
}

function sometimes<T>(arbitrary: fc.Arbitrary<T>, oneIn = 8): fc.Arbitrary<T | undefined> {
  return fc.oneof({ weight: oneIn - 1, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary });
}

/** Mostly someone the operation is for. */
function callersOf({
  'x-postern-callers': kinds,
  'x-postern-role': role,
}: Operation): fc.Arbitrary<CallerName> {
  const fitting = {
    session: role === 'admin' ? ['administrator'] : ['administrator', 'person'],
    access_token: ['access token'],
    personal_key: ['personal key', 'narrow key'],
    service_key: ['service key'],
  } satisfies Record<string, CallerName[]>;
  const names = Object.entries(fitting).flatMap(([kind, some]): CallerName[] =>
    kinds.includes(kind) ? some : [],
  );
  const anyone = fc.constantFrom(...callerNames);
  return names.length === 0
    ? anyone
    : fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...names) }, { weight: 1, arbitrary: anyone });
}

function pathValues(at: OperationAt, { name }: Parameter): fc.Arbitrary<string> {
  const before = at.path.slice(0, at.path.indexOf(`{${name}}`));
  const kind = /\/repositories\//.test(before)
    ? name
    : (before.split('/').findLast((part) => /^[a-z]/.test(part)) ?? 'any');
  return fc.oneof(
    { weight: 6, arbitrary: fc.constant(`«${kind}»`) },
    {
      weight: 1,
      arbitrary: fc.constantFrom(
        '«any»',
        'nothingthere',
        'policy',
        '.',
        '%2e%2e',
        'a%2fb',
        '%ff',
        'x'.repeat(600),
      ),
    },
    { weight: 1, arbitrary: junkText.map(encoded) },
  );
}

function queryValues(
  document: OpenApi,
  { name, required, schema }: Parameter,
): fc.Arbitrary<string | undefined> {
  const value = valuesOf(document, schema).map((one) => `${name}=${encoded(String(one))}`);
  return required ? value : fc.option(value, { nil: undefined, freq: 1 });
}

const bentQueries = fc.oneof(
  fc.constantFrom(
    'page=0',
    'limit=101',
    'limit=',
    'page=1&page=2',
    'limit=99999999999',
    'cursor=AAAA',
    'cursor=',
    'x',
    '=',
    '&&',
    '%',
    '__proto__=1',
  ),
  fc
    .tuple(
      fc.constantFrom(
        'page',
        'limit',
        'search',
        'cursor',
        'status',
        'from',
        'to',
        'target',
        'can',
        'repository',
        'what',
      ),
      junkText,
    )
    .map(([name, value]) => `${name}=${encoded(value)}`),
  fc.constant('token=«key value»'),
);

const strayHeaders = fc.constantFrom<Record<string, string>>(
  { cookie: 'theme=dark; __Host-postern_session=' },
  { cookie: 'a=«key value»' },
  { 'x-forwarded-for': "1.2.3.4, <'\\" },
  { 'user-agent': `\u001b[31m${'x'.repeat(500)}` },
  { 'user-agent': 'caf\u00e9' },
  { 'content-length': '5' },
  { 'content-encoding': 'gzip' },
  { 'sec-fetch-site': 'cross-site' },
  { 'x-request-id': 'mine' },
  { accept: 'image/png' },
  { range: 'bytes=0-1' },
  { expect: '100-continue' },
);

type Body = { readonly type: string | undefined; readonly text: string | undefined };

/** Content that announced uploads of the world wait for. */
export const awaited = 'hello';

/** One valid and one invalid upload of each type. */
const uploads: Readonly<Record<string, readonly string[]>> = {
  'text/html': ['<!doctype html><p>fuzz', ''],
  'application/zip': ['PK'],
  'application/gzip': ['\u001f'],
  // Two empty blocks: an archive without entries.
  'application/x-tar': ['\0'.repeat(1_024), 'tar'],
  'application/octet-stream': [awaited, awaited, 'other'],
  'application/x-www-form-urlencoded': [
    '«exchange»',
    '«exchange»',
    '«exchange»&scope=x',
    'grant_type=%00',
    '',
  ],
};

function bodies(document: OpenApi, at: OperationAt): fc.Arbitrary<Body> {
  const files = Object.keys(at.operation.requestBody?.content ?? {}).flatMap((type) =>
    (uploads[type] ?? []).map((text): Body => ({ type, text })),
  );
  const others = jsonBodies(document, at);
  if (files.length === 0) return others;
  return fc.oneof({ weight: 6, arbitrary: fc.constantFrom(...files) }, { weight: 3, arbitrary: others });
}

function jsonBodies(document: OpenApi, { operation }: OperationAt): fc.Arbitrary<Body> {
  const schema = operation.requestBody?.content['application/json']?.schema;
  const none = fc.constant<Body>({ type: undefined, text: undefined });
  if (schema === undefined)
    return fc.oneof({ weight: 6, arbitrary: none }, { weight: 1, arbitrary: bentBodies(fc.constant({})) });
  const values = nearExample(
    operation.requestBody?.content['application/json']?.example,
    valuesOf(document, schema),
  );
  const wellFormed = values.map((value): Body => ({ type: 'application/json', text: JSON.stringify(value) }));
  return fc.oneof(
    { weight: 6, arbitrary: wellFormed },
    { weight: 3, arbitrary: fieldsBent(values) },
    { weight: 1, arbitrary: bentBodies(values) },
    { weight: 1, arbitrary: none },
  );
}

/** Half of the time the document's own example with a field or two of another value: what a schema cannot say is right there. */
function nearExample(example: unknown, values: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  if (typeof example !== 'object' || example === null) return values;
  const near = fc
    .tuple(values, fc.array(fc.constantFrom(...Object.keys(example), ''), { maxLength: 2 }))
    .map(([value, names]) => {
      const copy = { ...example };
      for (const name of names) {
        const other: unknown =
          typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
        if (other !== undefined) Reflect.set(copy, name, other);
      }
      return copy;
    });
  return fc.oneof({ weight: 3, arbitrary: near }, { weight: 2, arbitrary: values });
}

/** One field replaced, removed or added. */
function fieldsBent(values: fc.Arbitrary<unknown>): fc.Arbitrary<Body> {
  return fc
    .record({
      value: values,
      at: fc.nat(30),
      how: fc.nat(3),
      by: junk,
      added: fc.constantFrom('ownerId', 'type', 'id', 'constructor', 'ttlhours', ''),
    })
    .map(({ value, at, how, by, added }): Body => {
      const copy: unknown = JSON.parse(JSON.stringify(value ?? {}));
      const places = placesIn(copy);
      const place = places[at % Math.max(1, places.length)];
      if (how === 0 && typeof copy === 'object' && copy !== null) Reflect.set(copy, added, by);
      else if (place !== undefined && how === 1) Reflect.deleteProperty(place.holder, place.name);
      else if (place !== undefined) Reflect.set(place.holder, place.name, by);
      return { type: 'application/json', text: JSON.stringify(copy) };
    });
}

function placesIn(value: unknown): { holder: object; name: string }[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, part]) => [{ holder: value, name }, ...placesIn(part)]);
}

/** Bodies that are not what they say, or no JSON at all. */
function bentBodies(values: fc.Arbitrary<unknown>): fc.Arbitrary<Body> {
  const json = fc.oneof(values, junk).map((value) => JSON.stringify(value) ?? '');
  return fc.oneof(
    fc.tuple(json, types).map(([text, type]): Body => ({ type, text })),
    fc
      .tuple(json, fc.nat(200))
      .map(([text, at]): Body => ({ type: 'application/json', text: text.slice(0, at) })),
    fc
      .constantFrom(
        '{',
        '[]',
        'null',
        '""',
        '0',
        '\ufeff{}',
        '{"a":1,"a":2}',
        '{"__proto__":{"x":1}}',
        '{"constructor":{"prototype":{}}}',
        'true false',
        `{"name":"${'x'.repeat(70_000)}"}`,
        '[',
      )
      .map((text): Body => ({ type: 'application/json', text })),
    junkText.map((text): Body => ({ type: 'application/json', text })),
  );
}

const types = fc.constantFrom(
  undefined,
  'application/json',
  'application/json; charset=utf-8',
  'application/json; charset=utf-16',
  'application/json garbage',
  'application/json;\t',
  'Application/JSON',
  'text/plain',
  'text/json',
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=x',
  'application/',
  '',
);

/** Percent-encodes everything but the marks « and ». A lone surrogate has no encoding and becomes U+FFFD. */
function encoded(text: string): string {
  return encodeURIComponent(text.toWellFormed()).replaceAll('%C2%AB', '«').replaceAll('%C2%BB', '»');
}
