import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { root } from '../app/root.ts';
import { keySearch } from './keys/key-search.ts';
import { prefillFrom } from './keys/new/prefill.ts';

// What a page needs is loaded when somebody goes there; its name and what its address may say are known at once.
const keys = createRoute({
  getParentRoute: () => root,
  path: '/settings/keys',
  validateSearch: keySearch,
  component: lazyRouteComponent(() => import('./keys/keys-page.tsx'), 'KeysPage'),
});

const newKey = createRoute({
  getParentRoute: () => root,
  path: '/settings/keys/new',
  validateSearch: prefillFrom,
  component: lazyRouteComponent(() => import('./keys/new/new-key-page.tsx'), 'NewKeyPage'),
});

const clients = createRoute({
  getParentRoute: () => root,
  path: '/settings/clients',
  component: lazyRouteComponent(() => import('./clients/clients-page.tsx'), 'ClientsPage'),
});

export const settingsRoutes = [keys, newKey, clients] as const;
