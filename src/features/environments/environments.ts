/**
 * Environments: branches of a repository, built and running at hosts of their own until their lease ends. The rows say what an
 * Environment should be (lifecycle/, deploys/), and the reconciler brings it there with builds and an engine.
 * For the gateway, serving/ promises: only the current label of an Environment whose lease runs serves anything, and only
 * services that are exposed have a host. Leaves the checks of a person to features/grants.
 */
export {
  type EnvironmentCatalog,
  exposedService,
  isGone,
  isRunning,
} from './serving/environment-catalog.ts';
export type { OpeningStore } from './serving/opening-store.ts';
export type { LabelledEnvironment, ServedService, ServingStore } from './serving/serving-store.ts';
export { isEnding } from './environment/environment.ts';
export { readServiceLabel } from './environment/labels.ts';
