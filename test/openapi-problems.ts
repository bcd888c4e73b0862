import type { OpenApi, Operation } from '../src/surfaces/web/openapi/types.ts';

/** The problems of an OpenAPI 3.1 document, one line each; empty when there are none. */
export function problemsOf(document: OpenApi): string[] {
  const operations = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ path, method, operation })),
  );
  return [
    ...(/^3\.1\.\d+$/.test(document.openapi) ? [] : ['openapi is not 3.1']),
    ...(operations.length === 0 ? ['there are no operations'] : []),
    ...repeated(operations.map(({ operation }) => operation.operationId)).map((id) => `${id} is not unique`),
    ...operations.flatMap(({ path, method, operation }) =>
      operationProblems(document, path, method, operation),
    ),
    ...danglingReferences(document).map((target) => `${target} does not resolve`),
  ];
}

function operationProblems(document: OpenApi, path: string, method: string, operation: Operation): string[] {
  const problems: string[] = [];
  const say = (text: string) => problems.push(`${method} ${path}: ${text}`);
  if (!/^[a-z][A-Za-z0-9]+$/.test(operation.operationId)) say(`operationId ${operation.operationId}`);
  if (operation.summary === '' || operation.tags.length !== 1) say('needs a summary and one tag');
  if (!document.tags.some(({ name }) => name === operation.tags[0])) say('its tag is not declared');
  const declared = (operation.parameters ?? []).filter((one) => one.in === 'path').map(({ name }) => name);
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1] ?? '');
  if (!isSameSet(declared, inPath)) say(`declares ${declared.join()} in its path`);
  for (const { name, schema } of operation.parameters ?? []) {
    if (Object.keys(schema).length === 0) say(`the parameter ${name} has no schema`);
  }
  if (operation.requestBody && (method === 'get' || method === 'delete')) say('takes a body');
  for (const [name, schemes] of operation.security.flatMap((one) => Object.entries(one))) {
    if (!(name in document.components.securitySchemes)) say(`the scheme ${name} is not declared`);
    if (!Array.isArray(schemes)) say(`the scheme ${name} has no list`);
  }
  const statuses = Object.keys(operation.responses);
  if (!statuses.some((status) => status.startsWith('2'))) say('has no success');
  for (const status of statuses) {
    const answer = operation.responses[status];
    if (!/^[1-5]\d\d$/.test(status)) say(`answers ${status}`);
    if (!answer?.description) say(`${status} has no description`);
    const contents = Object.entries(answer?.content ?? {});
    if (contents.length === 0 && status !== '204') say(`${status} has no content`);
    for (const [type, { schema }] of contents) {
      if (Object.keys(schema).length === 0) say(`${status} ${type} has no schema`);
    }
  }
  return problems;
}

function isSameSet(left: readonly string[], right: readonly string[]): boolean {
  return left.length === right.length && left.every((one) => right.includes(one));
}

function repeated(values: readonly string[]): string[] {
  return [...new Set(values.filter((value, at) => values.indexOf(value) !== at))];
}

function danglingReferences(document: OpenApi): string[] {
  const found = new Set<string>();
  JSON.stringify(document, (name, value: unknown) => {
    if (name === '$ref' && typeof value === 'string') found.add(value);
    return value;
  });
  return [...found].filter((target) => resolve(document, target) === undefined);
}

function resolve(document: OpenApi, target: string): unknown {
  if (!target.startsWith('#/')) return undefined;
  let at: unknown = document;
  for (const part of target.slice(2).split('/')) {
    const name = part.replaceAll('~1', '/').replaceAll('~0', '~');
    at = typeof at === 'object' && at !== null ? Reflect.get(at, name) : undefined;
  }
  return at;
}
