/**
 * Environments: branches of a repository, built and running at addresses of their own. This release reads and validates the
 * repository configuration file, postern.yaml, and has the policy and the metadata links. It deploys nothing yet.
 */
export { readConfigurationFile } from './configuration-file/read.ts';
export { publishedSchema } from './configuration-file/published-schema.ts';
