import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { actorOf } from '../../../core/caller.ts';
import { AppError } from '../../../core/errors.ts';
import type { Grants } from '../../../features/grants/grants.ts';
import { siteOwners } from '../../../features/grants/routes.ts';
import type { Site, Sites } from '../../../features/sites/sites.ts';
import type { Gate } from '../gate.ts';
import { checkOwnOrigin, sendPage } from './forms.ts';
import { siteAccessPage } from './site-access-page.ts';
import { noSuchSitePage, signedOutPage, sitesOffPage, unavailablePage } from './site-pages.ts';
import { type Person, signIn, signInLink } from './visitor.ts';

/**
 * `/s/{id}/access`: the owner reads why the site opens or not and who was let in, and ends every grant. The rules and
 * the verb are those of `/api/v2/sites/{id}/access` and `…/grants`; whoever else asks sees what he sees of a site that
 * is not there.
 */
export type SiteAccessDeps = {
  readonly sites: Pick<Sites, 'get' | 'endGrants'>;
  readonly grants: Pick<Grants, 'explain' | 'ledger'>;
  readonly isEnabled: () => Promise<boolean>;
  readonly uiOrigin: string;
  readonly gate: Pick<Gate, 'limitChange' | 'principal' | 'authorize'>;
  readonly personOf: (request: FastifyRequest, reply: FastifyReply) => Promise<Person | null>;
};

/** More than can be live at once: ten a minute, five minutes each. */
const shownGrants = 60;

export function mountSiteAccess(scope: FastifyInstance, deps: SiteAccessDeps): void {
  const { sites, grants, gate } = deps;

  /** The owner's own site; null when the answer is given already. Nothing of the site is asked before the policy. */
  async function ownSite(request: FastifyRequest, reply: FastifyReply): Promise<Site | null> {
    const { caller } = request;
    try {
      gate.authorize(caller, siteOwners, await gate.principal(caller, siteOwners));
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      if (error.code === 'authentication_required')
        sendPage(reply.code(401), signedOutPage(signInLink(request), request.id));
      else if (error.code === 'identity_unavailable')
        sendPage(
          reply.code(503).header('retry-after', '5'),
          unavailablePage('identity', request.url, request.id),
        );
      else throw error;
      return null;
    }
    if (!(await deps.isEnabled())) {
      sendPage(reply.code(403), sitesOffPage(request.id));
      return null;
    }
    const { id } = request.params as { id: string };
    const site = await sites.get(caller, id).catch(noneIfMissing);
    if (site !== null && caller.kind === 'session' && isOf(site, caller.user.id)) return site;
    sendPage(reply.code(404), noSuchSitePage(request.id));
    return null;
  }

  scope.get('/s/:id/access', { config: { access: siteOwners } }, async (request, reply) => {
    const person = await deps.personOf(request, reply);
    if (person === null) return signIn(request, reply);
    const site = await ownSite(request, reply);
    if (site === null) return reply;
    const access = await grants.explain(site, person.user, person.sessionId);
    const { items, total } = await grants.ledger(site, 1, shownGrants);
    return sendPage(reply, siteAccessPage({ site, ...access, grants: items, total }));
  });

  scope.post('/s/:id/access', { config: { access: siteOwners } }, async (request, reply) => {
    checkOwnOrigin(request, deps.uiOrigin);
    const person = await deps.personOf(request, reply);
    if (person === null) return signIn(request, reply);
    await gate.limitChange(request.caller);
    const site = await ownSite(request, reply);
    if (site === null) return reply;
    const act = { actor: actorOf(request.caller), origin: request.origin };
    await sites.endGrants(request.caller, act, site.id);
    return reply.redirect(`/s/${site.id}/access`, 303);
  });
}

function noneIfMissing(error: unknown): null {
  if (error instanceof AppError && error.code === 'site_not_found') return null;
  throw error;
}

function isOf({ owner }: Site, userId: string): boolean {
  return owner.kind === 'user' && owner.id === userId;
}
