// What every operation shares: the envelope, its headers, the ways to authenticate, one example per code.
import { type ErrorCode, errorCodes, errorRegistry } from '../../../core/errors.ts';
import { sessionCookie } from '../credential.ts';
import type { Example, Header, JsonSchema, SecurityScheme } from './types.ts';

export const exampleRequestId = '0f8e4c1a-7d52-4b0e-9a36-2f1c5d8e7b90';

const requestId: JsonSchema = {
  type: 'string',
  format: 'uuid',
  description: 'Also in the x-request-id header. Name it when you report a problem.',
};

const pagePagination: JsonSchema = {
  type: 'object',
  properties: {
    current: { type: 'integer', minimum: 1, description: 'This page, 1-based.' },
    total: { type: 'integer', minimum: 0, description: 'How many pages there are.' },
    items: { type: 'integer', minimum: 0, description: 'How many rows there are on all pages.' },
    limit: { type: 'integer', minimum: 1, maximum: 100, description: 'Rows per page.' },
  },
  required: ['current', 'total', 'items', 'limit'],
  additionalProperties: false,
  examples: [{ current: 1, total: 1, items: 1, limit: 25 }],
};

const cursorPagination: JsonSchema = {
  type: 'object',
  properties: {
    limit: { type: 'integer', minimum: 1, maximum: 100, description: 'Rows per answer.' },
    nextCursor: {
      type: ['string', 'null'],
      description: 'Send it as `cursor` to read on; null at the end.',
    },
  },
  required: ['limit', 'nextCursor'],
  additionalProperties: false,
  examples: [{ limit: 25, nextCursor: null }],
};

/** The half of the envelope that a response does not use. Client generators refuse a bare `type: 'null'`. */
export const alwaysNull: JsonSchema = { enum: [null], description: 'Always null here.' };

const failure: JsonSchema = {
  type: 'object',
  properties: {
    request_id: { $ref: '#/components/schemas/RequestId' },
    data: alwaysNull,
    error: { $ref: '#/components/schemas/Error' },
  },
  required: ['request_id', 'data', 'error'],
  additionalProperties: false,
};

const error: JsonSchema = {
  type: 'object',
  properties: {
    code: { type: 'string', enum: [...errorCodes], description: 'Stable; decide by it, not by the message.' },
    message: { type: 'string', description: 'One sentence for a person.' },
    hint: { type: 'string', description: 'What to do about it.' },
    details: {
      type: 'object',
      additionalProperties: true,
      description: 'Facts about this very request, such as the fields that were refused.',
    },
    docs: { type: 'string', description: 'Where the API reference explains this code.' },
  },
  required: ['code', 'message'],
  additionalProperties: false,
};

export const sharedSchemas: Readonly<Record<string, JsonSchema>> = {
  RequestId: requestId,
  PagePagination: pagePagination,
  CursorPagination: cursorPagination,
  Failure: failure,
  Error: error,
};

export const sharedHeaders: Readonly<Record<string, Header>> = {
  'x-request-id': { description: 'The request’s id, the same as `request_id`.', schema: { type: 'string' } },
  RateLimit: {
    description:
      'What is left for this key’s owner (IETF RateLimit header fields draft). Sent to keys only; read `r` (requests left) and `t` (seconds until more).',
    schema: { type: 'string' },
  },
  'RateLimit-Policy': {
    description:
      'The limit: `q` requests in any `w` seconds, for all keys of one owner together. Sent to keys only.',
    schema: { type: 'string' },
  },
  'postern-key-expires-at': {
    description: 'When the key that asked expires; sent during its last seven days.',
    schema: { type: 'string', format: 'date-time' },
  },
  'Retry-After': { description: 'Whole seconds to wait, never 0.', schema: { type: 'integer', minimum: 1 } },
  ETag: {
    description: 'The version of the document; send it back in If-Match to change it.',
    schema: { type: 'string' },
  },
  'WWW-Authenticate': {
    description: 'RFC 6750 challenge; sent to bearer callers only.',
    schema: { type: 'string' },
  },
};

export function securitySchemes(keyPrefix: string): Readonly<Record<string, SecurityScheme>> {
  return {
    sessionCookie: {
      type: 'apiKey',
      in: 'cookie',
      name: sessionCookie,
      description:
        'The session of a person who signed in at /auth/login. Writes also need `Origin` to be the web app’s own.',
    },
    personalKey: {
      type: 'http',
      scheme: 'bearer',
      bearerFormat: `${keyPrefix}_pat_…`,
      description: 'Acts as its user; its scopes and repositories only narrow.',
    },
    serviceKey: {
      type: 'http',
      scheme: 'bearer',
      bearerFormat: `${keyPrefix}_svc_…`,
      description: 'An identity of its own, for automation that is nobody’s in particular.',
    },
    accessToken: {
      type: 'http',
      scheme: 'bearer',
      description: 'An OIDC access token of a connected client; introspected when it is used.',
    },
  };
}

/** One example response for each code that an operation can return. */
export function errorExamples(codes: ReadonlySet<ErrorCode>): Record<string, Example> {
  return Object.fromEntries(
    errorCodes
      .filter((code) => codes.has(code))
      .map((code) => {
        const [, message, hint] = errorRegistry[code];
        const body = { code, message, hint, docs: `/api/v2/docs#${code}` };
        return [
          code,
          { summary: message, value: { request_id: exampleRequestId, data: null, error: body } },
        ] as const;
      }),
  );
}
