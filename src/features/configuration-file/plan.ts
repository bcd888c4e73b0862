import { createHash } from 'node:crypto';
import { posix } from 'node:path';
import { joined, readTemplate, type Reference, type Template } from './references.ts';
import {
  type Access,
  accessKinds,
  type Build,
  type ConfigurationFile,
  type Run,
  type Service,
} from './schema.ts';

/** Desired state of an Environment at one commit. The reconciler compares it with the actual state. */
export type DesiredEnvironment = {
  readonly access: Access;
  /** Hours of the lease, counted from the creation. */
  readonly ttlHours: number;
  /** Whether a new Environment follows its branch. Absent in plans of earlier versions. */
  readonly autoTrack?: boolean;
  /** Patterns of files. A push that changes only these files is not deployed. */
  readonly ignoreFiles?: readonly string[];
  /** Services by name. */
  readonly services: Readonly<Record<string, DesiredService>>;
  /** Services that were switched off, by name. Absent in plans of earlier versions. */
  readonly inactive?: Readonly<Record<string, DesiredService['kind']>>;
  /** Names of the services in start order; services of one level start together. */
  readonly levels: readonly (readonly string[])[];
};

export type DesiredService =
  | ({ readonly kind: 'static'; readonly build: DesiredBuild; readonly spa: boolean } & Fronted)
  | ({ readonly kind: 'process'; readonly build: DesiredBuild } & Running & Fronted)
  | ({ readonly kind: 'image'; readonly image: string } & Running & Fronted)
  | { readonly kind: 'postgres'; readonly seed: string | null }
  | { readonly kind: 'external'; readonly url: string };

/** Fields of a service that the gateway serves. */
type Fronted = { readonly routes: Readonly<Record<string, string>>; readonly isExposed: boolean };

type Running = { readonly run: DesiredRun; readonly variables: Variables; readonly secrets: Secrets };

type DesiredRun = {
  /** Null: the image starts its own command. */
  readonly command: string | null;
  readonly port: number;
  readonly health: string | null;
  readonly replicas: number;
  readonly milliCpu: number | null;
  readonly memoryBytes: number | null;
};

/** Texts with references that are replaced later: addresses, and the id, name and URL of the Environment. */
type Variables = Readonly<Record<string, Template>>;
/** Variable → name of the stored secret. */
type Secrets = Readonly<Record<string, string>>;

/** Names of the stored secrets that these services and their builds use, in a stable order. */
export function secretNamesOf(services: readonly DesiredService[]): readonly string[] {
  const names = services.flatMap(secretMapsOf).flatMap((map) => Object.values(map));
  return [...new Set(names)].toSorted();
}

function secretMapsOf(service: DesiredService): readonly Secrets[] {
  return ['secrets' in service ? service.secrets : {}, 'build' in service ? service.build.secrets : {}];
}

export type DesiredBuild = {
  readonly image: string | null;
  readonly command: string | null;
  readonly directory: string;
  readonly output: string;
  readonly inputs: readonly string[];
  readonly variables: Variables;
  readonly secrets: Secrets;
  /**
   * SHA-256 of everything that affects the result, except the files and the values of variables. A worker adds those: it has
   * the files, and HMACs keep values from being guessed.
   */
  readonly digest: string;
};

type Commit = { readonly branch: string; readonly sha: string };

type PlanPolicy = {
  readonly defaultTtlHours: number;
  readonly maxTtlHours: number;
  readonly allowedAccess: readonly Access[];
};

/** Choices of people for this Environment, which take precedence over the file. */
export type Overrides = {
  /** Null: the Environment was created without a choice. Only then the file's access applies. */
  readonly access: Access | null;
  readonly ttlHours: number | null;
  /** Choices for services. A service that is not in the file at this commit is ignored. */
  readonly services: readonly {
    readonly name: string;
    readonly isActive?: boolean;
    /** URL of an external service. */
    readonly url?: string;
  }[];
  readonly env: Readonly<Record<string, string>>;
  /** Variables of builds. */
  readonly initEnv: Readonly<Record<string, string>>;
};

/** Plans an Environment. Throws on a Dockerfile, which unsupportedIn() reports first. */
export function plan(
  file: ConfigurationFile,
  commit: Commit,
  policy: PlanPolicy,
  overrides: Overrides,
): DesiredEnvironment {
  const active = activeServices(file, overrides);
  const context = { file, commit, overrides };
  return {
    access: clampAccess(overrides.access ?? file.environment.access, policy.allowedAccess),
    ttlHours: Math.min(
      overrides.ttlHours ?? file.environment.ttlHours ?? policy.defaultTtlHours,
      policy.maxTtlHours,
    ),
    autoTrack: file.environment.autoTrack,
    ...(file.environment.ignoreFiles === undefined ? {} : { ignoreFiles: file.environment.ignoreFiles }),
    services: Object.fromEntries(active.map(([name, service]) => [name, desired(name, service, context)])),
    inactive: Object.fromEntries(
      Object.entries(file.services)
        .filter(([name]) => !active.some(([other]) => other === name))
        .map(([name, service]) => [name, desired(name, service, context).kind]),
    ),
    levels: levelsOf(active),
  };
}

/** The widest allowed access that is not wider than `wanted`; if there is none, only the creator has access. */
function clampAccess(wanted: Access, allowed: readonly Access[]): Access {
  const upTo = accessKinds.slice(0, accessKinds.indexOf(wanted) + 1);
  return upTo.findLast((access) => allowed.includes(access)) ?? 'owner';
}

type Named = readonly [name: string, service: Service];

/** Services that were not switched off, and all services that they require. */
function activeServices({ services }: ConfigurationFile, overrides: Overrides): Named[] {
  const off = new Set(
    overrides.services.filter(({ isActive }) => isActive === false).map(({ name }) => name),
  );
  const active = new Set<string>();
  const activate = (name: string): void => {
    if (active.has(name)) return;
    active.add(name);
    for (const required of services[name]?.requires ?? []) activate(required);
  };
  for (const name of Object.keys(services)) if (!off.has(name)) activate(name);
  return Object.entries(services).filter(([name]) => active.has(name));
}

/** Each service is one level after the last service that it requires. External services do not start. */
function levelsOf(active: readonly Named[]): string[][] {
  const services = new Map(active);
  const known = new Map<string, number>();
  const levelOf = (name: string): number => {
    const { external, requires = [] } = services.get(name) ?? {};
    const level =
      known.get(name) ??
      (external === undefined ? Math.max(0, ...requires.map((one) => levelOf(one) + 1)) : -1);
    known.set(name, level);
    return level;
  };
  const levels: string[][] = [];
  for (const [name, { external }] of active)
    if (external === undefined) (levels[levelOf(name)] ??= []).push(name);
  return levels;
}

type Context = {
  readonly file: ConfigurationFile;
  readonly commit: Commit;
  readonly overrides: Overrides;
};

function desired(name: string, service: Service, context: Context): DesiredService {
  const { overrides } = context;
  const { external, postgres, build, image, run, routes, secrets } = service;
  if (external !== undefined) return { kind: 'external', url: urlOf(name, external.url, overrides) };
  if (postgres !== undefined)
    return { kind: 'postgres', seed: postgres.seed === undefined ? null : shortest(postgres.seed) };
  const own = without(variablesOf(service, context), secrets);
  const initEnv = literals(overrides.initEnv);
  const fronted = { routes, isExposed: service.exposed ?? true };
  if (run !== undefined && image !== undefined)
    return { kind: 'image', image, run: desiredRun(run), variables: own, secrets, ...fronted };
  if (build === undefined || build.dockerfile !== undefined)
    throw new Error(`The service ${name} cannot be planned; unsupportedIn() refuses it.`);
  if (run !== undefined)
    return {
      kind: 'process',
      build: desiredBuild('process', build, initEnv),
      run: desiredRun(run),
      variables: own,
      secrets,
      ...fronted,
    };
  return {
    kind: 'static',
    build: desiredBuild('static', build, { ...own, ...initEnv }),
    spa: service.static?.spa ?? false,
    ...fronted,
  };
}

function urlOf(name: string, url: string, { services }: Overrides): string {
  return services.find((override) => override.name === name)?.url ?? url;
}

function variablesOf(service: Service, context: Context): Variables {
  const written = { ...context.file.environment.env, ...service.env };
  return {
    ...Object.fromEntries(Object.entries(written).map(([name, text]) => [name, resolve(text, context)])),
    ...literals(context.overrides.env),
  };
}

/** Takes values that people typed literally: only the file has references. */
function literals(env: Readonly<Record<string, string>>): Variables {
  return Object.fromEntries(Object.entries(env).map(([name, text]) => [name, text === '' ? [] : [text]]));
}

/** A secret takes precedence over a variable of the same name. */
function without(variables: Variables, secrets: Secrets): Variables {
  return Object.fromEntries(Object.entries(variables).filter(([name]) => !Object.hasOwn(secrets, name)));
}

function resolve(text: string, context: Context): Template {
  const { template } = readTemplate(text);
  return joined(template.map((piece) => (typeof piece === 'string' ? piece : known(piece, context))));
}

/** The value if the file and the commit determine it. */
function known(reference: Reference, { file, commit, overrides }: Context): string | Reference {
  if (reference.kind === 'environment')
    return reference.field === 'branch' || reference.field === 'sha' ? commit[reference.field] : reference;
  const external = file.services[reference.service]?.external;
  if (external === undefined) return reference;
  const url = new URL(urlOf(reference.service, external.url, overrides));
  const port = url.port || (url.protocol === 'https:' ? '443' : '80');
  return { url: url.href.replace(/\/$/, ''), host: url.hostname, port }[reference.field];
}

function desiredRun({ command, port, health, replicas, resources }: Run): DesiredRun {
  return {
    command: command ?? null,
    port,
    health: health ?? null,
    replicas,
    milliCpu: milliCpuOf(resources?.cpu),
    memoryBytes: memoryBytesOf(resources?.memory),
  };
}

/** `500m` is 500, and 2 is 2,000. */
function milliCpuOf(amount: string | number | undefined): number | null {
  if (amount === undefined) return null;
  return typeof amount === 'number' ? Math.round(amount * 1_000) : Number.parseInt(amount, 10);
}

/** The schema allows Mi and Gi. */
function memoryBytesOf(amount: string | undefined): number | null {
  return amount === undefined
    ? null
    : Number.parseInt(amount, 10) * (amount.endsWith('Gi') ? 2 ** 30 : 2 ** 20);
}

/** `./web/` is `web`. */
function shortest(path: string): string {
  return posix.normalize(path).replace(/(?<=.)\/$/, '');
}

function desiredBuild(kind: 'static' | 'process', build: Build, given: Variables): DesiredBuild {
  const { secrets } = build;
  const [directory, output] = [shortest(build.directory), shortest(build.output)];
  const [image, command] = [build.image ?? null, build.command ?? null];
  // Without a command, nothing reads them.
  const variables = command === null ? {} : given;
  const inputs = build.inputs ?? [directory === '.' ? '**' : `${directory}/**`];
  const names = Object.keys(variables).toSorted();
  const decides = [1, kind, image, command, directory, output, inputs.toSorted(), names, sorted(secrets)];
  return {
    image,
    command,
    directory,
    output,
    inputs,
    variables,
    secrets,
    digest: createHash('sha256').update(JSON.stringify(decides)).digest('hex'),
  };
}

function sorted(map: Readonly<Record<string, string>>): [string, string][] {
  return Object.entries(map).toSorted(([one], [other]) => (one < other ? -1 : 1));
}
