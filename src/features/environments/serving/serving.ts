/**
 * What the gateway serves of Environments, and to whom. Promises: only the current label of an Environment whose lease runs
 * serves anything, and only services that are exposed have a host. Leaves the checks of a person to features/grants, and
 * how a request goes to the gateway.
 */
export {
  type EnvironmentCatalog,
  exposedService,
  isGone,
  isRunning,
} from './environment-catalog.ts';
export type { OpeningStore } from './opening-store.ts';
export type { LabelledEnvironment, ServedService, ServingStore } from './serving-store.ts';
export { isEnding } from '../environment/environment.ts';
export { readServiceLabel } from '../environment/labels.ts';
