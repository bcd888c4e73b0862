import { Readable } from 'node:stream';
import { actorOf, type Caller, type RequestOrigin } from '../../core/caller.ts';
import {
  type CursorPagination,
  isLimitedChange,
  type PagePagination,
  type RequestUpload,
  type Route,
} from '../../platform/http.ts';
import type { Authorization } from '../web/authorization.ts';
import { parseValues } from '../web/input.ts';
import type { RequestLimits } from '../web/request-limits.ts';

/** A tool's request to a route, like an HTTP request before parsing. */
export type RouteInput = {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string | undefined>>;
  readonly body?: unknown;
  /** Replaces the body. */
  readonly file?: RouteFile;
  /** The header If-Match. */
  readonly ifMatch?: string | undefined;
};

export type RouteFile = {
  readonly name: string;
  readonly contentType: string;
  readonly bytes: Uint8Array | Readable;
  /** The sender of the bytes, if a separate request carries them. */
  readonly sender?: {
    /** Aborted when the client disconnects. */
    readonly left: AbortSignal;
    /** Runs when all bytes have arrived. Rejects when the client may no longer send them. */
    checkAgain(): Promise<void>;
  };
};

export type RouteAnswer<R> = {
  readonly data: R;
  readonly pagination: PagePagination | CursorPagination | undefined;
};

/** Calls a route by its operation id. Rejects with the AppError that HTTP would answer. */
export type CallRoute = <R>(operationId: string, input?: RouteInput) => Promise<RouteAnswer<R>>;

/** Calls routes for a caller in the same steps as the web server: the limit on changes, the route's policy, its schemas. */
export function routeCaller(deps: {
  readonly routes: readonly Route[];
  readonly authorization: Authorization;
  readonly limits: Pick<RequestLimits, 'limitChange'>;
}): (caller: Caller, origin: RequestOrigin) => CallRoute {
  const byOperation = new Map(deps.routes.map((route) => [route.operationId, route]));
  return (caller, origin) =>
    async <R>(operationId: string, input: RouteInput = {}) => {
      const route = byOperation.get(operationId);
      if (route === undefined) throw new Error(`There is no route ${operationId}.`);
      if (isLimitedChange(route)) await deps.limits.limitChange(caller);
      const authorize = () => deps.authorization.authorize(caller, route.policy);
      await authorize();
      const { file } = input;
      const reply = await route.handle({
        caller,
        auditContext: { actor: actorOf(caller), origin },
        origin,
        ...parseValues(
          route,
          { params: input.params ?? {}, query: definedIn(input.query), body: input.body },
          route.method !== 'GET' && file === undefined,
        ),
        budget: null,
        upload: file === undefined ? null : uploadOf(file, authorize),
        staleProof: () => deps.authorization.staleProof(caller),
        header: (name) => (name === 'if-match' ? input.ifMatch : undefined),
      });
      if ('stream' in reply) throw new Error(`The route ${operationId} answers a stream.`);
      // The tool names the type of the answer; its output schema checks it again.
      return { data: reply.data as R, pagination: reply.pagination };
    };
}

function uploadOf(file: RouteFile, authorize: () => Promise<void>): RequestUpload {
  const { name: fileName, contentType, bytes, sender } = file;
  const stream = bytes instanceof Readable ? bytes : Readable.from([bytes]);
  return {
    async *parts() {
      yield { kind: 'file', name: '', fileName, contentType, stream };
    },
    // Without a sender, no client can disconnect: the bytes are complete.
    left: sender?.left ?? AbortSignal.any([]),
    async reauthorize() {
      await authorize();
      await sender?.checkAgain();
    },
  };
}

function definedIn(query: RouteInput['query'] = {}): Record<string, string> {
  return Object.fromEntries(
    Object.entries(query).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );
}
