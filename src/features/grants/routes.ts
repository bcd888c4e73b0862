import { z } from 'zod';
import type { RoutePolicy } from '../../core/authorize.ts';
import { timestamp } from '../../core/clock.ts';
import { AppError, type ErrorCode } from '../../core/errors.ts';
import { defineRoute, pagePagination, type Route } from '../../platform/http.ts';
import { idParams, pageQuery } from '../../platform/schemas.ts';
import type { Sites } from '../sites/sites.ts';
import type { Grants } from './grants.ts';
import { accessSchema, grantsEndedSchema } from './schemas.ts';

/** Only a person in a browser can see who had access: keys and tokens open no private site. */
const siteOwners: RoutePolicy = { callers: ['session'], role: 'user', identity: 'introspected' };
const siteParams = idParams('A site’s id', 'k3v9x0q2m7');
const errors: readonly ErrorCode[] = ['site_not_found', 'sites_disabled', 'not_owner'];

export function grantRoutes(deps: {
  sites: Pick<Sites, 'get' | 'endGrants'>;
  grants: Pick<Grants, 'explain' | 'ledger'>;
  linkOf: (siteId: string) => string;
}): Route[] {
  const { sites, grants, linkOf } = deps;
  return [
    defineRoute({
      method: 'GET',
      path: '/sites/{id}/access',
      operationId: 'explainSiteAccess',
      tag: 'Site access',
      summary: 'See the browser grants, and why the site opens or not',
      description:
        'Every check that Postern makes when you open the site in a browser, with its current result, and the list of browser grants. Signing out of the web app does not end a grant; `DELETE …/grants` does.',
      policy: siteOwners,
      params: siteParams,
      query: z.strictObject(pageQuery),
      errors: [...errors, 'store_unavailable'],
      success: { status: 200, data: accessSchema, pagination: 'page' },
      example: {
        data: {
          opens: true,
          link: 'https://postern.example.com/s/k3v9x0q2m7',
          checks: [{ check: 'not_expired', passed: true, detail: 'The site has not expired.' }],
          grants: [
            {
              id: 'grt_4fKq9wZ2m7Xr1Tb8Lc5N',
              issuedAt: '2026-01-01T09:00:00.000Z',
              endsAt: '2026-01-01T09:05:00.000Z',
              status: 'live',
              address: '192.0.2.7',
              agent: 'Mozilla/5.0',
            },
          ],
        },
      },
      async handle({ caller, params, query: { page, limit } }) {
        // The policy allows only sessions.
        if (caller.kind !== 'session') throw new AppError('interactive_auth_required');
        const site = await sites.get(caller, params.id);
        if (site.owner.kind !== 'user' || site.owner.id !== caller.user.id) throw new AppError('not_owner');
        const { checks, opens } = await grants.explain(site, caller.user, caller.sessionId);
        const { items, total } = await grants.ledger(site, page, limit);
        const issued = items.map(({ id, issuedAt, endsAt, isLive, address, agent }) => ({
          id,
          issuedAt: timestamp(issuedAt),
          endsAt: timestamp(endsAt),
          status: isLive ? ('live' as const) : ('ended' as const),
          address,
          agent,
        }));
        const data = { opens, link: linkOf(site.id), checks: [...checks], grants: issued };
        return { data, pagination: pagePagination(page, limit, total) };
      },
    }),
    defineRoute({
      method: 'DELETE',
      path: '/sites/{id}/grants',
      operationId: 'endSiteGrants',
      tag: 'Site access',
      summary: 'End every browser grant',
      description:
        'Takes effect immediately, on every gateway. A browser that opens the link again is checked again.',
      policy: siteOwners,
      params: siteParams,
      errors: [...errors, 'store_unavailable'],
      success: { status: 200, data: grantsEndedSchema },
      example: { data: { id: 'k3v9x0q2m7', endedAt: '2026-01-01T09:00:00.000Z' } },
      async handle({ caller, auditContext, params }) {
        const { id, updatedAt } = await sites.endGrants(caller, auditContext, params.id);
        return { data: { id, endedAt: timestamp(updatedAt) } };
      },
    }),
  ];
}
