// What every operation shares: the envelope, its headers, the ways to authenticate, one example per code.
import { type ErrorCode, errorCodes, errorRegistry } from '../../../core/errors.ts';
import { sessionCookie } from '../credential.ts';
import type { Example, Header, JsonSchema, SecurityScheme } from './types.ts';

export const exampleRequestId = '0f8e4c1a-7d52-4b0e-9a36-2f1c5d8e7b90';

const requestId: JsonSchema = {
  type: 'string',
  format: 'uuid',
  description: 'Also in the x-request-id header. Include it when you report a problem.',
};

const pagePagination: JsonSchema = {
  type: 'object',
  properties: {
    current: { type: 'integer', minimum: 1, description: 'This page, 1-based.' },
    total: { type: 'integer', minimum: 0, description: 'Number of pages.' },
    items: { type: 'integer', minimum: 0, description: 'Number of rows on all pages.' },
    limit: { type: 'integer', minimum: 1, maximum: 100, description: 'Rows per page.' },
  },
  required: ['current', 'total', 'items', 'limit'],
  additionalProperties: false,
  examples: [{ current: 1, total: 1, items: 1, limit: 25 }],
};

const cursorPagination: JsonSchema = {
  type: 'object',
  properties: {
    limit: { type: 'integer', minimum: 1, maximum: 1000, description: 'Rows per response.' },
    nextCursor: {
      type: ['string', 'null'],
      description: 'Send it as `cursor` to read the next rows; null at the end.',
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
    code: {
      type: 'string',
      enum: [...errorCodes],
      description: 'Stable. Use the code, not the message, to decide what to do.',
    },
    message: { type: 'string', description: 'One sentence for a person.' },
    hint: { type: 'string', description: 'How to fix it.' },
    details: {
      type: 'object',
      additionalProperties: true,
      description: 'Facts about this request, such as the refused fields.',
    },
    docs: { type: 'string', description: 'Link to this code in the API reference.' },
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
      'What the owner of this key has left (IETF RateLimit header fields draft): `r` requests, and `t` seconds until more. Sent to keys only.',
    schema: { type: 'string' },
  },
  'RateLimit-Policy': {
    description:
      'The limit: `q` requests in any `w` seconds, for all keys of one owner together. Sent to keys only.',
    schema: { type: 'string' },
  },
  'postern-key-expires-at': {
    description: 'When the key of the request expires; sent during its last seven days.',
    schema: { type: 'string', format: 'date-time' },
  },
  'Retry-After': { description: 'Whole seconds to wait, never 0.', schema: { type: 'integer', minimum: 1 } },
  ETag: {
    description: 'The version of the document. Send it in If-Match to change the document.',
    schema: { type: 'string' },
  },
  'WWW-Authenticate': {
    description: 'RFC 6750 challenge; sent to callers with a bearer token only.',
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
        'The session of a person who signed in at /auth/login. Writes also need the web app’s own origin in `Origin`.',
    },
    personalKey: {
      type: 'http',
      scheme: 'bearer',
      bearerFormat: `${keyPrefix}_pat_…`,
      description: 'Acts as its user; its scopes and repositories can only narrow the rights of that user.',
    },
    serviceKey: {
      type: 'http',
      scheme: 'bearer',
      bearerFormat: `${keyPrefix}_svc_…`,
      description: 'A separate identity for shared automation.',
    },
    accessToken: {
      type: 'http',
      scheme: 'bearer',
      description: 'An OIDC access token of a connected client. Postern introspects it when it is used.',
    },
    webhookSignature: {
      type: 'apiKey',
      in: 'header',
      name: 'X-Hub-Signature-256',
      description:
        'From GitHub: `sha256=` and the HMAC-SHA-256 of the body in hexadecimal, with the webhook secret of the repository.',
    },
    webhookToken: {
      type: 'apiKey',
      in: 'header',
      name: 'X-Gitlab-Token',
      description: 'From GitLab: the webhook secret of the repository.',
    },
    ticket: {
      type: 'http',
      scheme: 'bearer',
      description: 'Postern gives it to a pod of an Environment: for one archive and one direction.',
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
