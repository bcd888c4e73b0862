import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { AppError, type ErrorCode, statusOf } from '../../core/errors.ts';
import { containsKey } from '../../core/key-shape.ts';
import type { Route } from '../../platform/http.ts';
import { inputWords, inputWordsWith } from '../../platform/input-words.ts';

const noBody = z.strictObject({}).optional();
const noQuery = z.strictObject({});

/** Parses path, query and body with the route's schemas; a refusal names every bad field and its code. */
export function parseInput(route: Route, request: FastifyRequest) {
  const { query, body } = request;
  return parseValues(
    route,
    { params: paramsOf(route, request), query, body },
    request.method !== 'GET' && request.method !== 'HEAD' && request.upload === null,
  );
}

/** Parses values that did not come in a request of this route. */
export function parseValues(
  route: Route,
  { params, query, body }: { params: unknown; query: unknown; body: unknown },
  hasBody = route.method !== 'GET',
) {
  return {
    params: route.params === undefined ? {} : parse(route, route.params, params, 'invalid_query'),
    query: parseQuery(route, route.query ?? noQuery, query),
    body: hasBody ? parse(route, route.body ?? noBody, shallow(body), 'invalid_body') : undefined,
  };
}

/** Far more than a body that a client means. Following every level of a deeper one would exhaust the stack. */
const maxDepth = 32;

/** @throws AppError invalid_body */
function shallow(body: unknown): unknown {
  if (isDeeper(body, maxDepth))
    throw new AppError('invalid_body', {
      message: `The request body is nested more than ${maxDepth} levels deep.`,
    });
  return body;
}

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels === 0 || Object.values(value).some((one) => isDeeper(one, levels - 1));
}

/** The router names the rest of a path `*`; the route has its own name for it. */
function paramsOf(route: Route, { params }: FastifyRequest): unknown {
  const rest = /\{(\w+)\*\}/.exec(route.path)?.[1];
  if (rest === undefined) return params;
  const { '*': text, ...named } = params as Record<string, string>;
  return { ...named, [rest]: text };
}

const withoutQuery = new WeakMap<z.ZodType, unknown>();

/** Most requests have no query, and the schema always gives the same result for none, so it is cached. */
function parseQuery(route: Route, schema: z.ZodType, query: unknown): unknown {
  // A for loop, because only this costs nothing on an object without fields.
  for (const _name in query as object) return parse(route, schema, query, 'invalid_query');
  const known = withoutQuery.get(schema);
  if (known !== undefined) return known;
  const parsed = Object.freeze(parse(route, schema, query, 'invalid_query'));
  withoutQuery.set(schema, parsed);
  return parsed;
}

const inOurWords = { error: inputWords };
const inWordsOfAQuery = { error: inputWordsWith('is not a parameter of this route') };

function parse(route: Route, schema: z.ZodType, value: unknown, fallback: ErrorCode): unknown {
  const result = schema.safeParse(value, fallback === 'invalid_query' ? inWordsOfAQuery : inOurWords);
  if (result.success) return storable(route, result.data, fallback);
  const fields = result.error.issues
    .flatMap((issue) => fieldNames(issue).map((field) => ({ field, problem: issue.message })))
    .slice(0, 20);
  const first = result.error.issues[0];
  const top = first?.path[0];
  const ofField = typeof top === 'string' ? route.fieldCodes?.[top] : undefined;
  // 422 is for values that a rule refuses; a body with an unknown field is malformed.
  const isUnknownField = first?.code === 'unrecognized_keys';
  const code = ofField === undefined || (isUnknownField && statusOf(ofField) === 422) ? fallback : ofField;
  const wrapped = fallback === 'invalid_body' ? wrappedIn(schema, value) : undefined;
  if (wrapped !== undefined) {
    throw new AppError(code, {
      message: `Send only the ${wrapped} object, without the object around it.`,
      details: { fields: [{ field: wrapped, problem: 'send only this object' }] },
    });
  }
  const named = fields.map(({ field }) => field).filter((field) => field !== '');
  // A custom rule about the whole object says more than that an object is expected.
  const ofWhole =
    first?.code === 'custom' ? `The object ${first.message}.` : 'The request body must be a JSON object.';
  throw new AppError(code, {
    message: named.length > 0 ? `${fields[0]?.field}: ${fields[0]?.problem}` : ofWhole,
    details: { fields },
  });
}

/**
 * The field that contains the document, when a client sends a whole response back: `policy`, or `data.policy` with the
 * envelope too.
 */
function wrappedIn(schema: z.ZodType, value: unknown, depth = 2): string | undefined {
  if (depth === 0 || typeof value !== 'object' || value === null) return undefined;
  // A response has few fields, with plain names. The bound stops a body that is built to make this search expensive.
  for (const [field, part] of Object.entries(value).slice(0, 8)) {
    if (!/^[A-Za-z]{1,40}$/.test(field)) continue;
    if (typeof part !== 'object' || part === null || Object.keys(part).length === 0) continue;
    if (schema.safeParse(part).success) return field;
    const inner = wrappedIn(schema, part, depth - 1);
    if (inner !== undefined) return `${field}.${inner}`;
  }
  return undefined;
}

/**
 * No route takes text that cannot or must not be stored. PostgreSQL text cannot contain NUL. A key pasted into a name
 * would appear in plain text in a table, a list and a screenshot (matrix KF-03).
 */
function storable(route: Route, input: unknown, fallback: ErrorCode): unknown {
  for (const [field, part] of Object.entries(input ?? {})) {
    const problem = problemIn(part, route.looksForKeysIn?.includes(field) !== true);
    if (problem === null) continue;
    throw new AppError(route.fieldCodes?.[field] ?? fallback, {
      message: `${field}: ${problem}`,
      details: { fields: [{ field, problem }] },
    });
  }
  return input;
}

/** Problem of a text that a client wants to store. Null: none. */
export function problemInText(text: string, isKeyWrong = true): string | null {
  if (text.includes('\0')) return 'must not contain NUL';
  return isKeyWrong && containsKey(text) ? 'must not contain an API key' : null;
}

function problemIn(part: unknown, isKeyWrong: boolean): string | null {
  if (typeof part === 'string') return problemInText(part, isKeyWrong);
  if (typeof part !== 'object' || part === null) return null;
  for (const [name, value] of Object.entries(part)) {
    const problem = problemIn(name, isKeyWrong) ?? problemIn(value, isKeyWrong);
    if (problem !== null) return problem;
  }
  return null;
}

/** One name for most problems; all names for several unknown fields. */
function fieldNames(issue: z.core.$ZodIssue): string[] {
  const names = issue.code === 'unrecognized_keys' ? issue.keys : [];
  const paths = names.length === 0 ? [issue.path] : names.map((name) => [...issue.path, name]);
  return paths.map((path) => path.map(String).join('.').slice(0, 100));
}
