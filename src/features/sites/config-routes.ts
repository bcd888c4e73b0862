import { z } from 'zod';
import type { RoutePolicy } from '../../core/authorize.ts';
import { timestampOrNull } from '../../core/clock.ts';
import { defineRoute, pagePagination, type Route } from '../../platform/http.ts';
import { pageQuery } from '../../platform/schemas.ts';
import type { ConfigDocument, InForce } from '../settings/settings.ts';
import { exampleConfigVersion } from './examples.ts';
import { sitesConfigChangeSchema, sitesConfigVersionSchema } from './schemas.ts';
import { defaultSitesConfig, type SitesConfig, sitesConfigSchema } from './sites-config.ts';

/** What a document would do today to those who have sites. */
export type SitesDryRun = { readonly sitesOffline: number; readonly ownersOverQuota: number };

/** An administrator's access token may do this too, with the OAuth scope `admin` (contract 10.15). */
const administrators: RoutePolicy = {
  callers: ['session', 'access_token'],
  role: 'admin',
  tokenScope: 'admin',
  identity: 'live',
};

export function sitesConfigRoutes(deps: {
  config: ConfigDocument<SitesConfig>;
  dryRun: (next: SitesConfig) => Promise<SitesDryRun>;
}): Route[] {
  const { config, dryRun } = deps;
  return [
    defineRoute({
      method: 'GET',
      path: '/config/sites',
      operationId: 'readSitesConfig',
      tag: 'Sites configuration',
      summary: 'Read the Sites configuration',
      description: 'The ETag header goes into If-Match of a change.',
      policy: administrators,
      success: { status: 200, data: sitesConfigVersionSchema, etag: true },
      example: { data: exampleConfigVersion },
      async handle() {
        return withEtag(await config.read());
      },
    }),
    defineRoute({
      method: 'PUT',
      path: '/config/sites',
      operationId: 'changeSitesConfig',
      tag: 'Sites configuration',
      summary: 'Change the Sites configuration',
      description:
        'Replaces the whole document. In force everywhere within a second. `enabled: false` stops every upload and all content, and changes nothing else; `dryRun=true` says what the document would do today.',
      policy: administrators,
      query: z.strictObject({ dryRun: z.enum(['true', 'false']).default('false') }),
      body: sitesConfigSchema,
      fieldCodes: Object.fromEntries(
        Object.keys(sitesConfigSchema.shape).map((field) => [field, 'config_invalid']),
      ),
      errors: ['precondition_required', 'precondition_failed'],
      success: { status: 200, data: sitesConfigChangeSchema, etag: true },
      example: { body: defaultSitesConfig, data: { ...exampleConfigVersion, dryRun: null } },
      async handle({ act, body, query, header }) {
        if (query.dryRun === 'true') {
          const current = await config.matched(header('if-match'));
          const data = { ...toResponse({ ...current, value: body }), dryRun: await dryRun(body) };
          return { data, headers: { etag: current.etag } };
        }
        const changed = await config.put(act, header('if-match'), body);
        return { data: { ...toResponse(changed), dryRun: null }, headers: { etag: changed.etag } };
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/config/sites/history',
      operationId: 'readSitesConfigHistory',
      tag: 'Sites configuration',
      summary: 'Read earlier Sites configurations',
      description: 'Newest first. Version 0, the built-in default, is not listed and can be reverted to.',
      policy: administrators,
      query: z.strictObject(pageQuery),
      success: { status: 200, data: z.array(sitesConfigVersionSchema), pagination: 'page' },
      example: { data: [exampleConfigVersion] },
      async handle({ query: { page, limit } }) {
        const { items, total } = await config.history(page, limit);
        return { data: items.map(toResponse), pagination: pagePagination(page, limit, total) };
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/config/sites/revert',
      operationId: 'revertSitesConfig',
      tag: 'Sites configuration',
      summary: 'Bring an earlier Sites configuration back',
      description: 'Writes the earlier document as a new version.',
      policy: administrators,
      body: z.strictObject({ version: z.number().int().min(0).max(1_000_000_000) }),
      errors: ['not_found', 'precondition_required', 'precondition_failed'],
      success: { status: 200, data: sitesConfigVersionSchema, etag: true },
      example: { body: { version: 0 }, data: { ...exampleConfigVersion, version: 2 } },
      async handle({ act, body, header }) {
        return withEtag(await config.revert(act, header('if-match'), body.version));
      },
    }),
  ];
}

function withEtag(document: InForce<SitesConfig>) {
  return { data: toResponse(document), headers: { etag: document.etag } };
}

function toResponse({ version, value, changedAt, changedBy }: InForce<SitesConfig>) {
  return {
    version,
    changedAt: timestampOrNull(changedAt),
    changedBy,
    config: { ...value, upload: { ...value.upload, allowedExtensions: [...value.upload.allowedExtensions] } },
  };
}
