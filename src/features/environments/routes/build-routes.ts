import { z } from 'zod';
import { timestamp, timestampOrNull } from '../../../core/clock.ts';
import { defineRoute, pagePagination, type Route } from '../../../platform/http.ts';
import { isEnding } from '../environment/environment.ts';
import type { Lifecycle } from '../lifecycle/lifecycle.ts';
import type { MetadataLinks } from '../metadata-links/metadata-links.ts';
import { olderBuildSchema, anyBuildParams } from './older-clients/schemas.ts';
import type { OlderViews } from './older-clients/older-views.ts';
import type { EnvironmentReading } from '../lifecycle/reading.ts';
import type { EnvironmentAddresses } from '../environment/addresses.ts';
import { type CreatorNames, linksOf } from './responses.ts';
import { readers, writers } from './route-policies.ts';
import type { Deploys, DeployWithSteps } from '../deploys/deploys.ts';
import { logForms, logStreams, replyWithLogs } from './log-reply.ts';
import type { LogTail } from '../deploys/log-tail.ts';
import {
  buildCancelledSchema,
  buildListQuery,
  buildParams,
  buildQueuedSchema,
  buildSchema,
  logLineSchema,
  logQuery,
} from './build-schemas.ts';

const example = {
  id: 'bld_3kTq9ZpW1xYb7LcD5mNa',
  environment: { id: 'env_7bXk2mQ9sTzLr4VnYc3D', uuid: 'shop-search-k3v9x0' },
  repository: 'acme/website',
  branch: 'search',
  sha: '8c36b1a0f2d94b5e7c6a1f3b8d2e4c5a6b7f8091',
  commitSubject: 'Add the search page',
  trigger: 'api' as const,
  status: 'deployed' as const,
  isLive: true,
  message: null,
  fix: null,
  problems: [],
  steps: [
    {
      service: 'web',
      step: 'build' as const,
      status: 'done' as const,
      startedAt: '2026-01-01T09:00:02.000Z',
      endedAt: '2026-01-01T09:00:31.000Z',
      reused: false,
      message: null,
    },
  ],
  links: [],
  createdBy: { kind: 'user' as const, id: 'usr_8fQ2mV6sT0aXk4RjB1Zc', name: 'Ada' },
  createdAt: '2026-01-01T09:00:00.000Z',
  startedAt: '2026-01-01T09:00:01.000Z',
  endedAt: '2026-01-01T09:00:33.000Z',
};

const exampleLine = {
  id: 'web.1',
  at: '2026-01-01T09:00:03.000Z',
  service: 'web',
  step: 'build' as const,
  stream: 'stdout' as const,
  text: 'vite build',
};

export function buildRoutes(deps: {
  readonly deploys: Deploys;
  readonly lifecycle: Pick<Lifecycle, 'find'>;
  readonly reading: Pick<EnvironmentReading, 'services'>;
  readonly metadataLinks: Pick<MetadataLinks, 'list'>;
  readonly addresses: EnvironmentAddresses;
  readonly tail: LogTail;
  readonly names: CreatorNames;
  readonly olderViews: Pick<OlderViews, 'findBuild'>;
}): Route[] {
  const { deploys, lifecycle, addresses, tail, olderViews } = deps;

  async function toResponses(found: readonly DeployWithSteps[]) {
    const creators = found.flatMap(({ deploy }) => deploy.creator ?? []);
    const ids = [...new Set(found.map(({ environment }) => environment.id))];
    const [services, links, names] = await Promise.all([
      deps.reading.services(ids),
      deps.metadataLinks.list(),
      creators.length === 0 ? new Map<string, string>() : deps.names(creators),
    ]);
    return found.map(({ deploy, environment, steps }) => ({
      id: deploy.id,
      environment: { id: environment.id, uuid: environment.uuid },
      repository: environment.repository,
      branch: deploy.branch,
      sha: deploy.sha,
      commitSubject: deploy.commitSubject,
      trigger: deploy.trigger,
      status: deploy.status,
      isLive: deploy.id === environment.liveDeployId && !isEnding(environment),
      message: deploy.message,
      fix: deploy.fix,
      problems: [...deploy.problems],
      steps: steps.map(({ service, step, status, startedAt, endedAt, reused, message }) => ({
        service,
        step,
        status,
        startedAt: timestampOrNull(startedAt),
        endedAt: timestampOrNull(endedAt),
        reused,
        message,
      })),
      links: linksOf(
        { ...environment, branch: deploy.branch, sha: deploy.sha },
        services.get(environment.id) ?? [],
        { addresses, links },
      ),
      createdBy:
        deploy.creator === null ? null : { ...deploy.creator, name: names.get(deploy.creator.id) ?? null },
      createdAt: timestamp(deploy.createdAt),
      startedAt: timestampOrNull(deploy.startedAt),
      endedAt: timestampOrNull(deploy.endedAt),
    }));
  }

  return [
    defineRoute({
      method: 'GET',
      path: '/builds',
      operationId: 'listBuilds',
      tag: 'Builds',
      summary: 'List builds',
      description: 'A build brings an Environment to one commit. Newest first.',
      policy: readers,
      query: buildListQuery,
      errors: ['env_not_found'],
      success: { status: 200, data: z.array(buildSchema), pagination: 'page' },
      example: { data: [example] },
      async handle({ caller, query: { environment, status, page, limit } }) {
        const environmentId =
          environment === undefined ? undefined : (await lifecycle.find(caller, environment)).id;
        const { items, total } = await deploys.list(caller, { environmentId, status }, page, limit);
        return { data: await toResponses(items), pagination: pagePagination(page, limit, total) };
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/builds/{id}',
      operationId: 'getBuild',
      tag: 'Builds',
      summary: 'Read a build',
      description:
        'Ids of builds begin with `bld_`. With the id or the name of an Environment, the answer is what clients of the older system call its build.',
      policy: readers,
      params: anyBuildParams,
      errors: ['build_not_found', 'env_not_found'],
      success: { status: 200, data: z.xor([buildSchema, olderBuildSchema]) },
      example: { data: example },
      async handle({ caller, params }) {
        if (!params.id.startsWith('bld_')) return { data: await olderViews.findBuild(caller, params.id) };
        const [data] = await toResponses([await deploys.get(caller, params.id)]);
        if (data === undefined) throw new Error('One build gives one response.');
        return { data };
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/builds/{id}/logs',
      operationId: 'readBuildLog',
      tag: 'Builds',
      summary: 'Read the log of a build',
      description: `${logForms} The stream ends with the build.`,
      policy: readers,
      params: buildParams,
      query: logQuery,
      errors: ['build_not_found'],
      success: {
        status: 200,
        data: z.array(logLineSchema),
        pagination: 'cursor',
        streams: logStreams,
      },
      example: { data: [exampleLine] },
      async handle({ caller, params, query, header }) {
        const source = await deploys.logs(caller, params.id);
        return await replyWithLogs(source, { query, header }, { tail, name: params.id });
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/builds/{id}/cancel',
      operationId: 'cancelBuild',
      tag: 'Builds',
      summary: 'Cancel a build',
      description: 'What is served stays as it is.',
      policy: writers,
      params: buildParams,
      errors: ['build_not_found', 'env_tearing_down', 'state_conflict'],
      success: { status: 202, data: buildCancelledSchema },
      example: { data: { id: example.id, status: 'cancelled' } },
      async handle({ caller, auditContext, params }) {
        const { id } = await deploys.cancel({ caller, auditContext }, params.id);
        return { data: { id, status: 'cancelled' as const } };
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/builds/{id}/retry',
      operationId: 'retryBuild',
      tag: 'Builds',
      summary: 'Deploy the same commit again',
      policy: writers,
      params: buildParams,
      errors: [
        'build_not_found',
        'env_tearing_down',
        'state_conflict',
        'deploy_disabled',
        'environments_disabled',
      ],
      success: { status: 202, data: buildQueuedSchema },
      example: { data: { id: 'bld_9wQm4RtY6uIo8PaSdFgH', status: 'queued' } },
      async handle({ caller, auditContext, params }) {
        const { deploy } = await deploys.retry({ caller, auditContext }, params.id);
        return { data: { id: deploy.id, status: 'queued' as const } };
      },
    }),
  ];
}
