import openapiTS, { astToString, COMMENT_HEADER, tsUnion, UNDEFINED } from 'openapi-typescript';
import type { MediaType, OpenApi, Operation } from '../src/surfaces/web/openapi/types.ts';

/** The API's requests and responses as TypeScript types for the web app, generated from the OpenAPI document. */
export const apiTypesFile = 'ui/src/api/openapi.ts';

export async function apiTypes(document: OpenApi): Promise<string> {
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
