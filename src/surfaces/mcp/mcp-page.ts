import { createMcpHandler } from '@modelcontextprotocol/server';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { RoutePolicy } from '../../core/authorize.ts';
import { actorOf, type Caller, type RequestOrigin } from '../../core/caller.ts';
import type { Clock } from '../../core/clock.ts';
import { AppError } from '../../core/errors.ts';
import { mcpScope } from '../../core/scopes.ts';
import type { AgentSessions } from '../../features/agents/agents.ts';
import type { AgentApprovals } from '../../features/agents/approvals.ts';
import { type AgentDefinition, policyUnder } from '../../features/agents/definition.ts';
import type { McpClients } from '../../features/agents/mcp-clients.ts';
import type { McpPolicy } from '../../features/agents/mcp-policy.ts';
import { type RateLimiter, retryAfterSeconds } from '../../features/rate-limit/rate-limit.ts';
import type { Log } from '../../platform/log.ts';
import type { Authentication, McpCaller } from '../web/authentication.ts';
import type { Authorization } from '../web/authorization.ts';
import type { CallRoute } from './call-route.ts';
import type { Confirmations } from './confirmations.ts';
import { type ExternalTools, externalToolsFor } from './external-tools.ts';
import { toolServer } from './mcp-server.ts';
import type { Tool } from './tool.ts';

/**
 * The MCP endpoint for the agents of people: `/mcp`, and the metadata that tells a client where to get a token (RFC 9728).
 * The path of a request, from top to bottom: on? → token → origin → person → limit → ended? → client → definition → protocol →
 * tool. While it is off, every address here answers as if it did not exist.
 */
export type McpPageDeps = {
  readonly uiOrigin: string;
  /** Issues the tokens. */
  readonly issuer: string;
  readonly policy: () => Promise<McpPolicy>;
  readonly definitionOf: (clientId: string) => Promise<AgentDefinition | undefined>;
  readonly tools: readonly Tool[];
  readonly external: ExternalTools;
  readonly authentication: Pick<Authentication, 'authenticateMcp'>;
  readonly authorization: Authorization;
  readonly limiter: Pick<RateLimiter, 'spend'>;
  readonly callRoute: (caller: Caller, origin: RequestOrigin) => CallRoute;
  readonly confirmations: Confirmations;
  readonly approvals: Pick<AgentApprovals, 'use'>;
  readonly sessions: Pick<AgentSessions, 'record' | 'isEnded'>;
  readonly clients: Pick<McpClients, 'statusOf'>;
  readonly clock: Clock;
  readonly pause: (ms: number) => Promise<void>;
  readonly log: Log;
};

declare module 'fastify' {
  interface FastifyRequest {
    /** Set on requests to the MCP endpoint. The policy is that for the client. */
    mcp:
      | (McpCaller & {
          readonly policy: McpPolicy;
          readonly external: () => Promise<readonly Tool[]>;
        })
      | null;
  }
}

export const mcpPath = '/mcp';

/** Any person who may use Postern, through a client that the person allowed. */
const agents: RoutePolicy = {
  callers: ['access_token'],
  role: 'user',
  tokenScope: mcpScope,
  identity: 'introspected',
};
const anyone: RoutePolicy = { callers: 'anyone', identity: 'none' };

const maxBodyBytes = 262_144;

export function mcpPages(deps: McpPageDeps): (scope: FastifyInstance) => void {
  const { uiOrigin, authentication, authorization, limiter, clock, log } = deps;
  const resource = uiOrigin + mcpPath;
  const metadataPath = `/.well-known/oauth-protected-resource${mcpPath}`;
  const handler = createMcpHandler(
    ({ authInfo }) => {
      // Passed by the handler below, which is the only caller.
      const request = authInfo?.extra?.['request'] as FastifyRequest;
      if (request.mcp === null) throw new Error('The request was not authenticated.');
      const { caller, grantId, policy, external } = request.mcp;
      const { user, clientId } = caller;
      const startedAt = clock.now();
      return toolServer({
        tools: deps.tools,
        external,
        lookForChanges: () => deps.external.lookForChanges(user.id),
        context: {
          call: deps.callRoute({ ...caller, scopes: scopesUnder(policy) }, request.origin),
          person: { id: user.id, name: user.name },
          clientId,
          policy,
          pause: deps.pause,
        },
        confirmations: deps.confirmations,
        approvals: {
          use: deps.approvals.use,
          pageOf: (id) => `${uiOrigin}/settings/agents/approvals/${id}`,
        },
        record: ({ tool, hasChanged, code, approvalId, arguments: sent }) =>
          deps.sessions.record({
            userId: user.id,
            clientId,
            grantId: grantId ?? '',
            at: startedAt,
            tool,
            code,
            approvalId,
            durationMs: Math.max(0, clock.now() - startedAt),
            arguments: policy.sessionReview.arguments === 'none' ? {} : sent,
            change: hasChanged ? { actor: actorOf(caller), origin: request.origin } : null,
          }),
        onFailure: (error, tool) => log.error({ err: error, requestId: request.id, tool }, 'a tool failed'),
      });
    },
    {
      legacy: 'stateless',
      // No tool changes while a client is connected, so nobody needs to wait for changes.
      maxSubscriptions: 0,
      onerror: (error) => log.debug({ err: error }, 'an MCP request was refused'),
    },
  );

  async function requireEnabled(): Promise<McpPolicy> {
    const policy = await deps.policy();
    if (!policy.enabled) throw new AppError('not_found');
    return policy;
  }

  async function authenticate(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const policy = await requireEnabled();
    allowReading(reply);
    if (request.method === 'OPTIONS') return;
    const found = await authentication.authenticateMcp(request);
    if (found instanceof AppError) throw found;
    const { caller, grantId } = found;
    request.caller = caller;
    const { origin } = request.headers;
    // No browser attaches the token by itself; refused all the same, because the protocol demands it.
    if (origin !== undefined && origin !== uiOrigin)
      throw new AppError('forbidden_origin', { hint: foreignOrigin });
    await authorization.authorize(caller, agents);
    await limit(caller.user.id, policy.callsPerMinute);
    const { user, clientId } = caller;
    const [isEnded, status, definition] = await Promise.all([
      deps.sessions.isEnded({ userId: user.id, clientId, grantId: grantId ?? '' }),
      deps.clients.statusOf(clientId),
      deps.definitionOf(clientId),
    ]);
    if (isEnded) throw accessEnded;
    if (status !== 'allowed') throw status === 'waiting' ? clientWaits : new AppError('client_not_allowed');
    request.mcp = {
      caller,
      grantId,
      policy: policyUnder(policy, definition),
      external: () => externalToolsFor(deps.external, caller.user.id, policy, definition),
    };
  }

  async function limit(userId: string, perMinute: number): Promise<void> {
    // A name of its own, so that the budget is independent of those of keys and of changes.
    const spend = await limiter.spend({ owner: `mcp:${userId}`, key: '', limit: perMinute });
    if (spend.allowed) return;
    const wait = retryAfterSeconds(spend);
    throw new AppError('rate_limited', {
      message: `Your agents may make ${perMinute} requests in any 60 seconds.`,
      retryAfterSeconds: wait,
      details: { limit: perMinute, retryAfterSeconds: wait },
    });
  }

  return (scope) => {
    scope.removeAllContentTypeParsers();
    // The protocol has its own answers to a body that is not JSON, so its library parses.
    scope.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
    scope.decorateRequest('mcp', null);

    for (const url of ['/.well-known/oauth-protected-resource', metadataPath]) {
      scope.get(url, { config: { access: anyone } }, async (_request, reply) => {
        await requireEnabled();
        return allowReading(reply).send({
          resource,
          authorization_servers: [deps.issuer],
          scopes_supported: [mcpScope],
          bearer_methods_supported: ['header'],
          resource_name: 'Postern',
        });
      });
    }

    scope.route({
      method: ['GET', 'POST', 'DELETE', 'OPTIONS'],
      url: mcpPath,
      exposeHeadRoute: false,
      config: { access: agents, resourceMetadata: uiOrigin + metadataPath },
      bodyLimit: maxBodyBytes,
      onRequest: authenticate,
      async handler(request, reply) {
        if (request.method === 'OPTIONS') return await preflight(reply);
        const response = await handler.fetch(toWebRequest(request, resource), {
          authInfo: { token: '', clientId: '', scopes: [], extra: { request } },
        });
        for (const [name, value] of response.headers) reply.header(name, value);
        // Streams end with the answer of the one request, which is short.
        return await reply.code(response.status).send(Buffer.from(await response.arrayBuffer()));
      },
    });
  };
}

const accessEnded = new AppError('invalid_credential', {
  message: 'The access of this client was ended.',
  hint: 'Connect the client again. The person must allow it once more.',
});
const clientWaits = new AppError('client_not_allowed', {
  message: 'An administrator must allow this client first.',
});
const foreignOrigin = 'Call this address from a program, not from a page of another site.';

/** Policy and definition decide what agents may do; the consent of a person covers all of it. */
function scopesUnder({ allowChanges }: McpPolicy): readonly string[] {
  return allowChanges ? ['env:write', 'sites:write', 'repos:read'] : ['env:read', 'sites:read', 'repos:read'];
}

/** Clients in a browser must read the challenge and the metadata to sign a person in. Nothing here uses a cookie. */
function allowReading(reply: FastifyReply): FastifyReply {
  return reply.headers({
    'access-control-allow-origin': '*',
    'access-control-expose-headers': 'www-authenticate',
    'cross-origin-resource-policy': 'cross-origin',
  });
}

function preflight(reply: FastifyReply): FastifyReply {
  return reply
    .code(204)
    .headers({
      'access-control-allow-methods': 'POST',
      'access-control-allow-headers':
        'authorization, content-type, accept, mcp-protocol-version, mcp-method, mcp-name',
      'access-control-max-age': '600',
    })
    .send();
}

/** Without the token: the protocol does not need it. */
function toWebRequest(request: FastifyRequest, url: string): Request {
  const { method, body } = request;
  const headers = Object.entries(request.headers).flatMap(([name, value]): [string, string][] =>
    name === 'authorization' || typeof value !== 'string' ? [] : [[name, value]],
  );
  // Read by the parser above.
  return new Request(url, {
    method,
    headers,
    ...(method === 'POST' ? { body: (body ?? '') as Buffer<ArrayBuffer> } : {}),
  });
}
