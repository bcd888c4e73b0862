import { defineRoute, type Route } from '../../../../platform/http.ts';
import { environmentParams } from '../environment-schemas.ts';
import type { Lifecycle } from '../../lifecycle/lifecycle.ts';
import { readers, writers } from '../route-policies.ts';
import type { OlderViews } from './older-views.ts';
import {
  doneSchema,
  jobLogSchema,
  jobParams,
  jobsParams,
  jobsSchema,
  olderBuildSchema,
  olderChangeSchema,
  olderMetadataSchema,
  overriddenSchema,
  overridesSchema,
} from './schemas.ts';

const tag = 'Clients of the older system';

/**
 * Routes for clients of the older system. Each is a route of Environments under another name, with the same rights, events
 * and errors; `GET /builds/{id}` is in build-routes.ts.
 */
export function olderClientRoutes(deps: {
  readonly lifecycle: Pick<Lifecycle, 'change' | 'deploy' | 'remove'>;
  readonly olderViews: OlderViews;
}): Route[] {
  const { lifecycle, olderViews } = deps;
  return [
    defineRoute({
      method: 'PATCH',
      path: '/builds/{id}',
      operationId: 'changeOlderBuild',
      tag,
      summary: 'Change the variables of an Environment',
      description: 'Takes effect with the next deploy, as with `PATCH /environments/{id}`.',
      policy: writers,
      bodyBytes: 262_144,
      params: environmentParams,
      body: olderChangeSchema,
      errors: ['env_not_found', 'env_tearing_down'],
      success: { status: 200, data: olderBuildSchema },
      async handle({ caller, auditContext, params, body }) {
        const { commentRuntimeEnv: env, commentInitEnv: initEnv, trackDefaultBranches } = body;
        const change = { env, initEnv, trackDefaultBranches };
        const environment = await lifecycle.change({ caller, auditContext }, params.id, change);
        return { data: await olderViews.build(caller, environment) };
      },
    }),
    defineRoute({
      method: 'PUT',
      path: '/builds/{id}/redeploy',
      operationId: 'redeployOlderBuild',
      tag,
      summary: 'Deploy an Environment',
      description: 'As `POST /environments/{id}/deploy`.',
      policy: writers,
      params: environmentParams,
      errors: ['env_not_found', 'env_tearing_down', 'deploy_disabled', 'environments_disabled'],
      success: { status: 200, data: doneSchema },
      example: { data: { status: 'success', message: 'The deploy bld_3kTq9ZpW1xYb7LcD5mNa is queued.' } },
      async handle({ caller, auditContext, params }) {
        const { deploy } = await lifecycle.deploy({ caller, auditContext }, params.id);
        return { data: { status: 'success' as const, message: `The deploy ${deploy.id} is queued.` } };
      },
    }),
    defineRoute({
      method: 'PUT',
      path: '/builds/{id}/destroy',
      operationId: 'destroyOlderBuild',
      tag,
      summary: 'Tear an Environment down',
      description: 'As `DELETE /environments/{id}`.',
      policy: writers,
      params: environmentParams,
      errors: ['env_not_found'],
      success: { status: 200, data: doneSchema },
      example: { data: { status: 'success', message: 'The teardown of shop-search-k3v9x0 is queued.' } },
      async handle({ caller, auditContext, params }) {
        const { uuid } = await lifecycle.remove({ caller, auditContext }, params.id);
        return { data: { status: 'success' as const, message: `The teardown of ${uuid} is queued.` } };
      },
    }),
    defineRoute({
      method: 'PATCH',
      path: '/builds/{id}/services',
      operationId: 'overrideServices',
      tag,
      summary: 'Switch services of an Environment on and off',
      description: 'As `services` of `PATCH /environments/{id}`: merged by name, from the next deploy on.',
      policy: writers,
      params: environmentParams,
      body: overridesSchema,
      errors: ['env_not_found', 'env_tearing_down'],
      success: { status: 200, data: overriddenSchema },
      async handle({ caller, auditContext, params, body }) {
        const change = { services: body.serviceOverrides };
        const environment = await lifecycle.change({ caller, auditContext }, params.id, change);
        const serviceOverrides = await olderViews.serviceOverrides(caller, environment);
        return { data: { serviceOverrides, queued: false } };
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/builds/{id}/metadata',
      operationId: 'listRenderedMetadataLinks',
      tag,
      summary: 'List the metadata links of an Environment',
      policy: readers,
      params: environmentParams,
      errors: ['env_not_found'],
      success: { status: 200, data: olderMetadataSchema },
      async handle({ caller, params }) {
        return { data: await olderViews.metadata(caller, params.id) };
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/builds/{id}/services/{name}/build-jobs',
      operationId: 'listBuildJobs',
      tag,
      summary: 'List the builds of one service',
      description:
        'Newest first, of the newest 100 deploys. A deploy that used an earlier result again has none.',
      policy: readers,
      params: jobsParams,
      errors: ['env_not_found'],
      success: { status: 200, data: jobsSchema },
      async handle({ caller, params }) {
        return { data: { builds: await olderViews.jobs(caller, params.id, params.name) } };
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/builds/{id}/services/{name}/build-jobs/{job}',
      operationId: 'readBuildJobLog',
      tag,
      summary: 'Read the log of one build of a service',
      policy: readers,
      params: jobParams,
      errors: ['env_not_found', 'build_not_found'],
      success: { status: 200, data: jobLogSchema },
      async handle({ caller, params }) {
        return { data: await olderViews.jobLog(caller, params.id, params.name, params.job) };
      },
    }),
  ];
}
