import type { RoutePolicy } from '../../../core/authorize.ts';
import type { ErrorCode } from '../../../core/errors.ts';
import { isLimitedChange, type Route, type UploadType } from '../../../platform/http.ts';
import { formType, isOAuth, oauthError } from '../oauth-answers.ts';
import { callersInWords, needsInWords } from './callers.ts';
import { codesByStatus, codesOf } from './codes.ts';
import {
  alwaysNull,
  errorExamples,
  exampleRequestId,
  securitySchemes,
  sharedHeaders,
  sharedSchemas,
} from './components.ts';
import { withNamedParts } from './parts.ts';
import { type SchemaWriter, schemaWriter } from './schemas.ts';
import type {
  Answer,
  HttpMethod,
  JsonSchema,
  OpenApi,
  Operation,
  Parameter,
  PathItem,
  Ref,
} from './types.ts';

type OpenApiDeps = {
  readonly routes: readonly Route[];
  readonly version: string;
  /** The UI origin; every path is below `{serverUrl}/api/v2`. */
  readonly serverUrl: string;
  /** The product word in key prefixes (KEY_PREFIX). */
  readonly keyPrefix?: string;
};

/**
 * The OpenAPI 3.1 document of the served routes, generated from the same schemas and policies that parse and enforce.
 * Throws when an example contains something that could be a live key.
 */
export function buildOpenApi({ routes, version, serverUrl, keyPrefix = 'app' }: OpenApiDeps): OpenApi {
  const schemas = schemaWriter();
  const paths: Record<string, PathItem> = {};
  for (const route of routes) {
    const path = `/api/v2${route.path.replace('*}', '}')}`;
    const method = route.method.toLowerCase() as HttpMethod;
    paths[path] = { ...paths[path], [method]: operation(route, schemas) };
  }
  const document: OpenApi = {
    openapi: '3.1.1',
    info: {
      title: 'Postern API',
      version,
      summary:
        'API keys, static sites, Environments and agents, with access that people limit and take back.',
      description: introduction,
      license: { name: 'Apache License 2.0', identifier: 'Apache-2.0' },
    },
    jsonSchemaDialect: 'https://json-schema.org/draft/2020-12/schema',
    servers: [{ url: serverUrl, description: 'This server' }],
    tags: [...new Set(routes.map((route) => route.tag))].map((name) => ({ name })),
    paths,
    components: {
      securitySchemes: securitySchemes(keyPrefix),
      schemas: withNamedParts({ ...sharedSchemas, ...schemas.components }),
      headers: sharedHeaders,
      examples: errorExamples(new Set(routes.flatMap(codesOf))),
    },
  };
  refuseLiveLookingKeys(document);
  return document;
}

const introduction =
  'JSON over HTTP. Every response has the same shape: `request_id`, `data`, `error`, and `metadata` on lists. ' +
  'Postern refuses unknown fields and unknown query parameters, so that a typo never goes unnoticed. ' +
  'Times are RFC 3339 in UTC with milliseconds. Send keys only in the Authorization header.';

function operation(route: Route, schemas: SchemaWriter): Operation {
  const { policy } = route;
  const codes = codesOf(route);
  const parameters = parametersOf(route, codes, schemas);
  return {
    operationId: route.operationId,
    tags: [route.tag],
    summary: route.summary,
    description: describe(route),
    security: security(route),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...requestBody(route, schemas),
    responses: {
      ...successAnswers(route, schemas),
      ...failureAnswers(route, codes),
    },
    'x-postern-callers': policy.callers,
    ...(policy.scope === undefined ? {} : { 'x-postern-scope': policy.scope }),
    ...(policy.role === undefined ? {} : { 'x-postern-role': policy.role }),
    'x-postern-limited': takesKeys(policy) && route.exemptFromLimit !== true,
    'x-postern-changes-limited': isLimitedChange(route),
  };
}

function requestBody(route: Route, schemas: SchemaWriter): Pick<Operation, 'requestBody'> {
  const { body, uploads, example } = route;
  if (body === undefined && uploads === undefined) return {};
  const typed = body && {
    [isOAuth(route) ? formType : 'application/json']: {
      schema: schemas.write(body, 'input'),
      ...(example?.body === undefined ? {} : { example: example.body }),
    },
  };
  const files = (uploads ?? []).map((type) => [type, { schema: uploadSchemas[type] }] as const);
  return {
    requestBody: {
      required: uploads !== undefined || body?.safeParse(undefined).success !== true,
      content: { ...typed, ...Object.fromEntries(files) },
    },
  };
}

const bytes = { type: 'string', format: 'binary' } as const;
const uploadSchemas: Readonly<Record<UploadType, JsonSchema>> = {
  'multipart/form-data': {
    type: 'object',
    properties: { file: bytes },
    required: ['file'],
    description:
      'One ZIP, tar.gz or HTML file. The form can also have the parameters of the query as fields.',
  },
  'application/zip': bytes,
  'application/gzip': bytes,
  'text/html': bytes,
  'application/x-tar': bytes,
  'application/octet-stream': bytes,
  'application/json': {
    type: 'object',
    description: 'The payload of the event. Postern uses nothing of it.',
  },
  'application/x-www-form-urlencoded': { type: 'object', properties: { payload: { type: 'string' } } },
};

function describe(route: Route): string {
  const callers = `**Who may call it:** ${callersInWords(route.policy)}.`;
  const access = [callers, ...needsInWords(route.policy)].join(' ');
  return route.description === undefined ? access : `${route.description}\n\n${access}`;
}

function security({ policy, errors }: Route): Operation['security'] {
  const { callers, scope, tokenScope } = policy;
  if (callers === 'anyone') {
    // A route for `anyone` that asks for a credential reads the key itself, such as one that is already dead.
    return errors?.includes('authentication_required') ? [{ personalKey: [] }, { serviceKey: [] }] : [];
  }
  if (callers === 'git_server') return [{ webhookSignature: [] }, { webhookToken: [] }];
  if (callers === 'pod') return [{ ticket: [] }];
  const scopes = scope === undefined ? [] : [scope];
  const requirements = {
    session: { sessionCookie: [] },
    personal_key: { personalKey: scopes },
    service_key: { serviceKey: scopes },
    access_token: { accessToken: tokenScope === undefined ? scopes : [...scopes, tokenScope] },
  };
  return callers.map((kind) => requirements[kind]);
}

function takesKeys({ callers }: RoutePolicy): boolean {
  return typeof callers !== 'string' && (callers.includes('personal_key') || callers.includes('service_key'));
}

function parametersOf(route: Route, codes: readonly ErrorCode[], schemas: SchemaWriter): Parameter[] {
  const named = route.params === undefined ? [] : schemas.parameters(route.params, 'path');
  const query = route.query === undefined ? [] : schemas.parameters(route.query, 'query');
  return [...named, ...query, ...ifMatch(codes)];
}

function ifMatch(codes: readonly ErrorCode[]): Parameter[] {
  if (!codes.includes('precondition_failed')) return [];
  return [
    {
      name: 'If-Match',
      in: 'header',
      required: codes.includes('precondition_required'),
      description: 'The ETag of the document that you read and now change.',
      schema: { type: 'string' },
    },
  ];
}

/** A client reads a JSON type as a value, and any other as text. */
function streamSchema(type: string): JsonSchema {
  return { type: type.endsWith('+json') ? 'object' : 'string' };
}

function successAnswers(route: Route, schemas: SchemaWriter): Record<string, Answer> {
  const { success } = route;
  const answer = successAnswer(route, schemas);
  const replay = 'data' in success ? success.replay : undefined;
  return {
    ...(replay === undefined ? {} : { '200': { ...answer, description: replay } }),
    [String(success.status)]: answer,
  };
}

function successAnswer(route: Route, schemas: SchemaWriter): Answer {
  const { success } = route;
  const headers = { ...refs('x-request-id'), ...(takesKeys(route.policy) ? keyHeaders : {}) };
  if ('stream' in success) {
    return {
      description: 'The file, as a stream.',
      headers,
      content: Object.fromEntries(success.stream.map((type) => [type, { schema: streamSchema(type) }])),
    };
  }
  if ('oauth' in success)
    return {
      description: 'Done.',
      headers,
      content: {
        'application/json': {
          schema: schemas.write(success.oauth, 'output'),
          ...(route.example?.data === undefined ? {} : { example: route.example.data }),
        },
      },
    };
  if ('empty' in success) return { description: 'Done; the response has no body.', headers };
  const example = route.example?.data;
  return {
    description: success.status === 201 ? 'Created.' : success.status === 202 ? 'Accepted.' : 'Done.',
    headers: { ...headers, ...(success.etag ? refs('ETag') : {}) },
    content: {
      'application/json': {
        schema: envelope(schemas.write(success.data, 'output'), success.pagination),
        ...(example === undefined
          ? {}
          : {
              example: {
                request_id: exampleRequestId,
                data: example,
                error: null,
                ...paged(success.pagination),
              },
            }),
      },
      ...Object.fromEntries((success.streams ?? []).map((type) => [type, { schema: streamSchema(type) }])),
    },
  };
}

function envelope(data: JsonSchema, pagination: 'page' | 'cursor' | undefined): JsonSchema {
  const base = {
    request_id: { $ref: '#/components/schemas/RequestId' },
    data,
    error: alwaysNull,
  };
  if (pagination === undefined) return exact(base);
  const name = pagination === 'page' ? 'PagePagination' : 'CursorPagination';
  return exact({ ...base, metadata: exact({ pagination: { $ref: `#/components/schemas/${name}` } }) });
}

function exact(properties: Record<string, JsonSchema>): JsonSchema {
  return { type: 'object', properties, required: Object.keys(properties), additionalProperties: false };
}

function paged(pagination: 'page' | 'cursor' | undefined) {
  if (pagination === 'page')
    return { metadata: { pagination: { current: 1, total: 1, items: 1, limit: 25 } } };
  if (pagination === 'cursor') return { metadata: { pagination: { limit: 25, nextCursor: null } } };
  return {};
}

const sentences: Readonly<Record<number, string>> = {
  400: 'Something in the request is not valid.',
  401: 'The request has no credential, or a credential that is not valid.',
  403: 'The caller may not do this.',
  404: 'The resource does not exist, or the caller may not see it.',
  408: 'The request took too long to arrive.',
  409: 'The current state does not allow this.',
  410: 'The site has expired.',
  412: 'The document changed since it was read.',
  413: 'The body is too large.',
  415: 'The content type is not accepted.',
  421: 'This server does not serve this host.',
  422: 'The request is well formed, but a rule refuses it.',
  428: 'The request needs an If-Match header.',
  429: 'Too many requests.',
  431: 'The request headers are too large.',
  500: 'An internal error.',
  503: 'A service that this request needs cannot be reached; nothing was done.',
  507: 'The server has no storage space left; nothing was changed.',
};

/** Repeats the schema Error: without it, the error of generated clients would have a code and no message. */
function narrowed(codes: readonly ErrorCode[]): JsonSchema {
  const error = {
    allOf: [{ $ref: '#/components/schemas/Error' }, { properties: { code: { enum: [...codes] } } }],
  };
  return { properties: { error } };
}

function failureAnswers(route: Route, codes: readonly ErrorCode[]): Record<string, Answer> {
  const groups = isOAuth(route) ? oauthGroups(codes) : [...codesByStatus(codes)];
  const answerOf = isOAuth(route) ? oauthFailure : failureAnswer;
  return Object.fromEntries(groups.map(([status, group]) => [String(status), answerOf(status, group)]));
}

/** The codes by the status that a client of OAuth gets. */
function oauthGroups(codes: readonly ErrorCode[]): [number, ErrorCode[]][] {
  const groups = new Map<number, ErrorCode[]>();
  for (const [status, group] of codesByStatus(codes))
    for (const code of group) {
      const own = oauthError({ code, status, details: undefined }).status;
      groups.set(own, [...(groups.get(own) ?? []), code]);
    }
  return [...groups];
}

function oauthFailure(status: number, codes: readonly ErrorCode[]): Answer {
  const text = { type: 'string' } as const;
  const error = {
    ...text,
    enum: [...new Set(codes.map((code) => oauthError({ code, status, details: undefined }).error))],
  };
  return {
    description: sentences[status] ?? 'Refused.',
    headers: { ...refs('x-request-id'), ...(status === 429 || status === 503 ? refs('Retry-After') : {}) },
    content: { 'application/json': { schema: exact({ error, error_description: text, request_id: text }) } },
    'x-postern-codes': codes,
  };
}

function failureAnswer(status: number, codes: readonly ErrorCode[]): Answer {
  const challenges = status === 401 || codes.includes('forbidden_scope');
  return {
    description: sentences[status] ?? 'Refused.',
    headers: {
      ...refs('x-request-id'),
      ...(status === 429 || status === 503 ? refs('Retry-After') : {}),
      ...(status === 429 ? limitHeaders : {}),
      ...(challenges ? refs('WWW-Authenticate') : {}),
    },
    content: {
      'application/json': {
        schema: {
          allOf: [{ $ref: '#/components/schemas/Failure' }, narrowed(codes)],
        },
        examples: Object.fromEntries(codes.map((code) => [code, { $ref: `#/components/examples/${code}` }])),
      },
    },
    'x-postern-codes': codes,
  };
}

function refs(...names: string[]): Record<string, Ref> {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

const limitHeaders = refs('RateLimit-Policy', 'RateLimit');
const keyHeaders = { ...limitHeaders, ...refs('postern-key-expires-at') };

/** The reference is copied, indexed and scanned, so it must contain nothing that looks like a key (contract 10.16). */
function refuseLiveLookingKeys(document: OpenApi): void {
  const found = /[a-z]+_(?:pat|svc|fed)_[0-9A-Za-z]{20,}/.exec(JSON.stringify(document));
  if (found)
    throw new Error(`An OpenAPI example holds a key-shaped value (${found[0].slice(0, 12)}…); mask it.`);
}
