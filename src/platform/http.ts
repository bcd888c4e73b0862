import type { Readable } from 'node:stream';
import type { z } from 'zod';
import type { RoutePolicy } from '../core/authorize.ts';
import type { Act, Caller, RequestOrigin } from '../core/caller.ts';
import type { ErrorCode } from '../core/errors.ts';

/**
 * A route as data. Features declare routes with defineRoute(); surfaces/web turns the list into a server, the
 * OpenAPI document and docs/reference/routes.md, and refuses to start when one has no policy.
 */
export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** Requests a minute: all, those left, and seconds until capacity returns. */
export type RequestBudget = {
  readonly limit: number;
  readonly remaining: number;
  readonly resetSeconds: number;
};

/** What a handler gets: parsed input and who asks. Never the raw credential. */
export type RouteRequest<P, Q, B> = {
  readonly caller: Caller;
  readonly act: Act;
  readonly origin: RequestOrigin;
  readonly params: P;
  readonly query: Q;
  readonly body: B;
  /** Where the owner of the key that asks stands after this request; null when no key asks. */
  readonly budget: RequestBudget | null;
  /** The bytes of a request to a route with `uploads`; null when it sent JSON. */
  readonly upload: RequestUpload | null;
  /**
   * For routes with `uploads`: what the caller may do, asked again after the bytes came and before anything is changed.
   * Every other route that changes something is asked again by the server, before its handler.
   */
  readmit(): Promise<void>;
  header(name: string): string | undefined;
};

/** A body that is no JSON. A raw body is one file; parts of a form come in the order the client wrote them. */
export type RequestUpload = {
  parts(): AsyncIterable<UploadPart>;
  /** Aborted when the client is gone before its answer. */
  readonly left: AbortSignal;
};

export type UploadPart =
  | { readonly kind: 'field'; readonly name: string; readonly value: string }
  | {
      readonly kind: 'file';
      /** Of the form's field; empty for a raw body. */
      readonly name: string;
      /** As the client calls it; empty for a raw body. */
      readonly fileName: string;
      /** Without parameters, lower case. */
      readonly contentType: string;
      /** To be read to its end, or destroyed, before the next part is asked for. */
      readonly stream: Readable;
    };

export type PagePagination = { current: number; total: number; items: number; limit: number };
export type CursorPagination = { limit: number; nextCursor: string | null };

export type RouteReply<R> = {
  /** Undefined where the answer has no body (204). */
  readonly data: R;
  readonly pagination?: PagePagination | CursorPagination;
  readonly headers?: Readonly<Record<string, string>>;
};

/** A body that is not the JSON envelope, such as an export: written chunk by chunk. */
export type StreamReply = {
  readonly stream: AsyncIterable<string | Uint8Array>;
  readonly contentType: string;
  readonly fileName: string;
  readonly headers?: Readonly<Record<string, string>>;
};

type Described = {
  readonly method: Method;
  /** Below /api/v2, parameters as `{id}`; `{path*}` at the end takes slashes too. */
  readonly path: string;
  /** OpenAPI operationId, lowerCamelCase, unique. */
  readonly operationId: string;
  readonly tag: string;
  readonly summary: string;
  readonly description?: string;
  readonly policy: RoutePolicy;
  /** Which code a bad top-level body or query field gets; `invalid_body` / `invalid_query` otherwise. */
  readonly fieldCodes?: Readonly<Record<string, ErrorCode>>;
  /** Body fields in which the handler looks for our keys itself, to say where they are and to tell of them. */
  readonly looksForKeysIn?: readonly string[];
  /** Codes this route can answer besides those its policy and shape imply. */
  readonly errors?: readonly ErrorCode[];
  /** An example body and answer for the reference; credential values masked. */
  readonly example?: { readonly body?: unknown; readonly data?: unknown };
  /** True: the limiter does not count this route and does not refuse it. */
  readonly exemptFromLimit?: boolean;
  /** Most bytes of its JSON body; 64 KiB where nothing is said. */
  readonly bodyBytes?: number;
  /** Content types this route takes besides JSON; its handler gets them as they arrive. */
  readonly uploads?: readonly UploadType[];
};

export type UploadType =
  | 'multipart/form-data'
  | 'application/zip'
  | 'application/gzip'
  | 'text/html'
  | 'application/x-tar'
  | 'application/octet-stream';

export type Success<R> =
  | {
      readonly status: 200 | 201 | 202;
      readonly data: z.ZodType<R>;
      readonly pagination?: 'page' | 'cursor';
      readonly etag?: boolean;
    }
  | { readonly status: 200; readonly stream: readonly string[] }
  | { readonly status: 204; readonly empty: true };

export type RouteSpec<P, Q, B, R> = Described & {
  readonly params?: z.ZodType<P>;
  readonly query?: z.ZodType<Q>;
  readonly body?: z.ZodType<B>;
  readonly success: Success<R>;
  handle(request: RouteRequest<P, Q, B>): Promise<RouteReply<R> | StreamReply> | RouteReply<R>;
};

/** A route whose types are checked where it is declared and forgotten where it is assembled. */
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
  // Sound because the server parses every input with this very spec's schemas before it calls handle().
  return spec as unknown as Route;
}

/** True of a route that changes something for people, and whose policy lets the limit on their changes count it. */
export function isLimitedChange({ method, policy }: Pick<Route, 'method' | 'policy'>): boolean {
  if (method === 'GET' || policy.callers === 'anyone' || policy.exemptFromChangeLimit) return false;
  return policy.callers.includes('session') || policy.callers.includes('access_token');
}

/** `page` is 1-based; `total` counts pages and `items` rows (contract 2). */
export function pagePagination(page: number, limit: number, items: number): PagePagination {
  return { current: page, total: Math.ceil(items / limit), items, limit };
}
