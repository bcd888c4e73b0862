import type { FastifyReply, FastifyRequest } from 'fastify';
import { reachOf } from '../../core/authorize.ts';
import { type AuditContext, actorOf, type Caller, type RequestOrigin } from '../../core/caller.ts';
import { AppError } from '../../core/errors.ts';
import type {
  RequestBudget,
  RequestUpload,
  Route,
  RouteReply,
  RouteRequest,
  StreamReply,
} from '../../platform/http.ts';
import { findCredential } from './credential.ts';
import { successBody } from './envelope.ts';
import { parseInput } from './input.ts';
import type { OpenStreams } from './open-streams.ts';
import { budgetOf } from './request-limits.ts';
import { reauthorize, type RequestStepsDeps } from './request-steps.ts';
import { sendStream } from './stream-reply.ts';

/** Runs the route's handler and sends its result; returns no promise when there is nothing to wait for. */
export function runRoute(route: Route, request: FastifyRequest, reply: FastifyReply, deps: RunDeps): unknown {
  const { openStreams } = deps;
  const again = () => reauthorize(request, route.policy, deps);
  const result = route.handle(new ApiRequest(route, request, again, deps.authorization));
  if (!(result instanceof Promise)) return answer(route, request, reply, result, { again, openStreams });
  return result.then((settled): unknown => answer(route, request, reply, settled, { again, openStreams }));
}

type RunDeps = Pick<RequestStepsDeps, 'authentication' | 'authorization' | 'openStreams'>;

function answer(
  route: Route,
  request: FastifyRequest,
  reply: FastifyReply,
  result: RouteReply<unknown> | StreamReply,
  { again, openStreams }: { again: () => Promise<void>; openStreams: OpenStreams },
): string | undefined | Promise<void> {
  if ('stream' in result)
    return sendStream(reply, result, inSameReach(request, again), (check) =>
      openStreams.enter(request.caller, check),
    );
  if ('empty' in route.success) return void reply.code(204).send();
  reply.code(result.status ?? route.success.status);
  if (result.isCheck === true && request.keyUse !== null)
    request.keyUse = { ...request.keyUse, isCheck: true };
  if (result.headers) reply.headers(result.headers);
  reply.header('content-type', 'application/json; charset=utf-8');
  const isPlain = 'oauth' in route.success;
  return JSON.stringify(isPlain ? result.data : successBody(request.id, result.data, result.pagination));
}

/** Cuts a stream when its caller reaches other repositories than at its start: the handler chose the contents for those. */
function inSameReach(request: FastifyRequest, again: () => Promise<void>): () => Promise<void> {
  const reach = String(reachOf(request.caller));
  return async () => {
    await again();
    if (String(reachOf(request.caller)) !== reach) throw new AppError('forbidden_repository');
  };
}

/** What a handler sees of a request. Values that few handlers need are created on demand. */
class ApiRequest implements RouteRequest<unknown, unknown, unknown> {
  readonly params: unknown;
  readonly query: unknown;
  readonly body: unknown;
  readonly caller: Caller;
  readonly origin: RequestOrigin;
  readonly #request: FastifyRequest;
  readonly #again: () => Promise<void>;
  readonly #authorization: RunDeps['authorization'];

  constructor(
    route: Route,
    request: FastifyRequest,
    again: () => Promise<void>,
    authorization: RunDeps['authorization'],
  ) {
    const { params, query, body } = parseInput(route, request);
    this.params = params;
    this.query = query;
    this.body = body;
    this.caller = request.caller;
    this.origin = request.origin;
    this.#request = request;
    this.#again = again;
    this.#authorization = authorization;
  }

  get auditContext(): AuditContext {
    return { actor: actorOf(this.caller), origin: this.origin };
  }

  get upload(): RequestUpload | null {
    const { upload } = this.#request;
    return upload && { ...upload, reauthorize: this.#again };
  }

  get budget(): RequestBudget | null {
    return budgetOf(this.#request.keyUse);
  }

  get staleProof(): () => Promise<AppError | null> {
    return () => this.#authorization.staleProof(this.caller);
  }

  /** A getter, because handlers take it out of the request and call it alone. */
  get header(): (name: string) => string | undefined {
    return (name) => {
      // Refuses a second one, of which Node keeps only the first (SO-02).
      if (name === 'authorization') findCredential(this.#request.raw);
      const value = this.#request.headers[name];
      return Array.isArray(value) ? value[0] : value;
    };
  }
}
