import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import openapiTS, { astToString, COMMENT_HEADER, tsUnion, UNDEFINED } from 'openapi-typescript';
import { allRoutes } from '../src/composition/all-routes.ts';
import { version } from '../src/platform/version.ts';
import { buildOpenApi } from '../src/surfaces/web/openapi/openapi.ts';
import type { MediaType, OpenApi, Operation } from '../src/surfaces/web/openapi/types.ts';
import { documentBounds, trustBounds } from './document-bounds.ts';

// Writes what the web app takes from the OpenAPI document: the API's requests and responses as TypeScript types, and the
// bounds of the configuration documents and of trust rules.
const serverUrl = 'https://postern.example';
const document = buildOpenApi({ routes: await allRoutes(), version, serverUrl });
await write('src/api/openapi.ts', await apiTypes(document));
await write('src/administration/documents/bounds.ts', documentBounds(document));
await write('src/keys/trust/bounds.ts', trustBounds(document));

/**
 * A file that is current keeps its time, so that the web app is not built again. The file appears whole: two programs may
 * write it at once.
 */
async function write(name: string, text: string): Promise<void> {
  const file = join(import.meta.dirname, name);
  if ((await readFile(file, 'utf8').catch(() => undefined)) === text) return;
  const fresh = `${file}.${process.pid}`;
  await writeFile(fresh, text);
  await rename(fresh, file);
}

async function apiTypes(document: OpenApi): Promise<string> {
  const paths = Object.entries(document.paths).map(([path, item]) => [
    path.replace('/api/v2', ''),
    Object.fromEntries(Object.entries(item).map(([method, operation]) => [method, usedPartOf(operation)])),
  ]);
  const { securitySchemes, schemas } = document.components;
  const used = { ...document, paths: Object.fromEntries(paths), components: { securitySchemes, schemas } };
  const types = await openapiTS(JSON.stringify(used), {
    // A request may leave out a field that has a default.
    defaultNonNullable: false,
    // A page may pass a parameter that has no value; the client does not send it.
    postTransform: (type, { path = '' }) =>
      path.includes('/parameters/query/') ? tsUnion([type, UNDEFINED]) : type,
  });
  return COMMENT_HEADER + astToString(types);
}

/** What the web app uses of an operation: JSON, and the response of a success. It reads every failure as a `Failure`. */
function usedPartOf({ requestBody, responses, ...operation }: Operation) {
  const successes = Object.entries(responses)
    .filter(([status]) => status.startsWith('2'))
    .map(([status, { description, content }]) => [status, { description, content: jsonOf(content) }]);
  return {
    ...operation,
    ...(requestBody && { requestBody: { ...requestBody, content: jsonOf(requestBody.content) } }),
    responses: Object.fromEntries(successes),
  };
}

function jsonOf(content: Readonly<Record<string, MediaType>> = {}) {
  const json = content['application/json'];
  return json && { 'application/json': { schema: json.schema } };
}
