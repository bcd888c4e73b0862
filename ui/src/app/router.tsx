import { createRoute, createRouter, redirect } from '@tanstack/react-router';
import { settingsRoutes } from '../settings/routes.ts';
import { root } from './root.ts';

/** Every address of the app. The server gives its document at these and no others (surfaces/web/pages/web-app.ts). */
const start = createRoute({
  getParentRoute: () => root,
  path: '/',
  beforeLoad: () => {
    throw redirect({ to: '/settings/keys', replace: true });
  },
});

export const router = createRouter({
  routeTree: root.addChildren([start, ...settingsRoutes]),
  defaultPreload: 'intent',
  scrollRestoration: false,
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}
