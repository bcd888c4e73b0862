import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { root } from '../shell/root.ts';
import { environmentSearch } from './list/environment-search.ts';
import { detailSearch } from './detail/detail-search.ts';
import { newSearch } from './new/new-search.ts';

const list = createRoute({
  getParentRoute: () => root,
  path: '/environments',
  validateSearch: environmentSearch,
  component: lazyRouteComponent(() => import('./list/environments-page.tsx'), 'EnvironmentsPage'),
});

const newEnvironment = createRoute({
  getParentRoute: () => root,
  path: '/environments/new',
  validateSearch: newSearch,
  component: lazyRouteComponent(() => import('./new/new-environment-page.tsx'), 'NewEnvironmentPage'),
});

const environment = createRoute({
  getParentRoute: () => root,
  path: '/environments/$id',
  validateSearch: detailSearch,
  component: lazyRouteComponent(() => import('./detail/environment-page.tsx'), 'EnvironmentPage'),
});

const deploy = createRoute({
  getParentRoute: () => root,
  path: '/environments/$id/deploys/$deploy',
  component: lazyRouteComponent(() => import('./deploys/deploy-page.tsx'), 'DeployPage'),
});

export const environmentsRoutes = [list, newEnvironment, environment, deploy] as const;
