import { createRootRoute, createRoute, createRouter, redirect } from '@tanstack/react-router';
import { ClientsPage } from '../settings/clients/clients-page.tsx';
import { KeysPage } from '../settings/keys/keys-page.tsx';
import { keySearch } from '../settings/keys/key-search.ts';
import { NewKeyPage } from '../settings/keys/new/new-key-page.tsx';
import { prefillFrom } from '../settings/keys/new/prefill.ts';
import { NotFound } from './not-found.tsx';
import { Shell } from './shell.tsx';

/** Every address of the app. The server gives its document at these and no others (surfaces/web/pages/web-app.ts). */
const root = createRootRoute({ component: Shell, notFoundComponent: NotFound });

const start = createRoute({
  getParentRoute: () => root,
  path: '/',
  beforeLoad: () => {
    throw redirect({ to: '/settings/keys', replace: true });
  },
});

const keys = createRoute({
  getParentRoute: () => root,
  path: '/settings/keys',
  validateSearch: keySearch,
  component: KeysPage,
});

const newKey = createRoute({
  getParentRoute: () => root,
  path: '/settings/keys/new',
  validateSearch: prefillFrom,
  component: NewKeyPage,
});

const clients = createRoute({
  getParentRoute: () => root,
  path: '/settings/clients',
  component: ClientsPage,
});

export const router = createRouter({
  routeTree: root.addChildren([start, keys, newKey, clients]),
  scrollRestoration: false,
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}
