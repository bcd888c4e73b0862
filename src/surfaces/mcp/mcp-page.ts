import { createMcpHandler } from '@modelcontextprotocol/server';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { RoutePolicy } from '../../core/authorize.ts';
import { mcpScope } from '../../core/scopes.ts';
import type { Authentication, McpCaller } from '../web/authentication.ts';
import type { Authorization } from '../web/authorization.ts';
import { asHook, type Step } from '../web/request-steps.ts';
import { AppError } from '../../core/errors.ts';
import type { McpPolicy } from '../../features/agents/mcp-policy.ts';
import {
  type AgentRights,
  accessUnder,
  agents,
  limitAgents,
  mcpPath,
  requireEnabled,
} from './agent-steps.ts';
import { acceptedForm, answerIn, bothForms, messageIn } from './messages.ts';
import { type RequestServerDeps, requestServer } from './request-server.ts';

/**
 * The MCP endpoint for the agents of people: `/mcp`, and the metadata that tells a client where to get a token (RFC 9728).
 * While it is off, every address here answers as if it did not exist.
 */
export type McpPageDeps = RequestServerDeps & {
  /** Issues the tokens. */
  readonly issuer: string;
  readonly authentication: Pick<Authentication, 'authenticateMcp'>;
  readonly authorization: Authorization;
};

declare module 'fastify' {
  interface FastifyRequest {
    /** Set on requests to the MCP endpoint, step by step. Each step sees the policy that the first one read. */
    mcp: {
      readonly policy: McpPolicy;
      readonly agent: McpCaller | null;
      readonly rights: AgentRights | null;
    } | null;
  }
}

const anyone: RoutePolicy = { callers: 'anyone', identity: 'none' };

/** 200 KiB of files as base64 or escaped text, with room for their names. */
export const maxMcpBodyBytes = 1_048_576;

/** The steps of every address here. */
function openSteps(deps: McpPageDeps): readonly Step[] {
  const isOn: Step = async (request) => {
    request.mcp = { policy: await requireEnabled(deps), agent: null, rights: null };
  };
  return [isOn, allowReading];
}

/** The path of a request, read from top to bottom. Then the protocol calls a tool: request-server.ts, mcp-server.ts. */
function mcpSteps(deps: McpPageDeps): readonly Step[] {
  const authenticate: Step = async (request) => {
    const found = await deps.authentication.authenticateMcp(request);
    if (found instanceof AppError) return found;
    request.caller = found.caller;
    request.mcp = { ...readSoFar(request), agent: found };
  };
  // Any origin: no browser adds the token by itself, and the listener compares Host, which stops DNS rebinding.
  const authorize: Step = ({ caller }) => deps.authorization.authorize(caller, agents);
  const limit: Step = async (request) => {
    const { callsPerMinute } = readSoFar(request).policy;
    await limitAgents(deps, agentOf(request).caller.user.id, callsPerMinute);
  };
  /** Ended? Then the client and its definition. */
  const readRights: Step = async (request) => {
    const { caller, grantId } = agentOf(request);
    const { policy } = readSoFar(request);
    const rights = await accessUnder(deps, caller, grantId ?? '', policy);
    request.mcp = { ...readSoFar(request), rights };
  };
  return [...openSteps(deps), authenticate, authorize, limit, readRights];
}

function readSoFar({ mcp }: FastifyRequest): NonNullable<FastifyRequest['mcp']> {
  if (mcp === null) throw new Error('The policy was not read.');
  return mcp;
}

function agentOf(request: FastifyRequest): McpCaller {
  const { agent } = readSoFar(request);
  if (agent === null) throw new Error('The request was not authenticated.');
  return agent;
}

export function mcpPages(deps: McpPageDeps): (scope: FastifyInstance) => void {
  const { uiOrigin, log } = deps;
  const resource = uiOrigin + mcpPath;
  const metadataPath = `/.well-known/oauth-protected-resource${mcpPath}`;
  const handler = createMcpHandler(
    ({ authInfo }) => {
      // Passed by the route below, which is the only caller.
      const request = authInfo?.extra?.['request'] as FastifyRequest;
      const rights = request.mcp?.rights ?? null;
      if (rights === null) throw new Error('The rights of the agent are not known.');
      return requestServer(deps, agentOf(request), rights, request.origin);
    },
    {
      legacy: 'stateless',
      onerror: (error) => log.debug({ err: error }, 'an MCP request was refused'),
    },
  );

  return (scope) => {
    scope.removeAllContentTypeParsers();
    // The protocol has its own answers to a body that is not JSON, so its library parses.
    scope.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
    scope.decorateRequest('mcp', null);
    const open = { config: { access: anyone }, onRequest: asHook(openSteps(deps)) };

    for (const url of ['/.well-known/oauth-protected-resource', metadataPath]) {
      scope.get(url, open, () => ({
        resource,
        authorization_servers: [deps.issuer],
        scopes_supported: [mcpScope],
        bearer_methods_supported: ['header'],
        resource_name: 'Postern',
      }));
    }

    for (const url of [mcpPath, `${mcpPath}/`]) {
      scope.options(url, open, (_request, reply) => preflight(reply));
      scope.route({
        method: ['GET', 'POST', 'DELETE'],
        url,
        exposeHeadRoute: false,
        config: { access: agents, resourceMetadata: uiOrigin + metadataPath },
        bodyLimit: maxMcpBodyBytes,
        onRequest: asHook(mcpSteps(deps)),
        errorHandler: answerTooLarge,
        async handler(request, reply) {
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
    }
  };
}

/** Clients in a browser must read the challenge and the metadata to sign a person in. Nothing here uses a cookie. */
const allowReading: Step = (_request, reply) =>
  void reply.headers({
    'access-control-allow-origin': '*',
    'access-control-expose-headers': 'www-authenticate',
    'cross-origin-resource-policy': 'cross-origin',
  });

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
