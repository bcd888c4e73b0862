import type { HttpMethod, OpenApi, Operation, Parameter } from '../openapi/types.ts';
import { compact } from './prose.ts';

/**
 * A curl call that a reader can paste. Ids are examples. The credential is a key in the environment, or the session in
 * `jar` that the section on authentication creates.
 */
export function curlOf(
  document: OpenApi,
  path: string,
  method: HttpMethod,
  operation: Operation,
  body: unknown,
): string {
  const origin = document.servers[0]?.url ?? '';
  const parameters = operation.parameters ?? [];
  const url = `${origin}${path.replaceAll(/\{(\w+)\}/g, (_, name: string) => exampleOf(parameters, name))}`;
  const required = parameters.filter((one) => one.in === 'query' && one.required);
  const query = required.map(({ name }) => `${name}=${exampleOf(parameters, name)}`).join('&');
  const lines = [
    `curl${method === 'get' ? '' : ` -X ${method.toUpperCase()}`} '${url}${query === '' ? '' : `?${query}`}'`,
    ...credential(operation, method, origin),
    ...(sendsEtag(operation) ? ['-H "If-Match: $ETAG"'] : []),
    ...(body === undefined ? [] : sent(operation, body)),
  ];
  return lines.join(' \\\n  ');
}

function sent({ requestBody }: Operation, body: unknown): string[] {
  const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;
  if (requestBody?.content['application/json'] === undefined)
    return Object.entries(body as object).map(
      ([name, value]) => `--data-urlencode ${quoted(`${name}=${value}`)}`,
    );
  return ["-H 'Content-Type: application/json'", `-d ${quoted(compact(JSON.stringify(body, null, 2)))}`];
}

/** A key wherever keys are accepted, because that is what a script has. */
function credential(operation: Operation, method: HttpMethod, origin: string): string[] {
  const callers = operation['x-postern-callers'];
  // A route for `anyone` that can return 401 reads the header itself, as revoking a leaked key does.
  if (callers === 'anyone') return '401' in operation.responses ? [bearerKey] : [];
  if (callers === 'git_server') return ['-H "X-Hub-Signature-256: $SIGNATURE"'];
  if (callers === 'pod') return ['-H "Authorization: Bearer $TRANSFER_TICKET"'];
  if (takesKeys(callers)) return [bearerKey];
  if (needsSession(operation)) {
    return method === 'get' ? ['-b jar'] : ['-b jar', `-H 'Origin: ${origin}'`];
  }
  return ['-H "Authorization: Bearer $ACCESS_TOKEN"'];
}

const bearerKey = '-H "Authorization: Bearer $POSTERN_KEY"';

/** Whether the sample signs in as a person: for everything that keys may not do. */
export function needsSession(operation: Operation): boolean {
  const callers = operation['x-postern-callers'];
  return typeof callers !== 'string' && callers.includes('session') && !takesKeys(callers);
}

export function sendsEtag(operation: Operation): boolean {
  return (operation.parameters ?? []).some((one) => one.in === 'header' && one.name === 'If-Match');
}

function takesKeys(callers: readonly string[]): boolean {
  return callers.includes('personal_key') || callers.includes('service_key');
}

/** @throws Error for a parameter without an example: a sample with a gap cannot run */
function exampleOf(parameters: readonly Parameter[], name: string): string {
  const example: unknown = parameters.find((one) => one.name === name)?.schema.examples?.[0];
  if (typeof example !== 'string') throw new Error(`The parameter ${name} has no example.`);
  return example;
}
