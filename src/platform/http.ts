import type { Readable } from 'node:stream';
import type { z } from 'zod';
import type { RoutePolicy } from '../core/authorize.ts';
import type { AuditContext, Caller, RequestOrigin } from '../core/caller.ts';
import type { ErrorCode } from '../core/errors.ts';

/**
 * A route as data. Features declare routes with defineRoute(); surfaces/web turns the list into a server, the
 * OpenAPI document and docs/reference/routes.md, and refuses to start when one has no policy.
 */
export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** Requests a minute: the limit, the requests left, and seconds until capacity returns. */
export type RequestBudget = {
  readonly limit: number;
  readonly remaining: number;
  readonly resetSeconds: number;
};

/** What a handler receives: parsed input and the caller. Never the raw credential. */
export type RouteRequest<P, Q, B> = {
  readonly caller: Caller;
  readonly auditContext: AuditContext;
  readonly origin: RequestOrigin;
  readonly params: P;
  readonly query: Q;
  readonly body: B;
  /** The rate limit of the key's owner after this request; null when the caller uses no key. */
  readonly budget: RequestBudget | null;
  /** The bytes of a request to a route with `uploads`; null when it sent JSON. */
  readonly upload: RequestUpload | null;
  /** For a route with `freshProof: 'sometimes'`: the error to throw, or null when the sign-in is fresh. */
  staleProof(): Promise<Error | null>;
  header(name: string): string | undefined;
};

/** A body that is not JSON. A raw body is one file; form parts come in the order the client sent them. */
export type RequestUpload = {
  parts(): AsyncIterable<UploadPart>;
  /** Aborted when the client disconnects before the response. */
  readonly left: AbortSignal;
  /**
   * Checks the caller's permission again. Call it after the bytes arrived, and before anything changes. Without an
   * upload, the server does this before the handler of a route that changes something.
   */
  reauthorize(): Promise<void>;
};

export type UploadPart =
  | { readonly kind: 'field'; readonly name: string; readonly value: string }
  | {
      readonly kind: 'file';
      /** Name of the form field; empty for a raw body. */
      readonly name: string;
      /** File name that the client sent; empty for a raw body. */
      readonly fileName: string;
      /** Without parameters, lower case. */
      readonly contentType: string;
      /** Read it to its end, or destroy it, before you request the next part. */
      readonly stream: Readable;
    };

export type PagePagination = { current: number; total: number; items: number; limit: number };
export type CursorPagination = { limit: number; nextCursor: string | null };

export type RouteReply<R> = {
  /** Undefined when the response has no body (204). */
  readonly data: R;
  readonly pagination?: PagePagination | CursorPagination;
  readonly headers?: Readonly<Record<string, string>>;
  /** Absent: the status of the route. 200: nothing was done, because an earlier request had done it. */
  readonly status?: 200;
  /** True: the request only verified its key, which is not the first use that ends a predecessor (decision 0039). */
  readonly isCheck?: boolean;
};

/** A body that is not the JSON envelope, such as an export; written chunk by chunk. */
export type StreamReply = {
  readonly stream: AsyncIterable<string | Uint8Array>;
  readonly contentType: string;
  readonly fileName: string;
  readonly headers?: Readonly<Record<string, string>>;
};

type Described = {
  readonly method: Method;
  /** Below /api/v2, parameters as `{id}`; `{path*}` at the end also matches slashes. */
  readonly path: string;
  /** OpenAPI operationId, lowerCamelCase, unique. */
  readonly operationId: string;
  readonly tag: string;
  readonly summary: string;
  readonly description?: string;
  readonly policy: RoutePolicy;
  /** Error code for an invalid top-level body or query field; default `invalid_body` / `invalid_query`. */
  readonly fieldCodes?: Readonly<Record<string, ErrorCode>>;
  /** Body fields that the handler itself scans for our keys, to report their position and the exposure. */
  readonly looksForKeysIn?: readonly string[];
  /** Error codes of this route besides those its policy and schemas imply. */
  readonly errors?: readonly ErrorCode[];
  /** An example body and response for the reference; credential values masked. */
  readonly example?: { readonly body?: unknown; readonly data?: unknown };
  /** True: the rate limiter neither counts nor refuses this route. */
  readonly exemptFromLimit?: boolean;
  /** Maximum bytes of the JSON body; default 64 KiB. */
  readonly bodyBytes?: number;
  /** Content types this route accepts besides JSON; its handler streams them as they arrive. */
  readonly uploads?: readonly UploadType[];
};

export type UploadType =
  | 'multipart/form-data'
  | 'application/zip'
  | 'application/gzip'
  | 'text/html'
  | 'application/x-tar'
  | 'application/octet-stream'
  // Only for a route that takes no JSON; it receives the bytes unchanged.
  | 'application/json'
  | 'application/x-www-form-urlencoded';

export type Success<R> =
  | {
      readonly status: 200 | 201 | 202;
      readonly data: z.ZodType<R>;
      readonly pagination?: 'page' | 'cursor';
      readonly etag?: boolean;
      /** What 200 means besides the status: a repeated request, which did nothing. */
      readonly replay?: string;
      /** Other content types that the route answers, as a stream, when the client asks for them. */
      readonly streams?: readonly string[];
    }
  | { readonly status: 200; readonly stream: readonly string[] }
  /** The shapes of OAuth: the body is a form, the response has no envelope, and errors are those of RFC 6749. */
  | { readonly status: 200; readonly oauth: z.ZodType<R> }
  | { readonly status: 204; readonly empty: true };

export type RouteSpec<P, Q, B, R> = Described & {
  readonly params?: z.ZodType<P>;
  readonly query?: z.ZodType<Q>;
  readonly body?: z.ZodType<B>;
  readonly success: Success<R>;
  handle(request: RouteRequest<P, Q, B>): Promise<RouteReply<R> | StreamReply> | RouteReply<R>;
};

/** A route with its types erased. They are checked where it is declared. */
export type Route = Described & {
  readonly params?: z.ZodType;
  readonly query?: z.ZodType;
  readonly body?: z.ZodType;
  readonly success: Success<unknown>;
  handle(
    request: RouteRequest<unknown, unknown, unknown>,
  ): Promise<RouteReply<unknown> | StreamReply> | RouteReply<unknown>;
};

export function defineRoute<P = Record<string, never>, Q = Record<string, never>, B = undefined, R = unknown>(
  spec: RouteSpec<P, Q, B, R>,
): Route {
  // Sound because the server parses every input with the schemas of this spec before it calls handle().
  return spec as unknown as Route;
}

/** True for a route that changes something for people and whose policy includes the limit on changes. */
export function isLimitedChange({ method, policy }: Pick<Route, 'method' | 'policy'>): boolean {
  if (method === 'GET' || typeof policy.callers === 'string' || policy.exemptFromChangeLimit) return false;
  return policy.callers.includes('session') || policy.callers.includes('access_token');
}

/** `page` is 1-based; `total` counts pages and `items` rows (contract 2). */
export function pagePagination(page: number, limit: number, items: number): PagePagination {
  return { current: page, total: Math.ceil(items / limit), items, limit };
}

export const apiBase = '/api/v2';

/** A route's path as Fastify writes it, and as the audit log writes it after the method. */
export function patternOf({ path }: Pick<Route, 'path'>): string {
  return apiBase + path.replaceAll(/\{\w+\*\}/g, '*').replaceAll(/\{(\w+)\}/g, ':$1');
}
