// Checks what must be built before a program runs. Plain JavaScript for old Node versions, like run.mjs.
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** Programs that serve or test what is built; the others start without it. */
const testsUi = /^(?:node_modules\/vitest\/|scripts\/with-postgres\.ts|bench\/)/;

/** Commands of the server that only read or change data, such as doctor, build nothing. */
function servesUi(program, command = 'all') {
  if (program !== 'src/main.ts') return testsUi.test(program);
  return command.startsWith('-') || ['all', 'web', 'gateway', 'worker', 'drill'].includes(command);
}

/** Server files that the web app contains: the bounds and defaults of its documents and of trust rules, and the rules for file names. */
const serverFiles = [
  'core/scopes.ts',
  'features/agents/agent-models.ts',
  'features/agents/mcp-policy.ts',
  'features/agents/tool-names.ts',
  'features/configuration-file/schema.ts',
  'features/environments/policy/environment-policy.ts',
  'features/keys/key-policy.ts',
  'features/keys/policy-schema.ts',
  'features/keys/trust-rule.ts',
  'features/keys/trust-schemas.ts',
  'features/keys/trusted-issuer.ts',
  'features/people/login/access-config.ts',
  'features/sites/content/paths.ts',
  'features/sites/site/sites-config.ts',
].map((name) => `src/${name}`);

export function needsUiBuild(root, program, command) {
  const sources = [
    'ui/src',
    'ui/index.html',
    'ui/vite.config.ts',
    'ui/build.ts',
    'ui/api-types.ts',
    'ui/document-bounds.ts',
    ...serverFiles,
    'package-lock.json',
  ];
  return servesUi(program, command) && isStale(root, 'ui/dist/index.html', sources);
}

/** The verbs of the command line come from the routes in src. Two programs read them without the built command line. */
export function needsCliBuild(root, program, command) {
  const sources = [
    'src',
    'cli/src',
    'cli/build.ts',
    'cli/generate.ts',
    'cli/verb-names.ts',
    'package-lock.json',
  ];
  const readsVerbs = /^scripts\/(?:check|docs)\.ts$/.test(program);
  return (servesUi(program, command) || readsVerbs) && isStale(root, 'cli/dist/postern.mjs', sources);
}

/** The type check reads them. They take seconds, and nothing but their text says whether they are current. */
export function needsApiTypes(program) {
  return program === 'scripts/check.ts';
}

function isStale(root, result, sources) {
  const built = join(root, result);
  if (!existsSync(built)) return true;
  const builtAt = statSync(built).mtimeMs;
  return sources.some((name) => newest(join(root, name)) > builtAt);
}

/** Includes the folder's own time, which changes when a file is removed. Tests are not built. */
function newest(path) {
  const found = statSync(path);
  if (!found.isDirectory()) return found.mtimeMs;
  const names = readdirSync(path).filter((name) => !name.endsWith('.test.ts'));
  return Math.max(found.mtimeMs, ...names.map((name) => newest(join(path, name))));
}
