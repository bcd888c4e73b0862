import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { root } from '../shell/root.ts';

const start = createRoute({
  getParentRoute: () => root,
  path: '/',
  component: lazyRouteComponent(() => import('./start-page.tsx'), 'StartPage'),
});

export const startRoutes = [start] as const;
