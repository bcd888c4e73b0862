import { isDeepStrictEqual } from 'node:util';
import { createMcpHandler } from '@modelcontextprotocol/server';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { decide, type RoutePolicy } from '../../core/authorize.ts';
import { actorOf, type Caller, type RequestOrigin } from '../../core/caller.ts';
import type { Clock } from '../../core/clock.ts';
import { AppError } from '../../core/errors.ts';
import { mcpScope, type Scope } from '../../core/scopes.ts';
import type { AgentSessions } from '../../features/agents/agents.ts';
import type { AgentApprovals } from '../../features/agents/approvals.ts';
import { resultOf } from '../../features/agents/call-result.ts';
import type { McpUploads } from '../../features/agents/mcp-uploads.ts';
import type { Log } from '../../platform/log.ts';
import type { Authentication, McpCaller } from '../web/authentication.ts';
import type { Authorization } from '../web/authorization.ts';
import type { Metrics } from '../web/metrics.ts';
import {
  type AgentRights,
  accessUnder,
  agents,
  type AgentStepsDeps,
  agentUnder,
  limitAgents,
  requireEnabled,
} from './agent-steps.ts';
import type { CallRoute } from './call-route.ts';
import type { Confirmations } from './confirmations.ts';
import { type ExternalTools, externalToolsFor } from './external-tools.ts';
import { ownRule, toolServer } from './mcp-server.ts';
import { acceptedForm, answerIn, bothForms, messageIn } from './messages.ts';
import { denialOf, type Tool } from './tool.ts';

/**
 * The MCP endpoint for the agents of people: `/mcp`, and the metadata that tells a client where to get a token (RFC 9728).
 * The path of a request, from top to bottom: on? → token → person → limit → ended? → client → definition → protocol →
 * tool. While it is off, every address here answers as if it did not exist.
 */
export type McpPageDeps = AgentStepsDeps & {
  readonly uiOrigin: string;
  /** Issues the tokens. */
  readonly issuer: string;
  readonly tools: readonly Tool[];
  readonly external: ExternalTools;
  readonly authentication: Pick<Authentication, 'authenticateMcp'>;
  readonly authorization: Authorization;
  readonly callRoute: (caller: Caller, origin: RequestOrigin) => CallRoute;
  readonly confirmations: Confirmations;
  readonly approvals: Pick<AgentApprovals, 'use'>;
  readonly uploads: Pick<McpUploads, 'offer'>;
  readonly sessions: Pick<AgentSessions, 'record'>;
  readonly count: Metrics['countAgentCall'];
  readonly clock: Clock;
  readonly pause: (ms: number) => Promise<void>;
  readonly log: Log;
};

declare module 'fastify' {
  interface FastifyRequest {
    /** Set on requests to the MCP endpoint. The policy is that for the client. */
    mcp: (McpCaller & AgentRights) | null;
  }
}

export const mcpPath = '/mcp';

const anyone: RoutePolicy = { callers: 'anyone', identity: 'none' };

/** 200 KiB of files as base64 or escaped text, with room for their names. */
export const maxMcpBodyBytes = 1_048_576;

export function mcpPages(deps: McpPageDeps): (scope: FastifyInstance) => void {
  const { uiOrigin, authentication, authorization, clock, log } = deps;
  const resource = uiOrigin + mcpPath;
  const metadataPath = `/.well-known/oauth-protected-resource${mcpPath}`;
  const handler = createMcpHandler(
    ({ authInfo }) => {
      // Passed by the handler below, which is the only caller.
      const request = authInfo?.extra?.['request'] as FastifyRequest;
      if (request.mcp === null) throw new Error('The request was not authenticated.');
      const { grantId, policy, definition, wholePolicy } = request.mcp;
      const caller = agentUnder(request.mcp.caller, request.mcp);
      const { user, clientId } = caller;
      const may = (scope: Scope) =>
        decide(caller, { callers: [caller.kind], scope, identity: 'none' }, { kind: 'not_asked' });
      const startedAt = clock.now();
      // Undefined: the call is of a tool of Postern.
      let accepted: Awaited<ReturnType<ExternalTools['tools']>> | undefined;
      async function external() {
        const found = await deps.external.tools(user.id);
        accepted = found;
        return externalToolsFor(
          { ...deps.external, tools: async () => found },
          user.id,
          wholePolicy,
          definition,
        );
      }
      async function requireSameRights(): Promise<void> {
        const rights = await accessUnder(deps, caller, grantId ?? '', await requireEnabled(deps));
        const isSame =
          isDeepStrictEqual(rights, { policy, definition, wholePolicy }) &&
          (accepted === undefined || isDeepStrictEqual(await deps.external.tools(user.id), accepted));
        if (!isSame) throw rightsChanged;
      }
      return toolServer({
        tools: deps.tools,
        external,
        lookForChanges: () => deps.external.lookForChanges(user.id),
        context: {
          call: deps.callRoute(caller, request.origin),
          person: { id: user.id, name: user.name },
          clientId,
          policy,
          workspace: definition?.workspace ?? null,
          mayChange: () =>
            deps.tools.some(
              (tool) =>
                tool.effect !== 'read' &&
                ownRule(tool, policy) !== 'hidden' &&
                denialOf(tool, { may }) === null,
            ),
          may,
          // A call that waits, such as for its approval, ends with what it was allowed by.
          async pause(ms) {
            await deps.pause(ms);
            await requireSameRights();
          },
          approvalId: null,
          async offerUpload(asked) {
            const offer = { ...asked, userId: user.id, clientId, grantId: grantId ?? '' };
            const { id, token, expiresAt } = await deps.uploads.offer(offer);
            return { url: `${resource}/uploads/${id}`, token, expiresAt };
          },
        },
        confirmations: deps.confirmations,
        approvals: {
          use: (call) => deps.approvals.use({ ...call, grantId }),
          pageOf: (id) => `${uiOrigin}/settings/agents/approvals/${id}`,
        },
        async record({ tool, hasChanged, code, approvalId, step, objectId, arguments: sent }) {
          const isOwn = deps.tools.some(({ name }) => name === tool);
          deps.count(isOwn ? tool : 'external', resultOf(code, step));
          await deps.sessions.record({
            userId: user.id,
            clientId,
            grantId: grantId ?? '',
            definition: definition ?? null,
            at: startedAt,
            tool,
            code,
            approvalId,
            step,
            objectId,
            durationMs: Math.max(0, clock.now() - startedAt),
            arguments: policy.sessionReview.arguments === 'none' ? {} : sent,
            change: hasChanged ? { actor: actorOf(caller), origin: request.origin } : null,
          });
        },
        onFailure: (error, tool) => log.error({ err: error, requestId: request.id, tool }, 'a tool failed'),
      });
    },
    {
      legacy: 'stateless',
      onerror: (error) => log.debug({ err: error }, 'an MCP request was refused'),
    },
  );

  async function authenticate(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const policy = await requireEnabled(deps);
    allowReading(reply);
    if (request.method === 'OPTIONS') return;
    const found = await authentication.authenticateMcp(request);
    if (found instanceof AppError) throw found;
    const { caller, grantId } = found;
    request.caller = caller;
    // Any origin: no browser adds the token by itself, and the listener compares Host, which stops DNS rebinding.
    await authorization.authorize(caller, agents);
    await limitAgents(deps, caller.user.id, policy.callsPerMinute);
    request.mcp = { caller, grantId, ...(await accessUnder(deps, caller, grantId ?? '', policy)) };
  }

  return (scope) => {
    scope.removeAllContentTypeParsers();
    // The protocol has its own answers to a body that is not JSON, so its library parses.
    scope.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
    scope.decorateRequest('mcp', null);

    for (const url of ['/.well-known/oauth-protected-resource', metadataPath]) {
      scope.get(url, { config: { access: anyone } }, async (_request, reply) => {
        await requireEnabled(deps);
        return allowReading(reply).send({
          resource,
          authorization_servers: [deps.issuer],
          scopes_supported: [mcpScope],
          bearer_methods_supported: ['header'],
          resource_name: 'Postern',
        });
      });
    }

    for (const url of [mcpPath, `${mcpPath}/`])
      scope.route({
        method: ['GET', 'POST', 'DELETE', 'OPTIONS'],
        url,
        exposeHeadRoute: false,
        config: { access: agents, resourceMetadata: uiOrigin + metadataPath },
        bodyLimit: maxMcpBodyBytes,
        onRequest: authenticate,
        errorHandler: answerTooLarge,
        async handler(request, reply) {
          if (request.method === 'OPTIONS') return await preflight(reply);
          const form = acceptedForm(request.headers.accept);
          if (form === null) return await notAcceptable(reply);
          const parsedBody = request.method === 'POST' ? messageIn(request.body) : undefined;
          if (opensStream(parsedBody)) return await noStream(reply, parsedBody.id);
          const response = await handler.fetch(toWebRequest(request, resource), {
            authInfo: { token: '', clientId: '', scopes: [], extra: { request } },
            ...(parsedBody === undefined ? {} : { parsedBody }),
          });
          for (const [name, value] of response.headers) reply.header(name, value);
          // Streams end with the answer of the one request, which is short.
          // Sent as text, which Node writes together with the headers.
          const whole = { type: response.headers.get('content-type'), text: await response.text() };
          const { type, text } = answerIn(form, whole, Array.isArray(parsedBody));
          if (type !== null) reply.header('content-type', type);
          return await reply.code(response.status).send(text);
        },
      });
  };
}

const rightsChanged = new AppError('state_conflict', {
  message: 'What this client may do changed while the call waited.',
  hint: 'Read tools/list, then make the call again.',
});

/** Clients in a browser must read the challenge and the metadata to sign a person in. Nothing here uses a cookie. */
function allowReading(reply: FastifyReply): FastifyReply {
  return reply.headers({
    'access-control-allow-origin': '*',
    'access-control-expose-headers': 'www-authenticate',
    'cross-origin-resource-policy': 'cross-origin',
  });
}

/** Streams are not supported: one would outlive the rights with which it was opened. */
function opensStream(message: unknown): message is { readonly id: unknown } {
  return (
    typeof message === 'object' &&
    message !== null &&
    'method' in message &&
    message.method === 'subscriptions/listen' &&
    'id' in message
  );
}

function noStream(reply: FastifyReply, id: unknown): FastifyReply {
  return reply.code(404).send({ jsonrpc: '2.0', id, error: { code: -32_601, message: 'Method not found' } });
}

/** Answers a message that is too large. The handler of all routes answers any other error. */
function answerTooLarge(
  error: Error & { readonly code?: string },
  _request: FastifyRequest,
  reply: FastifyReply,
): void {
  if (error.code !== 'FST_ERR_CTP_BODY_TOO_LARGE') throw error;
  const message = `The message is larger than ${maxMcpBodyBytes} bytes. To publish more, call publish_site with a manifest.`;
  void reply.code(413).send({ jsonrpc: '2.0', id: null, error: { code: -32_600, message } });
}

function notAcceptable(reply: FastifyReply): FastifyReply {
  const message = `The header Accept has no type that this endpoint answers with. Send "Accept: ${bothForms}".`;
  return reply.code(406).send({ jsonrpc: '2.0', id: null, error: { code: -32_000, message } });
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
  const headers = Object.entries({ ...request.headers, accept: bothForms }).flatMap(
    ([name, value]): [string, string][] =>
      name === 'authorization' || typeof value !== 'string' ? [] : [[name, value]],
  );
  // Read by the parser above.
  return new Request(url, {
    method,
    headers,
    ...(method === 'POST' ? { body: (body ?? '') as Buffer<ArrayBuffer> } : {}),
  });
}
