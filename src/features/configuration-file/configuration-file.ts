/**
 * Reads postern.yaml, reports its problems with line and fix, and plans an Environment from a valid file.
 * Pure: it knows neither Environments nor engines.
 */
export { inactiveAddresses } from './inactive-addresses.ts';
export { didYouMean } from './nearest.ts';
export {
  type DesiredBuild,
  type DesiredEnvironment,
  type DesiredService,
  type Overrides,
  plan,
  secretNamesOf,
} from './plan.ts';
export {
  configurationFileName,
  type Finding,
  firstOf,
  missingFile,
  otherFileName,
  type Problem,
  rules,
} from './problem.ts';
export { publishedSchema } from './published-schema.ts';
export { readConfigurationFile } from './read.ts';
export {
  type EnvironmentField,
  environmentFields,
  filled,
  type Reference,
  readTemplate,
} from './references.ts';
export { type Access, accessKinds, maxServices, maxTtlHours } from './schema.ts';
export { unsupportedIn } from './unsupported.ts';
