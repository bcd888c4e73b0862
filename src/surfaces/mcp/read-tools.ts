import { z } from 'zod';
import type { PagePagination } from '../../platform/http.ts';
import { plainText, timestampSchema } from '../../platform/schemas.ts';
import { AppError } from '../../core/errors.ts';
import { version } from '../../platform/version.ts';
import {
  environmentStatuses,
  serviceKinds,
  serviceStatuses,
} from '../../features/environments/environment/environment.ts';
import type { environmentSchema } from '../../features/environments/routes/environment-schemas.ts';
import type { policyForEveryoneSchema } from '../../features/environments/policy/environment-policy.ts';
import { repositorySchema } from '../../features/repositories/schemas.ts';
import type { capabilitiesSchema, versionReportSchema } from '../../features/sites/routes/schemas.ts';
import { siteStatuses } from '../../features/sites/site/site.ts';
import type { RouteAnswer } from './call-route.ts';
import type { Site } from './published-site.ts';
import { cursorInput, defineTool, nextCursor, pageOf, type Tool } from './tool.ts';

/**
 * The tools that read. Their names come first in `tools/list`. The types of the responses come from the schemas of the
 * routes; an output schema lists the fields that an agent gets.
 */
export const siteId = z.string().max(40).describe('Its id, from list_sites');
export const environmentId = z
  .string()
  .max(60)
  .regex(/^env_/, 'must be an id, which begins with env_, not a name')
  .describe('Its id, from list_environments');

const visibility = z.enum(['public', 'private']);
const access = z.string().describe('`owner`, `members` or `public`');

const siteRow = z.strictObject({
  id: z.string(),
  name: z.string(),
  visibility,
  status: z.enum(siteStatuses),
  isMine: z.boolean(),
  url: z.string(),
  expiresAt: timestampSchema.nullable(),
});

const environmentRow = z.strictObject({
  id: z.string(),
  name: z.string(),
  repository: z.string(),
  branch: z.string(),
  status: z.enum(environmentStatuses),
  access,
  isMine: z.boolean(),
  link: z.string().describe('For people: opens its first service'),
  expiresAt: timestampSchema,
});

/** With the longest paths, a report has about 60 KiB. */
const firstOf = 20;
const changedNames = z.strictObject({
  count: z.number(),
  names: z.array(z.string()).describe('The first 20'),
});
const findings = z.strictObject({
  count: z.number().describe('At most 100'),
  first: z.array(z.strictObject({ page: z.string(), target: z.string() })).describe('The first 20'),
});

export type Environment = z.infer<typeof environmentSchema>;

export const readTools: readonly Tool[] = [
  defineTool({
    name: 'get_context',
    title: 'Who I am and what I may do',
    description:
      'Shows for whom you act, whether you may change anything, and which limits apply. Call it first in a session.',
    effect: 'read',
    input: z.strictObject({}),
    output: z.strictObject({
      person: z.strictObject({ id: z.string(), name: z.string() }).describe('For whom you act'),
      client: z.string(),
      mayChange: z.boolean().describe('False: an administrator allows agents to read only'),
      sites: z
        .strictObject({
          enabled: z.boolean(),
          allowedVisibility: z.array(visibility),
          sitesUsed: z.number(),
          sitesAllowed: z.number(),
        })
        .nullable()
        .describe('Null: an administrator gives you no sites'),
      environments: z.strictObject({
        enabled: z.boolean(),
        allowedAccess: z.array(access),
        defaultTtlHours: z.number(),
        maxTtlHours: z.number(),
        maxPerOwner: z.number(),
      }),
      workspace: z
        .strictObject({
          repositories: z.array(z.string()).nullable().describe('Null: all'),
          maxEnvironments: z
            .number()
            .nullable()
            .describe('Environments that you may have at once. Null: maxPerOwner'),
          environmentTtlHours: z.number().nullable().describe('The longest lease. Null: maxTtlHours'),
        })
        .nullable()
        .describe('The workspace from an administrator. Null: everything that the person can reach'),
      version: z.string().describe('The version of Postern'),
    }),
    async run(_input, { call, person, clientId, workspace, mayChange, may }) {
      const sites = may('sites:read').allowed
        ? (await call<z.infer<typeof capabilitiesSchema>>('readSiteCapabilities')).data
        : null;
      const { data: limits } = await call<z.infer<typeof policyForEveryoneSchema>>(
        'readEnvironmentPolicyForEveryone',
      );
      const { enabled, allowedAccess, defaultTtlHours, maxTtlHours, maxPerOwner } = limits;
      return {
        person,
        client: clientId,
        mayChange: mayChange(),
        sites: sites && {
          enabled: sites.enabled,
          allowedVisibility: sites.allowedVisibility,
          sitesUsed: sites.quotas.sitesUsed,
          sitesAllowed: sites.quotas.sitesPerOwner,
        },
        environments: { enabled, allowedAccess, defaultTtlHours, maxTtlHours, maxPerOwner },
        workspace: workspace && {
          repositories: workspace.repositories.mode === 'all' ? null : [...workspace.repositoryNames],
          maxEnvironments: workspace.maxEnvironments,
          environmentTtlHours: workspace.environmentTtlHours,
        },
        version,
      };
    },
  }),
  defineTool({
    name: 'list_repositories',
    title: 'List repositories',
    description: 'Lists the git repositories from which Environments can be created.',
    effect: 'read',
    scope: 'repos:read',
    input: z.strictObject({
      search: plainText(100).optional().describe('Part of the name'),
      ...cursorInput,
    }),
    output: z.strictObject({
      repositories: z.array(
        repositorySchema.pick({ id: true, fullName: true, cloneUrl: true, defaultBranch: true }),
      ),
      nextCursor,
    }),
    async run({ search, cursor }, { call }) {
      type Repositories = z.infer<typeof repositorySchema>[];
      const answer = await call<Repositories>('listRepositories', { query: { search, ...pageOf(cursor) } });
      return {
        repositories: answer.data.map(({ id, fullName, cloneUrl, defaultBranch }) => ({
          id,
          fullName,
          cloneUrl,
          defaultBranch,
        })),
        nextCursor: after(answer),
      };
    },
  }),
  defineTool({
    name: 'list_sites',
    title: 'List sites',
    description: 'Lists your sites and all public sites, newest first.',
    effect: 'read',
    scope: 'sites:read',
    input: z.strictObject({
      mine: z.boolean().optional().describe('True: only yours'),
      search: plainText(100).optional().describe('Part of the name, or a whole id'),
      ...cursorInput,
    }),
    output: z.strictObject({ sites: z.array(siteRow), nextCursor }),
    async run({ mine, search, cursor }, { call, person }) {
      const query = { search, mine: mine === true ? 'true' : undefined, ...pageOf(cursor) };
      const answer = await call<Site[]>('listSites', { query });
      return { sites: answer.data.map((site) => toSiteRow(site, person.id)), nextCursor: after(answer) };
    },
  }),
  defineTool({
    name: 'get_site',
    title: 'Read a site',
    description: 'Reads one site: its address, who sees it, its live version, its size and its expiry.',
    effect: 'read',
    scope: 'sites:read',
    input: z.strictObject({ siteId }),
    output: siteRow.extend({
      link: z.string().describe('A permanent link; the url changes with the visibility'),
      owner: z.string().nullable().describe('The name of its owner'),
      spa: z.boolean().describe('index.html is served for paths without a file'),
      createdAt: timestampSchema,
      updatedAt: timestampSchema,
      fileCount: z.number(),
      sizeBytes: z.number(),
      takeDownReason: z.string().nullable(),
      version: z
        .strictObject({ id: z.string(), number: z.number(), publishedAt: timestampSchema })
        .nullable()
        .describe('The live version; null: never published'),
    }),
    async run(input, { call, person }) {
      const { data } = await call<Site>('getSite', { params: { id: input.siteId } });
      const {
        link,
        owner,
        spa,
        createdAt,
        updatedAt,
        fileCount,
        sizeBytes,
        takeDownReason,
        version: live,
      } = data;
      return {
        ...toSiteRow(data, person.id),
        link,
        owner: owner.name,
        spa,
        createdAt,
        updatedAt,
        fileCount,
        sizeBytes,
        takeDownReason,
        version: live && { id: live.id, number: live.number, publishedAt: live.publishedAt },
      };
    },
  }),
  defineTool({
    name: 'get_site_report',
    title: 'Check a version of a site',
    description:
      'Lists what Postern found in a version of a site of the person: broken links, addresses of the author’s own machine, insecure resources and changes.',
    effect: 'read',
    scope: 'sites:read',
    input: z.strictObject({
      siteId,
      version: z.number().int().min(1).max(999_999_999).optional().describe('Default: the live version'),
    }),
    output: z.strictObject({
      version: z.number(),
      isComplete: z.boolean().describe('False: too many pages or links to check all'),
      added: changedNames,
      changed: changedNames,
      removed: changedNames,
      brokenLinks: findings,
      absolutePaths: findings,
      mixedContent: findings,
      warnings: z.array(z.strictObject({ code: z.string(), message: z.string() })),
    }),
    async run({ siteId: id, version: asked }, { call }) {
      const { data: site } = await call<Site>('getSite', { params: { id } });
      const number = asked ?? site.version?.number;
      if (number === undefined)
        throw new AppError('not_found', {
          message: 'The site has no live version.',
          hint: 'Publish it first.',
        });
      const { data } = await call<z.infer<typeof versionReportSchema>>('getSiteVersion', {
        params: { id, number: String(number) },
      });
      const { report } = data;
      const names = ({ count, names: all }: (typeof report)['added']) => ({
        count,
        names: all.slice(0, firstOf).map(short),
      });
      const found = (all: (typeof report)['brokenLinks']) => ({
        count: all.length,
        first: all
          .slice(0, firstOf)
          .map(({ page, target }) => ({ page: short(page), target: short(target) })),
      });
      return {
        version: number,
        isComplete: report.isComplete,
        added: names(report.added),
        changed: names(report.changed),
        removed: names(report.removed),
        brokenLinks: found(report.brokenLinks),
        absolutePaths: found(report.absolutePaths),
        mixedContent: found(report.mixedContent),
        warnings: report.warnings.map(({ code, message }) => ({ code, message: short(message) })),
      };
    },
  }),
  defineTool({
    name: 'list_environments',
    title: 'List Environments',
    description:
      'Lists the Environments that you may see, newest first: branches of repositories that run at their own addresses.',
    effect: 'read',
    scope: 'env:read',
    input: z.strictObject({
      mine: z.boolean().optional().describe('True: only those that you created'),
      repository: z.string().max(201).optional().describe('owner/name'),
      search: plainText(100).optional().describe('Part of the name or of the branch'),
      ...cursorInput,
    }),
    output: z.strictObject({ environments: z.array(environmentRow), nextCursor }),
    async run({ mine, repository, search, cursor }, { call, person }) {
      const query = { repository, search, mine: mine === true ? 'true' : undefined, ...pageOf(cursor) };
      const answer = await call<Environment[]>('listEnvironments', { query });
      return {
        environments: answer.data.map((one) => toEnvironmentRow(one, person.id)),
        nextCursor: after(answer),
      };
    },
  }),
  defineTool({
    name: 'get_environment',
    title: 'Read an Environment',
    description: 'Reads one Environment: its status, its services with their addresses, and when it ends.',
    effect: 'read',
    scope: 'env:read',
    input: z.strictObject({ environmentId }),
    output: environmentRow.extend({
      statusMessage: z.string().nullable(),
      sha: z.string().nullable().describe('The commit that the newest deploy read'),
      autoTrack: z.boolean().describe('New commits of the branch are deployed'),
      deployEnabled: z.boolean().describe('False: paused'),
      createdBy: z.string().nullable(),
      createdAt: timestampSchema,
      services: z.array(
        z.strictObject({
          name: z.string(),
          kind: z.enum(serviceKinds),
          status: z.enum(serviceStatuses),
          url: z.string().nullable(),
          reason: z.string().nullable().describe('Why it is not ready'),
        }),
      ),
    }),
    async run(input, { call, person }) {
      const { data } = await call<Environment>('getEnvironment', { params: { id: input.environmentId } });
      const { statusMessage, sha, autoTrack, deployEnabled, createdBy, createdAt, services } = data;
      return {
        ...toEnvironmentRow(data, person.id),
        statusMessage: shortened(statusMessage),
        sha,
        autoTrack,
        deployEnabled,
        createdBy: createdBy.name,
        createdAt,
        services: services.map(({ name, kind, status, url, reason }) => ({
          name,
          kind,
          status,
          url,
          reason: shortened(reason),
        })),
      };
    },
  }),
];

function toSiteRow({ id, name, visibility: seenBy, status, url, expiresAt, owner }: Site, personId: string) {
  return { id, name, visibility: seenBy, status, isMine: owner.id === personId, url, expiresAt };
}

function toEnvironmentRow(environment: Environment, personId: string) {
  const { id, uuid, repository, branch, status, access: openTo, link, expiresAt, createdBy } = environment;
  const isMine = createdBy.id === personId;
  return { id, name: uuid, repository, branch, status, access: openTo, isMine, link, expiresAt };
}

/** A reason may quote a program; an answer stays far below 64 KiB. */
export function shortened(text: string | null): string | null {
  return text !== null && text.length > 500 ? `${text.slice(0, 500)}…` : text;
}

function short(text: string): string {
  return shortened(text) ?? '';
}

export function after({ pagination }: RouteAnswer<unknown>): string | null {
  // The routes of these lists count pages.
  const { current, total } = pagination as PagePagination;
  return current < total ? String(current + 1) : null;
}
