import { z } from 'zod';
import { timestamp } from '../../../core/clock.ts';
import { defineRoute, pagePagination, type Route } from '../../../platform/http.ts';
import { cursorQuery } from '../../../platform/schemas.ts';
import type { AuditEventResponse } from '../../audit/audit.ts';
import { logForms, logStreams, replyWithLogs } from './log-reply.ts';
import type { LogTail } from '../deploys/log-tail.ts';
import { logLineSchema, logQuery } from './build-schemas.ts';
import type { EnvironmentReading } from '../lifecycle/reading.ts';
import type { EnvironmentAddresses } from '../environment/addresses.ts';
import { type CreatorNames, toEnvironmentResponse } from './responses.ts';
import { type Environment, shownStatus } from '../environment/environment.ts';
import type { Lifecycle } from '../lifecycle/lifecycle.ts';
import type { MetadataLinks } from '../metadata-links/metadata-links.ts';
import { readers, writers } from './route-policies.ts';
import {
  changeSchema,
  createdSchema,
  createSchema,
  deployQueuedSchema,
  environmentParams,
  environmentSchema,
  extendedSchema,
  extendSchema,
  listQuery,
  tearingDownSchema,
  whySchema,
} from './environment-schemas.ts';

const example = {
  id: 'env_7bXk2mQ9sTzLr4VnYc3D',
  uuid: 'shop-search-k3v9x0',
  status: 'deployed' as const,
  statusMessage: null,
  namespace: null,
  trigger: 'api' as const,
  repository: 'acme/website',
  branch: 'search',
  sha: '8c36b1a0f2d94b5e7c6a1f3b8d2e4c5a6b7f8091',
  access: 'members' as const,
  deployEnabled: true,
  autoTrack: false,
  trackDefaultBranches: false,
  expiresAt: '2026-01-04T09:00:00.000Z',
  deletedAt: null,
  activeServiceCount: 1,
  hasReadyActiveService: true,
  createdBy: { kind: 'user' as const, id: 'usr_8fQ2mV6sT0aXk4RjB1Zc', name: 'Ada' },
  createdAt: '2026-01-01T09:00:00.000Z',
  updatedAt: '2026-01-01T09:01:00.000Z',
  services: [
    {
      name: 'web',
      kind: 'static' as const,
      status: 'ready' as const,
      url: 'https://web-eabcdefghijklmnopq.sites.example.com',
      reason: null,
      active: true,
    },
  ],
  links: [],
  link: 'https://postern.example.com/e/env_7bXk2mQ9sTzLr4VnYc3D',
  statusUrl: 'https://postern.example.com/api/v2/environments/env_7bXk2mQ9sTzLr4VnYc3D',
};

export type EnvironmentRouteDeps = {
  readonly lifecycle: Lifecycle;
  readonly reading: EnvironmentReading;
  readonly metadataLinks: Pick<MetadataLinks, 'list'>;
  readonly addresses: EnvironmentAddresses;
  readonly tail: LogTail;
  readonly names: CreatorNames;
  /** Namespace of the Environments. Null: they do not run on Kubernetes. */
  readonly namespace: string | null;
  readonly auditEventSchema: z.ZodType<AuditEventResponse>;
};

export function environmentRoutes(deps: EnvironmentRouteDeps): Route[] {
  const { lifecycle, reading, tail, addresses, metadataLinks, namespace } = deps;

  async function toResponses(environments: readonly Environment[]) {
    const [services, links, names] = await Promise.all([
      reading.services(environments.map(({ id }) => id)),
      metadataLinks.list(),
      environments.length === 0
        ? new Map<string, string>()
        : deps.names(environments.map(({ creator }) => creator)),
    ]);
    return environments.map((one) =>
      toEnvironmentResponse(one, services.get(one.id) ?? [], { addresses, links, names, namespace }),
    );
  }
  async function toResponse(environment: Environment) {
    const [response] = await toResponses([environment]);
    if (response === undefined) throw new Error('One Environment gives one response.');
    return response;
  }

  return [
    defineRoute({
      method: 'GET',
      path: '/environments',
      operationId: 'listEnvironments',
      tag: 'Environments',
      summary: 'List Environments',
      description:
        'A key with a repository selection sees only those of the selected repositories. Those with the access `owner` are seen by their creator, and by an administrator in the web app.',
      policy: readers,
      query: listQuery,
      errors: ['mine_requires_identity', 'repo_not_onboarded'],
      success: { status: 200, data: z.array(environmentSchema), pagination: 'page' },
      example: { data: [example] },
      async handle({ caller, query: { page, limit, ...query } }) {
        const { items, total } = await reading.list(caller, query, page, limit);
        return { data: await toResponses(items), pagination: pagePagination(page, limit, total) };
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/environments',
      operationId: 'createEnvironment',
      tag: 'Environments',
      summary: 'Create an Environment',
      description:
        'Returns at once; the deploy follows. Poll `statusUrl` until the status is `deployed`, `error`, `config_error` or `torn_down`.',
      policy: writers,
      bodyBytes: 262_144,
      body: createSchema,
      errors: [
        'environments_disabled',
        'repo_not_onboarded',
        'invalid_repository',
        'invalid_branch',
        'invalid_name',
        'name_conflict',
        'idempotency_conflict',
        'quota_exceeded',
        'lifetime_too_long',
        'override_not_allowed',
        'auto_track_pinned_source',
        'identity_binding_required',
        'git_unavailable',
      ],
      success: {
        status: 202,
        data: createdSchema,
        replay: 'An earlier request with this idempotencyKey created it.',
      },
      example: {
        body: { repository: 'acme/website', branch: 'search' },
        data: {
          id: example.id,
          uuid: example.uuid,
          status: 'queued',
          namespace: null,
          expiresAt: example.expiresAt,
          statusUrl: example.statusUrl,
          replayed: false,
        },
      },
      async handle({ caller, auditContext, body }) {
        const { environment, isReplay } = await lifecycle.create({ caller, auditContext }, body);
        const { id, uuid, expiresAt } = environment;
        const { status } = shownStatus(environment);
        const data = {
          id,
          uuid,
          status,
          namespace,
          expiresAt: timestamp(expiresAt),
          statusUrl: addresses.statusUrlOf(id),
          replayed: isReplay,
        };
        return isReplay ? { data, status: 200 as const } : { data };
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/environments/{id}',
      operationId: 'getEnvironment',
      tag: 'Environments',
      summary: 'Read an Environment',
      description:
        'By id also for 30 days after its teardown; by name only while it lives. An administrator in the web app sees every Environment here.',
      policy: readers,
      params: environmentParams,
      errors: ['env_not_found'],
      success: { status: 200, data: environmentSchema },
      example: { data: example },
      async handle({ caller, params }) {
        return { data: await toResponse(await lifecycle.findRow(caller, params.id)) };
      },
    }),
    defineRoute({
      method: 'PATCH',
      path: '/environments/{id}',
      operationId: 'changeEnvironment',
      tag: 'Environments',
      summary: 'Change an Environment',
      description:
        '`access` takes effect at once, with new addresses. Everything else takes effect with the next deploy. Only its creator may let more people open it.',
      policy: writers,
      bodyBytes: 262_144,
      params: environmentParams,
      body: changeSchema,
      errors: [
        'env_not_found',
        'env_tearing_down',
        'override_not_allowed',
        'auto_track_pinned_source',
        'store_unavailable',
      ],
      success: { status: 200, data: environmentSchema },
      example: { body: { autoTrack: true }, data: { ...example, autoTrack: true } },
      async handle({ caller, auditContext, params, body }) {
        return { data: await toResponse(await lifecycle.change({ caller, auditContext }, params.id, body)) };
      },
    }),
    defineRoute({
      method: 'DELETE',
      path: '/environments/{id}',
      operationId: 'removeEnvironment',
      tag: 'Environments',
      summary: 'Tear an Environment down',
      description:
        'Nothing of it is served from now on. Everything that runs is ended and removed. An administrator in the web app may tear down every Environment.',
      policy: writers,
      params: environmentParams,
      errors: ['env_not_found', 'store_unavailable'],
      success: { status: 202, data: tearingDownSchema },
      example: {
        data: { uuid: example.uuid, status: 'tearing_down_queued', statusUrl: example.statusUrl },
      },
      async handle({ caller, auditContext, params }) {
        const { id, uuid } = await lifecycle.remove({ caller, auditContext }, params.id);
        return {
          data: { uuid, status: 'tearing_down_queued' as const, statusUrl: addresses.statusUrlOf(id) },
        };
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/environments/{id}/deploy',
      operationId: 'deployEnvironment',
      tag: 'Environments',
      summary: 'Deploy an Environment',
      description: 'A deploy that is under way ends as `superseded`.',
      policy: writers,
      params: environmentParams,
      errors: ['env_not_found', 'env_tearing_down', 'deploy_disabled', 'environments_disabled'],
      success: { status: 202, data: deployQueuedSchema },
      example: {
        data: {
          uuid: example.uuid,
          status: 'deploy_queued',
          deployId: 'bld_3kTq9ZpW1xYb7LcD5mNa',
          statusUrl: example.statusUrl,
        },
      },
      async handle({ caller, auditContext, params }) {
        const { environment, deploy } = await lifecycle.deploy({ caller, auditContext }, params.id);
        const { id, uuid } = environment;
        const status = 'deploy_queued' as const;
        return { data: { uuid, status, deployId: deploy.id, statusUrl: addresses.statusUrlOf(id) } };
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/environments/{id}/extend',
      operationId: 'extendEnvironment',
      tag: 'Environments',
      summary: 'Extend the lease of an Environment',
      description:
        'Adds hours to the end of the lease. The lease ends at most `maxTtlHours` of the policy from now.',
      policy: writers,
      params: environmentParams,
      body: extendSchema,
      errors: ['env_not_found', 'env_tearing_down', 'lifetime_too_long', 'store_unavailable'],
      success: { status: 200, data: extendedSchema },
      example: { body: { hours: 24 }, data: { uuid: example.uuid, expiresAt: example.expiresAt } },
      async handle({ caller, auditContext, params, body }) {
        const { uuid, expiresAt } = await lifecycle.extend({ caller, auditContext }, params.id, body.hours);
        return { data: { uuid, expiresAt: timestamp(expiresAt) } };
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/environments/{id}/why',
      operationId: 'explainEnvironment',
      tag: 'Environments',
      summary: 'See why an Environment is as it is',
      description: 'What the newest deploy did, step by step, and what to do about the step that failed.',
      policy: readers,
      params: environmentParams,
      errors: ['env_not_found'],
      success: { status: 200, data: whySchema },
      example: {
        data: [
          { step: 'configuration', ok: true, message: 'postern.yaml has no problems.' },
          {
            step: 'build',
            ok: false,
            message: 'web: The command exited with 1 after 3 s.',
            fix: 'Read the last lines of its log, and correct the command or the files.',
          },
        ],
      },
      async handle({ caller, params }) {
        const steps = await reading.why(await lifecycle.find(caller, params.id));
        return {
          data: steps.map(({ problems, ...step }) =>
            problems === undefined ? step : { ...step, problems: [...problems] },
          ),
        };
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/environments/{id}/logs',
      operationId: 'readEnvironmentLog',
      tag: 'Environments',
      summary: 'Read what the processes of an Environment write',
      description: `${logForms} The newest lines of each service are kept. The stream ends with the teardown.`,
      policy: readers,
      params: environmentParams,
      query: logQuery,
      errors: ['env_not_found'],
      success: { status: 200, data: z.array(logLineSchema), pagination: 'cursor', streams: logStreams },
      async handle({ caller, params, query, header }) {
        const environment = await lifecycle.find(caller, params.id);
        const source = reading.logs(caller, environment);
        return await replyWithLogs(source, { query, header }, { tail, name: environment.uuid });
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/environments/{id}/events',
      operationId: 'listEnvironmentEvents',
      tag: 'Environments',
      summary: 'See what happened to an Environment, and by whom',
      description: 'Its events of the audit log, newest first.',
      policy: readers,
      params: environmentParams,
      query: z.strictObject(cursorQuery),
      errors: ['env_not_found'],
      success: { status: 200, data: z.array(deps.auditEventSchema), pagination: 'cursor' },
      async handle({ caller, params, query: { cursor, limit } }) {
        const environment = await lifecycle.find(caller, params.id);
        const { events, nextCursor } = await reading.events(environment, caller, cursor, limit);
        return { data: events, pagination: { limit, nextCursor } };
      },
    }),
  ];
}
