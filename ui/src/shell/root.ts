import { createRootRoute } from '@tanstack/react-router';
import { NotFound } from './not-found.tsx';
import { Shell } from './shell.tsx';

/** What every address of the app stands in. */
export const root = createRootRoute({ component: Shell, notFoundComponent: NotFound });
