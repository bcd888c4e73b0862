/**
 * Environments: branches of a repository, built and served at separate hosts until their lease ends. The rows hold the desired
 * state (lifecycle/, deploys/), and the reconciler establishes it with builds and an engine.
 * serving/ promises to the gateway: an Environment serves only at its current label and during its lease, and only exposed
 * services have a host. features/grants checks the access of people.
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
