import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { root } from '../shell/root.ts';
import { siteSearch } from './list/site-search.ts';
import { detailSearch } from './detail/detail-search.ts';

const list = createRoute({
  getParentRoute: () => root,
  path: '/sites',
  validateSearch: siteSearch,
  component: lazyRouteComponent(() => import('./list/sites-page.tsx'), 'SitesPage'),
});

const newSite = createRoute({
  getParentRoute: () => root,
  path: '/sites/new',
  component: lazyRouteComponent(() => import('./new/new-site-page.tsx'), 'NewSitePage'),
});

const site = createRoute({
  getParentRoute: () => root,
  path: '/sites/$id',
  validateSearch: detailSearch,
  component: lazyRouteComponent(() => import('./detail/site-page.tsx'), 'SitePage'),
});

export const sitesRoutes = [list, newSite, site] as const;
