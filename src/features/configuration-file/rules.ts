import { didYouMean } from './nearest.ts';
import type { Finding, Said } from './problem.ts';
import { readTemplate, type Reference, type ServiceField } from './references.ts';
import { maxEntries, maxServiceNameLength, maxServices, maxValueLength, service } from './schema.ts';

/**
 * Rules that the schema of a single field cannot express: which fields of a service fit together, and whether named services
 * exist. Reads the file as far as it can, so that one reading finds these problems together with those of the schema.
 *
 * The schema may have refused some values. Values above its limits are already a problem and are skipped here. Findings are
 * yielded lazily, so that a caller can stop the work.
 */
export function* brokenRules(file: unknown): Generator<Finding> {
  const drafts = Object.entries(mapIn(file, 'services')).slice(0, maxServices).map(toDraft);
  const shared = mapIn(mapIn(file, 'environment'), 'env');
  yield* wrongReferences(shared, ['environment', 'env'], drafts);
  for (const draft of drafts) {
    if (draft.isMap) yield* kindProblems(draft);
    yield* repeatedVariables(draft);
    yield* wrongReferences(mapIn(draft.value, 'env'), [...draft.path, 'env'], drafts, draft);
    yield* wrongRoutes(draft, drafts);
    yield* unknownRequirements(draft, drafts);
  }
  yield* circles(drafts, addressesIn(shared, ['environment', 'env'], drafts));
}

type Fields = Readonly<Record<string, unknown>>;

/** A service that may have other problems. */
type Draft = {
  readonly name: string;
  readonly path: readonly string[];
  readonly isMap: boolean;
  readonly value: Fields;
  /** Undefined: the service has no kind, or several. */
  readonly kind: Kind | undefined;
  readonly requires: readonly unknown[];
};

/** The first entries of a map: the schema reports a map with too many. */
function entriesOf(map: Fields): [name: string, value: unknown][] {
  return Object.entries(map).slice(0, maxEntries);
}

/** False for a text that is too long to name a service: the schema reports it. */
function isServiceName(name: unknown): name is string {
  return typeof name === 'string' && name.length <= maxServiceNameLength;
}

const kinds = ['static', 'run', 'postgres', 'external'] as const;
type Kind = (typeof kinds)[number];

const kindNames: Readonly<Record<Kind, string>> = {
  static: 'a static service',
  run: 'a process',
  postgres: 'a database',
  external: 'an external service',
};

const fieldsOfKind: Readonly<Record<Kind, readonly string[]>> = {
  static: ['build', 'static', 'routes', 'env', 'requires', 'exposed'],
  run: ['build', 'image', 'run', 'routes', 'env', 'secrets', 'requires', 'exposed'],
  postgres: ['postgres', 'exposed'],
  external: ['external'],
};

function toDraft([name, value]: [string, unknown]): Draft {
  const fields = isMap(value) ? value : {};
  const found = kindsIn(fields);
  const { requires } = fields;
  return {
    name,
    path: ['services', name],
    isMap: isMap(value),
    value: fields,
    kind: found.length === 1 ? found[0] : undefined,
    requires: Array.isArray(requires) ? requires.slice(0, maxServices) : [],
  };
}

function kindsIn(fields: Fields): Kind[] {
  return kinds.filter((kind) => kind in fields);
}

function isMap(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function mapIn(fields: unknown, name: string): Fields {
  const value = isMap(fields) ? fields[name] : undefined;
  return isMap(value) ? value : {};
}

type Say = (field: readonly string[], message: string, fix: string) => Finding[];

function kindProblems({ name, path, value, kind }: Draft): Finding[] {
  const say: Say = (field, message, fix) => [
    { path: [...path, ...field], at: 'name', rule: 'kind', message, fix },
  ];
  if (kind === undefined) {
    const [first, second = ''] = kindsIn(value);
    return first === undefined
      ? say([], `${name} has no kind.`, `Add one of ${kinds.join(', ')}.`)
      : say([second], `${name} has both ${first} and ${second}.`, 'Keep one of them.');
  }
  const strange = Object.keys(value).filter((field) => isField(field) && !fieldsOfKind[kind].includes(field));
  return [
    ...strange.flatMap((field) =>
      say([field], `${field} does not fit ${name}, which is ${kindNames[kind]}.`, `Remove ${field}.`),
    ),
    ...(kind === 'postgres' && value['exposed'] === true
      ? say(['exposed'], 'A database has no web address.', 'Remove exposed.')
      : []),
    ...(kind === 'static' ? staticProblems(name, value, say) : []),
    ...(kind === 'run' ? processProblems(name, value, say) : []),
  ];
}

/** False for a field that no service has: the schema reports it. */
function isField(name: string): boolean {
  return Object.hasOwn(service.shape, name);
}

function staticProblems(name: string, value: Fields, say: Say): Finding[] {
  if (!('build' in value))
    return say([], `${name} has no files.`, 'Add build, with the directory and output of the files.');
  const build = mapIn(value, 'build');
  if ('dockerfile' in build)
    return say(
      ['build', 'dockerfile'],
      'A Dockerfile makes no static service.',
      'Use image, command and output.',
    );
  return [...withoutImage(name, build, 'command' in build, say), ...strayTarget(build, say)];
}

function processProblems(name: string, value: Fields, say: Say): Finding[] {
  if (!('build' in value))
    return 'image' in value
      ? []
      : say([], `${name} has nothing to run.`, 'Add build, or image for a ready image.');
  if ('image' in value)
    return say(
      ['image'],
      `${name} has both build and image.`,
      'Keep one. The image of a build is build.image.',
    );
  const build = mapIn(value, 'build');
  if ('dockerfile' in build)
    return ['image', 'command', 'output']
      .filter((field) => field in build)
      .flatMap((field) =>
        say(
          ['build', field],
          `${field} has no meaning beside a Dockerfile.`,
          `Remove ${field}, or dockerfile.`,
        ),
      );
  return [
    ...withoutImage(name, build, isMap(value['build']), say),
    ...strayTarget(build, say),
    ...(isMap(value['run']) && !('command' in value['run'])
      ? say(['run'], `${name} has no command to start.`, 'Add run.command, for example node server.js.')
      : []),
  ];
}

function withoutImage(name: string, build: Fields, isNeeded: boolean, say: Say): Finding[] {
  if (!isNeeded || 'image' in build) return [];
  return say(
    ['build'],
    `${name} does not say in which image it runs.`,
    'Add build.image, for example node:24.',
  );
}

function strayTarget(build: Fields, say: Say): Finding[] {
  if (!('target' in build)) return [];
  return say(['build', 'target'], 'target has no meaning without a Dockerfile.', 'Remove target.');
}

function* repeatedVariables({ path, value }: Draft): Generator<Finding> {
  const env = mapIn(value, 'env');
  for (const [name] of entriesOf(mapIn(value, 'secrets'))) {
    if (!Object.hasOwn(env, name)) continue;
    yield {
      path: [...path, 'secrets', name],
      at: 'name',
      rule: 'kind',
      message: `The variable ${name} is in env and in secrets.`,
      fix: 'Keep one of them.',
    };
  }
}

function* wrongReferences(
  env: Fields,
  path: readonly string[],
  drafts: readonly Draft[],
  from?: Draft,
): Generator<Finding> {
  for (const [name, text] of entriesOf(env)) {
    if (typeof text !== 'string' || text.length > maxValueLength) continue;
    const place = { path: [...path, name], at: 'value' } as const;
    const { template, mistakes } = readTemplate(text);
    for (const mistake of mistakes) yield { ...place, rule: 'reference', ...mistake };
    for (const piece of template) {
      const said = typeof piece === 'string' ? undefined : unresolved(piece, drafts, from);
      if (said !== undefined) yield { ...place, ...said };
    }
  }
}

/** `from`: the service of the variable. Undefined: a variable of every service. */
function unresolved(reference: Reference, drafts: readonly Draft[], from?: Draft): Said | undefined {
  if (reference.kind === 'environment') return undefined;
  const draft = drafts.find(({ name }) => name === reference.service);
  if (draft === undefined) return unknownService(reference.service, drafts);
  if (draft.kind === 'postgres' && from?.kind === 'static')
    return {
      rule: 'reference',
      message: `${from.name} is a static service, whose build reaches no database.`,
      fix: `Use \${services.${draft.name}.${reference.field}} in a process.`,
    };
  const allowed = fieldsToRefer(draft);
  if (allowed === undefined || allowed.includes(reference.field)) return undefined;
  return {
    rule: 'reference',
    message: `\${services.${draft.name}.${reference.field}} does not exist.`,
    fix: `${draft.name} has ${allowed.join(' and ')}.`,
  };
}

/** Undefined: the kind of the service is not known. */
function fieldsToRefer({ kind, value }: Draft): readonly ServiceField[] | undefined {
  if (kind === 'static') return ['url'];
  if (kind === 'run' && value['exposed'] === false) return ['host', 'port'];
  return kind && ['host', 'port', 'url'];
}

function unknownService(name: string, drafts: readonly Draft[]): Said {
  const names = drafts.map((draft) => draft.name).filter(isServiceName);
  const known = names.length === 0 ? 'No service has a valid name.' : `The services are ${names.join(', ')}.`;
  return {
    rule: 'unknown_service',
    message: `There is no service ${name}.`,
    fix: didYouMean(name, names) ?? known,
  };
}

function* wrongRoutes({ name, path, value }: Draft, drafts: readonly Draft[]): Generator<Finding> {
  for (const [route, to] of entriesOf(mapIn(value, 'routes'))) {
    const said = isServiceName(to) ? wrongTarget(name, to, drafts) : undefined;
    if (said !== undefined) yield { path: [...path, 'routes', route], at: 'value', ...said };
  }
}

function wrongTarget(name: string, to: string, drafts: readonly Draft[]): Said | undefined {
  const target = drafts.find((draft) => draft.name === to);
  if (target === undefined) return unknownService(to, drafts);
  if (to === name)
    return {
      rule: 'route',
      message: `The route leads from ${name} to ${name} itself.`,
      fix: 'Remove the route.',
    };
  if (target.kind !== 'postgres' && target.kind !== 'external') return undefined;
  return {
    rule: 'route',
    message: `${to} is ${kindNames[target.kind]}, which answers no request through Postern.`,
    fix: 'Name a static service or a process.',
  };
}

function* unknownRequirements({ path, requires }: Draft, drafts: readonly Draft[]): Generator<Finding> {
  for (const [at, name] of requires.entries())
    if (isServiceName(name) && !drafts.some((draft) => draft.name === name))
      yield { path: [...path, 'requires', at], at: 'value', ...unknownService(name, drafts) };
}

/** A variable that contains the internal address of a service. */
type Address = { readonly variable: string; readonly to: string; readonly path: Finding['path'] };

/** The internal addresses of processes in variables. Every other value is known before anything starts. */
function addressesIn(env: Fields, path: readonly string[], drafts: readonly Draft[]): Address[] {
  const processes = new Set(drafts.filter(({ kind }) => kind === 'run').map(({ name }) => name));
  return entriesOf(env).flatMap(([variable, text]) => {
    if (typeof text !== 'string' || text.length > maxValueLength) return [];
    const names = readTemplate(text).template.map((piece) =>
      typeof piece !== 'string' && piece.kind === 'service' && piece.field !== 'url' ? piece.service : '',
    );
    return [...new Set(names)]
      .filter((to) => processes.has(to))
      .map((to) => ({ variable, to, path: [...path, variable] }));
  });
}

/** Services that a service waits for, each with the first entry that requires it. `shared`: addresses in environment.env. */
function waitsOf(
  draft: Draft,
  shared: readonly Address[],
  drafts: readonly Draft[],
): ReadonlyMap<string, Finding['path']> {
  const waits = new Map<string, Finding['path']>();
  const add = (name: string, path: Finding['path']) => {
    if (!waits.has(name)) waits.set(name, path);
  };
  for (const [at, name] of draft.requires.entries())
    if (isServiceName(name)) add(name, [...draft.path, 'requires', at]);
  if (draft.kind !== 'run') return waits;
  const env = mapIn(draft.value, 'env');
  const own = { ...env, ...mapIn(draft.value, 'secrets') };
  const inherited = shared.filter(({ variable }) => !Object.hasOwn(own, variable));
  for (const { to, path } of [...addressesIn(env, [...draft.path, 'env'], drafts), ...inherited])
    add(to, path);
  return waits;
}

/** Reports each circle once, at the entry that closes it. */
function* circles(drafts: readonly Draft[], shared: readonly Address[]): Generator<Finding> {
  const done = new Set<string>();
  function* follow(draft: Draft, before: readonly string[]): Generator<Finding> {
    const way = [...before, draft.name];
    for (const [name, path] of waitsOf(draft, shared, drafts)) {
      const next = drafts.find((one) => one.name === name);
      if (next === undefined || done.has(next.name)) continue;
      if (!way.includes(next.name)) {
        yield* follow(next, way);
        continue;
      }
      yield {
        path,
        at: 'value',
        rule: 'circle',
        message: `These services wait for each other: ${[...way.slice(way.indexOf(next.name)), next.name].join(' → ')}.`,
        fix: 'Remove one of these requirements or references. A process finds its own port in PORT.',
      };
    }
    done.add(draft.name);
  }
  for (const draft of drafts) if (!done.has(draft.name)) yield* follow(draft, []);
}
