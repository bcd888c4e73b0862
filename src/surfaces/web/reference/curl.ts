import type { HttpMethod, OpenApi, Operation } from '../openapi/types.ts';
import { sessionCookie } from '../credential.ts';
import { compact } from './html.ts';

/** A call by curl that can be pasted after its capitals are filled in; the credential comes from the environment. */
export function curlOf(
  document: OpenApi,
  path: string,
  method: HttpMethod,
  operation: Operation,
  body: unknown,
): string {
  const origin = document.servers[0]?.url ?? '';
  const url = `${origin}${path.replaceAll(/\{(\w+)\}/g, (_, name: string) => placeholder(name))}`;
  const required = (operation.parameters ?? []).filter((one) => one.in === 'query' && one.required);
  const query = required.map(({ name }) => `${name}=${placeholder(name)}`).join('&');
  const lines = [
    `curl${method === 'get' ? '' : ` -X ${method.toUpperCase()}`} '${url}${query === '' ? '' : `?${query}`}'`,
    ...credential(operation, method, origin),
    ...(operation.parameters ?? [])
      .filter((one) => one.in === 'header')
      .map(({ name }) => `-H '${name}: "${placeholder('etag')}"'`),
    ...(body === undefined
      ? []
      : [
          "-H 'Content-Type: application/json'",
          `-d '${compact(JSON.stringify(body, null, 2)).replaceAll("'", "'\\''")}'`,
        ]),
  ];
  return lines.join(' \\\n  ');
}

/** A key where keys are accepted: that is what a script has. */
function credential(operation: Operation, method: HttpMethod, origin: string): string[] {
  const callers = operation['x-postern-callers'];
  // A route for anyone that can answer 401 reads the header itself, as revoking a leaked key does.
  if (callers === 'anyone') return '401' in operation.responses ? [bearerKey] : [];
  if (callers.includes('personal_key') || callers.includes('service_key')) {
    return [bearerKey];
  }
  if (callers.includes('session')) {
    const cookie = `-b "${sessionCookie}=$SESSION"`;
    return method === 'get' ? [cookie] : [cookie, `-H 'Origin: ${origin}'`];
  }
  return ['-H "Authorization: Bearer $ACCESS_TOKEN"'];
}

const bearerKey = '-H "Authorization: Bearer $POSTERN_KEY"';

function placeholder(name: string): string {
  return name.replaceAll(/([a-z])([A-Z])/g, '$1_$2').toUpperCase();
}
