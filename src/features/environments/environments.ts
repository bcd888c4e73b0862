/**
 * Environments: branches of a repository, built and running at hosts of their own until their lease ends. The rows decide what
 * an Environment should be (lifecycle/, deploys/), and the reconciler brings it there with builds/ and an engine.
 */
export { readConfigurationFile } from '../configuration-file/read.ts';
export { publishedSchema } from '../configuration-file/published-schema.ts';
