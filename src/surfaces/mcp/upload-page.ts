import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { decide, type RoutePolicy } from '../../core/authorize.ts';
import { actorOf, type Caller, type RequestOrigin, type UserRef } from '../../core/caller.ts';
import type { Clock } from '../../core/clock.ts';
import { AppError, type ErrorCode } from '../../core/errors.ts';
import { mcpScope } from '../../core/scopes.ts';
import type { AgentSessions } from '../../features/agents/agents.ts';
import type { McpUpload, McpUploads } from '../../features/agents/mcp-uploads.ts';
import type { AgentGrant } from '../../features/agents/session-store.ts';
import type { RequestUpload, UploadType } from '../../platform/http.ts';
import type { Log } from '../../platform/log.ts';
import type { Authorization } from '../web/authorization.ts';
import type { RefuseBadCredential } from '../web/bad-credentials.ts';
import { findCredential } from '../web/credential.ts';
import { successBody } from '../web/envelope.ts';
import { acceptUploads } from '../web/upload-bodies.ts';
import {
  accessEnded,
  type AgentRights,
  accessUnder,
  type AgentCaller,
  agents,
  agentUnder,
  type AgentStepsDeps,
  limitAgents,
  mcpPath,
  requireEnabled,
} from './agent-steps.ts';
import type { CallRoute } from './call-route.ts';
import { ruleNow } from './mcp-server.ts';
import { type Published, publishedSite } from './published-site.ts';
import { existingSite } from './upload-offer.ts';

/**
 * `PUT /mcp/uploads/{id}`: the files of a site that `publish_site` gave this address for. The token identifies the
 * sender and gives no right. The path of a request, from top to bottom: on? → token → origin → limit → client →
 * definition → person →
 * grant → rule → scope → site → used up → bytes → all of it again → published by a route, if they are the announced files.
 */
export type UploadPageDeps = AgentStepsDeps & {
  readonly uiOrigin: string;
  readonly uploads: Pick<McpUploads, 'find' | 'use'>;
  readonly findUser: (id: string) => Promise<UserRef | undefined>;
  /** Null: the identity provider does not say. */
  readonly isGrantLive: (grant: AgentGrant) => Promise<boolean | null>;
  readonly authorization: Authorization;
  readonly refuse: RefuseBadCredential;
  readonly callRoute: (caller: Caller, origin: RequestOrigin) => CallRoute;
  readonly sessions: Pick<AgentSessions, 'record'>;
  readonly clock: Clock;
  readonly log: Log;
};

/** `caller`: has the scopes that policy and definition leave. */
type Sender = Rights & { readonly upload: McpUpload };
type Rights = { readonly caller: AgentCaller; readonly definition: AgentRights['definition'] };

declare module 'fastify' {
  interface FastifyRequest {
    /** Set on requests to an upload address, once every check has passed. */
    agentUpload: (Sender & { readonly token: string }) | null;
  }
}

/** The scope that policy, definition and workspace must leave. */
const publishing: RoutePolicy = { callers: ['access_token'], scope: 'sites:write', identity: 'none' };

const types = ['application/gzip', 'application/zip'] as const satisfies readonly UploadType[];
const fileNames: Readonly<Record<string, string>> = {
  'application/gzip': 'files.tar.gz',
  'application/zip': 'files.zip',
};
/** The maximum overhead of an archive: names, padding and its own structure. */
const bytesForEachFile = 4_096;
const bytesForArchive = 65_536;

const noSuchUpload = new AppError('invalid_credential', {
  message: 'This upload token is not valid. It is used up, has expired, or is of another address.',
  hint: 'Call publish_site again. It answers a new address and a new token.',
});

export function uploadPage(deps: UploadPageDeps): (scope: FastifyInstance) => Promise<void> {
  const { uploads, clock } = deps;

  async function authenticate(request: FastifyRequest): Promise<void> {
    const policy = await requireEnabled(deps);
    const credential = findCredential(request.raw);
    if (credential.kind !== 'bearer')
      throw new AppError('authentication_required', {
        message: 'An upload needs its token.',
        hint: 'Send the token that publish_site answered, as "Authorization: Bearer <token>" and nowhere else.',
      });
    const token = credential.value;
    const upload = await uploads.find(token);
    if (upload === undefined || upload.id !== (request.params as { id: string }).id)
      throw deps.refuse(request.origin, noSuchUpload);
    const { origin } = request.headers;
    if (origin !== undefined && origin !== deps.uiOrigin)
      throw new AppError('forbidden_origin', {
        hint: 'Call this address from a program, not from a page of another site.',
      });
    const caller = await senderOf(upload);
    request.caller = caller;
    await limitAgents(deps, upload.userId, policy.callsPerMinute);
    requireSize(request, upload);
    request.agentUpload = { token, upload, ...(await check(upload, caller, request.origin)) };
  }

  async function senderOf({ userId, clientId, expiresAt }: McpUpload): Promise<AgentCaller> {
    const user = await deps.findUser(userId);
    if (user === undefined) throw noSuchUpload;
    return { kind: 'access_token', user, scopes: [mcpScope], clientId, expiresAt, agent: null };
  }

  /** Repeats every check of the tool call. Resolves with the remaining rights. */
  async function check(upload: McpUpload, caller: AgentCaller, origin: RequestOrigin): Promise<Rights> {
    const { userId, clientId, grantId, siteId, visibility, replaces, approvalId } = upload;
    const access = await accessUnder(deps, caller, grantId, await requireEnabled(deps));
    await deps.authorization.authorize(caller, agents);
    const isLive = await deps.isGrantLive({ userId, clientId, grantId });
    // Unsure, for example after a change of the identity provider.
    if (isLive === null) throw new AppError('identity_unavailable');
    if (!isLive) throw accessEnded;
    const narrowed = agentUnder(caller, access);
    const rule = ruleNow(access.policy, { name: 'publish_site' }, visibility === 'public');
    // The route also checks this, but not again once the bytes have arrived.
    const { denial } = decide(narrowed, publishing, { kind: 'not_asked' });
    if (denial !== null) throw new AppError(denial.code, denial);
    if (rule === 'ask' && approvalId === null)
      throw new AppError('approval_required', {
        message: 'Publishing needs the approval of the person by now.',
        hint: 'Call publish_site again with the same manifest.',
      });
    if (siteId !== null) {
      const site = await existingSite(siteId, userId, { call: deps.callRoute(narrowed, origin) });
      if (site.visibility !== visibility || site.replaces !== replaces)
        throw new AppError('state_conflict', {
          message: 'The site has changed since publish_site answered this address.',
          hint: 'Read the site, then call publish_site again.',
        });
    }
    return { caller: narrowed, definition: access.definition };
  }

  async function publish(request: FastifyRequest, { upload, caller }: Sender, sent: RequestUpload) {
    const { siteId, name, visibility, spa, replaces, receipt } = upload;
    const call = deps.callRoute(caller, request.origin);
    for await (const part of sent.parts()) {
      if (part.kind !== 'file') continue;
      const file = {
        name: fileNames[part.contentType] ?? '',
        contentType: part.contentType,
        bytes: atMost(part.stream, maxBytesOf(upload)),
        sender: {
          left: sent.left,
          checkAgain: async () => void (await check(upload, await senderOf(upload), request.origin)),
        },
      };
      const query = { spa: spa === null ? undefined : String(spa), receipt };
      if (siteId === null)
        return await call<Published>('createSite', {
          query: { ...query, name: name ?? undefined, visibility },
          file,
        });
      const ifMatch = replaces === null ? undefined : `"${replaces}"`;
      return await call<Published>('replaceSiteContent', { params: { id: siteId }, query, file, ifMatch });
    }
    throw new AppError('invalid_body', { message: 'The request has no archive.' });
  }

  return async (scope) => {
    scope.decorateRequest('agentUpload', null);
    await acceptUploads(scope, types);
    scope.put(
      `${mcpPath}/uploads/:id`,
      { config: { access: agents, uploads: types }, onRequest: authenticate },
      async (request, reply) => {
        const { agentUpload: sender, upload: sent } = request;
        if (sender === null) throw new Error('The request was not authenticated.');
        if (sent === null)
          throw new AppError('invalid_body', {
            message: 'The request has no archive.',
            hint: 'Send a tar.gz as "Content-Type: application/gzip", or a ZIP as "application/zip".',
          });
        if (!(await uploads.use(sender.token))) throw deps.refuse(request.origin, noSuchUpload);
        const startedAt = clock.now();
        const record = async (code: ErrorCode | null, objectId: string | null = null) => {
          const { userId, clientId, grantId, approvalId } = sender.upload;
          await deps.sessions.record({
            userId,
            clientId,
            grantId,
            definition: sender.definition ?? null,
            at: startedAt,
            tool: 'publish_site',
            code,
            approvalId,
            step: 'upload_received',
            objectId,
            durationMs: Math.max(0, clock.now() - startedAt),
            arguments: {},
            change: code === null ? { actor: actorOf(sender.caller), origin: request.origin } : null,
          });
        };
        try {
          const answer = await publish(request, sender, { ...sent, reauthorize: async () => undefined });
          const site = publishedSite(answer.data);
          await record(null, site.id);
          return await reply.send(successBody(request.id, site));
        } catch (error) {
          // The refusal stands, whether or not it can be recorded.
          await record(error instanceof AppError ? error.code : 'internal_error').catch((cause: unknown) =>
            deps.log.error({ err: cause, requestId: request.id }, 'an upload could not be recorded'),
          );
          throw error;
        }
      },
    );
  };
}

function maxBytesOf({ sizeBytes, fileCount }: McpUpload): number {
  return sizeBytes + fileCount * bytesForEachFile + bytesForArchive;
}

/** Checked before the token is used, if the client sends the size. */
function requireSize({ headers }: FastifyRequest, upload: McpUpload): void {
  const max = maxBytesOf(upload);
  if (Number(headers['content-length'] ?? 0) > max) throw tooLarge(max);
}

function tooLarge(max: number): AppError {
  return new AppError('upload_too_large', {
    message: `An archive of the announced files has at most ${max} bytes.`,
    hint: 'Send exactly the files of the manifest. For others, call publish_site again.',
  });
}

function atMost(stream: Readable, max: number): Readable {
  async function* counted(): AsyncGenerator<Buffer> {
    let bytes = 0;
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > max) throw tooLarge(max);
      yield chunk;
    }
  }
  return Readable.from(counted(), { objectMode: false });
}
