import { z } from 'zod';
import { administratorSession } from '../../../core/authorize.ts';
import { timestamp } from '../../../core/clock.ts';
import { defineRoute, pagePagination, type Route } from '../../../platform/http.ts';
import { pageQuery, timestampSchema } from '../../../platform/schemas.ts';
import type { OversightStore, OwnerStorage } from '../stores/oversight-store.ts';
import type { OwnerNames } from './responses.ts';

const ownerSchema = z.strictObject({
  kind: z.enum(['user', 'service_key']),
  id: z.string(),
  name: z.string().nullable(),
});

const storageSchema = z
  .strictObject({
    totalBytes: z.number().int().describe('The total of all owners in the query'),
    owners: z.array(
      z.strictObject({
        owner: ownerSchema,
        sites: z.number().int().describe('Sites that are not deleted'),
        bytes: z.number().int().describe('Each content counts once, over all kept versions'),
      }),
    ),
  })
  .meta({ id: 'SiteStorage' });

const stoppedSchema = z
  .strictObject({
    id: z.string(),
    owner: ownerSchema,
    takenDownAt: timestampSchema,
    reason: z.string().nullable(),
  })
  .meta({ id: 'StoppedSite' });

/** One owner or none, as a list of one page. */
function alone(found: OwnerStorage | undefined, page: number) {
  const all = found === undefined ? [] : [found];
  return { items: page === 1 ? all : [], total: all.length, bytes: found?.bytes ?? 0 };
}

const exampleOwner = { kind: 'user', id: 'usr_8fQ2mV6sT0aXk4RjB1Zc', name: 'Ada' } as const;

/**
 * What administrators see of everyone's sites: storage by owner, and sites that were taken down. An administrator
 * cannot open a private site, so these lists name none.
 */
export function siteOversightRoutes(deps: {
  read: { oversight: OversightStore };
  names: OwnerNames;
}): Route[] {
  const { read, names } = deps;

  async function named<T extends { owner: { kind: 'user' | 'service_key'; id: string } }>(
    items: readonly T[],
  ) {
    const known = await names(items.map(({ owner }) => owner));
    return items.map((item) => ({
      ...item,
      owner: { ...item.owner, name: known.get(item.owner.id) ?? null },
    }));
  }

  return [
    defineRoute({
      method: 'GET',
      path: '/sites/storage',
      operationId: 'readSiteStorage',
      tag: 'Sites administration',
      summary: 'Read the storage of each owner',
      description:
        'The owners with the most bytes first, or one owner; then `totalBytes` is the size for that owner. Works while Sites is off.',
      policy: administratorSession,
      query: z.strictObject({
        ...pageQuery,
        owner: z.string().min(1).max(40).optional().describe('Only one user or service key, by id'),
      }),
      success: { status: 200, data: storageSchema, pagination: 'page' },
      example: {
        data: { totalBytes: 52_428_800, owners: [{ owner: exampleOwner, sites: 3, bytes: 52_428_800 }] },
      },
      async handle({ query: { page, limit, owner } }) {
        const { items, total, bytes } =
          owner === undefined
            ? await read.oversight.storage(page, limit)
            : alone(await read.oversight.storageOf(owner), page);
        return {
          data: { totalBytes: bytes, owners: await named(items) },
          pagination: pagePagination(page, limit, total),
        };
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/sites/taken-down',
      operationId: 'listStoppedSites',
      tag: 'Sites administration',
      summary: 'List sites that were taken down',
      description:
        'The latest first, without site names: an administrator cannot open sites of other owners.',
      policy: administratorSession,
      query: z.strictObject(pageQuery),
      success: { status: 200, data: z.array(stoppedSchema), pagination: 'page' },
      example: {
        data: [
          {
            id: 'k3v9x0q2m7',
            owner: exampleOwner,
            takenDownAt: '2026-01-01T09:00:00.000Z',
            reason: 'Phishing, reported by the bank',
          },
        ],
      },
      async handle({ query: { page, limit } }) {
        const { items, total } = await read.oversight.stopped(page, limit);
        const data = (await named(items)).map((site) => ({
          ...site,
          takenDownAt: timestamp(site.takenDownAt),
        }));
        return { data, pagination: pagePagination(page, limit, total) };
      },
    }),
  ];
}
