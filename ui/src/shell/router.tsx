import { createRouter } from '@tanstack/react-router';
import { adminRoutes } from '../administration/routes.ts';
import { environmentsRoutes } from '../environments/routes.ts';
import { settingsRoutes } from '../settings/routes.ts';
import { sitesRoutes } from '../sites/routes.ts';
import { startRoutes } from '../start/routes.ts';
import { root } from './root.ts';

/** Every address of the app. The server gives its document at these and no others (surfaces/web/pages/web-app.ts). */
export const router = createRouter({
  routeTree: root.addChildren([
    ...startRoutes,
    ...settingsRoutes,
    ...sitesRoutes,
    ...environmentsRoutes,
    ...adminRoutes,
  ]),
  defaultPreload: 'intent',
  scrollRestoration: false,
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}
