import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { allRoutes } from '../src/composition/all-routes.ts';
import { version } from '../src/platform/version.ts';
import { buildOpenApi } from '../src/surfaces/web/openapi/openapi.ts';
import type { JsonSchema, OpenApi, Operation, Parameter } from '../src/surfaces/web/openapi/types.ts';
import { asSchema, resolved } from '../src/surfaces/web/reference/schema-table.ts';
import type { Argument, Option, Verb, Verbs } from './src/core/verb.ts';
import { groups, verbNames, withoutVerb } from './verb-names.ts';

type Names = {
  readonly verbNames: Readonly<Record<string, string>>;
  readonly withoutVerb: Readonly<Record<string, string>>;
};

/** Writes the verbs of the command line from the OpenAPI document. The file appears whole: two builds may write it at once. */
export async function writeVerbs(): Promise<void> {
  const file = join(import.meta.dirname, 'src/verbs.json');
  const fresh = `${file}.${process.pid}`;
  const serverUrl = 'https://postern.example';
  const verbs = verbsOf(buildOpenApi({ routes: await allRoutes(), version, serverUrl }));
  await writeFile(fresh, `${JSON.stringify(verbs, null, 1)}\n`);
  await rename(fresh, file);
}

/** @throws Error that names each route without a verb or a reason, and each name without a route */
export function verbsOf(document: OpenApi, names: Names = { verbNames, withoutVerb }): Verbs {
  const routes = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({
      method: method.toUpperCase(),
      path: path.replace('/api/v2', ''),
      operation,
      callers: callersOf(operation),
    })),
  );
  const callable = routes.filter(({ callers }) => callers !== 'session' && callers !== 'none');
  refuseDrift(
    callable.map(({ operation }) => operation.operationId),
    names,
  );
  const verbs = callable.flatMap(({ method, path, operation, callers }) => {
    const name = names.verbNames[operation.operationId];
    if (name === undefined || callers === 'session' || callers === 'none') return [];
    return [{ name, ...described(operation), method, path, callers, ...shapeOf(operation, document) }];
  });
  const order = Object.values(names.verbNames);
  return {
    version: document.info.version,
    groups,
    verbs: verbs
      .map((verb) => ({ ...verb, ...(asks(verb) ? { asks: true as const } : {}) }))
      .toSorted((a, b) => order.indexOf(a.name) - order.indexOf(b.name)),
    sessionRoutes: routes
      .filter(({ callers }) => callers === 'session')
      .map(({ method, path }) => `${method} ${path}`),
  };
}

function refuseDrift(callable: readonly string[], { verbNames, withoutVerb }: Names): void {
  const known = { ...verbNames, ...withoutVerb };
  const problems = [
    ...callable
      .filter((id) => known[id] === undefined)
      .map((id) => `The route ${id} has no verb, and no reason to have none.`),
    ...Object.keys(known)
      .filter((id) => !callable.includes(id))
      .map((id) => `There is no route ${id} that a key or an access token can call.`),
    ...Object.keys(verbNames)
      .filter((id) => withoutVerb[id] !== undefined)
      .map((id) => `The route ${id} has a verb, and a reason to have none.`),
  ];
  if (problems.length > 0) throw new Error(`${problems.join('\n')}\nCorrect cli/verb-names.ts.`);
}

function callersOf({ 'x-postern-callers': callers }: Operation): Verb['callers'] | 'session' | 'none' {
  if (callers === 'anyone') return 'anyone';
  if (callers === 'git_server' || callers === 'pod') return 'none';
  if (callers.includes('personal_key') || callers.includes('service_key')) return 'keys';
  return callers.includes('access_token') ? 'tokens' : 'session';
}

function asks({ method, name }: { method: string; name: string }): boolean {
  return method === 'DELETE' || name.endsWith(' revoke');
}

function described({ summary, description, 'x-postern-scope': scope }: Operation) {
  // The last paragraph says who may call the route, in the words of the API reference.
  const own = description.split('\n\n').slice(0, -1).join('\n\n');
  return { summary, ...(own === '' ? {} : { description: own }), ...(scope === undefined ? {} : { scope }) };
}

function shapeOf(
  { parameters = [], requestBody, responses }: Operation,
  document: OpenApi,
): Omit<Verb, 'name' | 'summary' | 'method' | 'path' | 'callers' | 'asks'> {
  const of = (place: Parameter['in']) => parameters.filter((one) => one.in === place);
  const [ifMatch] = of('header');
  const { 'application/json': json, ...files } = requestBody?.content ?? {};
  const isRequired = requestBody?.required === true;
  const query = of('query').map(({ name, required, schema, description }) =>
    toOption(
      name,
      'query',
      { ...schema, ...(description === undefined ? {} : { description }) },
      required,
      document,
    ),
  );
  const fields = json === undefined ? [] : bodyOptions(json.schema, document);
  const body = fields.filter(({ name }) => !secret.test(name));
  const inputOnly = fields.map(({ name }) => name).filter((name) => secret.test(name));
  const hasFile = Object.keys(files).length > 0;
  const inBody = new Set(body.map(({ name }) => name));
  return {
    arguments: argumentsOf(of('path')),
    options: [
      ...query.filter(({ name }) => !inBody.has(name)),
      ...body.map((option) => ({ ...option, in: hasFile ? ('either' as const) : option.in })),
    ],
    ...(ifMatch === undefined ? {} : { ifMatch: ifMatch.required ? 'required' : 'optional' }),
    ...(json === undefined ? {} : { body: isRequired && !hasFile ? 'required' : 'optional' }),
    ...(inputOnly.length === 0 ? {} : { inputOnly }),
    ...(hasFile ? { file: json === undefined ? 'required' : 'optional' } : {}),
    ...(isStreamed(responses) ? { follows: true } : {}),
    ...resultOf(responses, document),
  };
}

/** A repository is one argument, as people write it. */
function argumentsOf(parameters: readonly Parameter[]): Argument[] {
  const named = parameters.map(({ name, description = '' }) => ({ name, meaning: description }));
  if (named[0]?.name !== 'owner') return named;
  return [{ name: 'owner/name', meaning: 'The full name of a repository' }, ...named.slice(2)];
}

/** A secret is no option: other users of the machine can read the arguments of a process. */
const secret = /token|secret|password|privatekey/i;

function bodyOptions(given: JsonSchema, document: OpenApi): Option[] {
  const { properties = {}, required = [] } = resolved(given, document.components.schemas);
  return Object.entries(properties).map(([name, property]) =>
    toOption(name, 'body', asSchema(property), required.includes(name), document),
  );
}

function toOption(
  name: string,
  place: 'query' | 'body',
  given: JsonSchema,
  isRequired: boolean,
  document: OpenApi,
): Option {
  const schema = { ...resolved(given, document.components.schemas), ...given };
  const type = typeOf(schema);
  const choices = type === 'text' ? choicesOf(schema) : undefined;
  return {
    name,
    in: place,
    type,
    ...(choices === undefined ? {} : { choices }),
    ...(isRequired ? { isRequired: true } : {}),
    meaning: (schema.description ?? '').replaceAll('\n', ' '),
  };
}

function choicesOf({ enum: values, const: only }: JsonSchema): string[] | undefined {
  if (typeof only === 'string') return [only];
  const texts = values?.filter((value) => typeof value === 'string');
  return texts === undefined || texts.length === 0 ? undefined : texts;
}

function typeOf(schema: JsonSchema): Option['type'] {
  const types = [schema.type].flat().filter((type) => type !== 'null');
  const values = schema.enum?.join() ?? schema.const;
  if (types.length !== 1) return values === undefined ? 'json' : 'text';
  const [type = 'object'] = types;
  if (type === 'array') return asSchema(schema.items).type === 'string' ? 'list' : 'json';
  return optionTypes[type] ?? 'json';
}

const optionTypes: Readonly<Record<string, Option['type']>> = {
  boolean: 'flag',
  integer: 'number',
  number: 'number',
  string: 'text',
};

/** The lines also come as they are written. */
function isStreamed(responses: Operation['responses']): boolean {
  return Object.values(responses).some(({ content }) => content?.['text/event-stream'] !== undefined);
}

function resultOf(
  responses: Operation['responses'],
  { components: { schemas } }: OpenApi,
): Pick<Verb, 'fields' | 'columns' | 'pagination'> {
  const [, success] = Object.entries(responses).find(([status]) => status.startsWith('2')) ?? [];
  const envelope = success?.content?.['application/json']?.schema.properties;
  if (envelope === undefined) return {};
  const data = resolved(asSchema(envelope['data']), schemas);
  const item = data.type === 'array' ? resolved(asSchema(data.items), schemas) : data;
  const properties = Object.entries(item.properties ?? {});
  const isValue = (schema: JsonSchema) => {
    const { type, enum: values, const: only } = resolved(schema, schemas);
    const types = [type].flat();
    return (
      values !== undefined ||
      only !== undefined ||
      (type !== undefined && !types.includes('object') && !types.includes('array'))
    );
  };
  const paged = asSchema(asSchema(envelope['metadata']).properties?.['pagination']).$ref;
  return {
    ...(properties.length === 0
      ? {}
      : {
          fields: properties.map(([name]) => name),
          columns: properties.filter(([, schema]) => isValue(asSchema(schema))).map(([name]) => name),
        }),
    ...(paged === undefined ? {} : { pagination: paged.endsWith('/PagePagination') ? 'page' : 'cursor' }),
  };
}
