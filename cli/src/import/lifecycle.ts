import { parse } from 'yaml';
import { asList, asMap, asText, noCounterpart, type Untranslated } from './host-rules.ts';

/** A postern.yaml as data, and what of the other file it does not say. */
export type Imported = {
  readonly file: { readonly version: 1; readonly environment?: Fields; readonly services: Fields };
  readonly untranslated: readonly Untranslated[];
};

type Fields = Readonly<Record<string, unknown>>;
type Add = (where: string, why: string) => void;

/** The file lifecycle.yaml of the older system, schema 1.0.0. @throws Error when it is not YAML */
export function fromLifecycle(text: string): Imported {
  const given = asMap(parse(text));
  const untranslated: Untranslated[] = [];
  const add: Add = (where, why) => void untranslated.push({ where, why });
  const services: Record<string, unknown> = {};
  const all = asList(given['services']).map(asMap);
  const repository = mostCommon(all.map((one) => asText(asMap(one['github'])['repository'])));
  for (const one of all) {
    const name = nameOf(one['name']);
    const where = `services.${String(one['name'])}`;
    if (name === undefined) add(where, 'The name cannot be that of a service: letters, digits and -.');
    else {
      if (name !== one['name']) add(where, `The service is called ${name}.`);
      const service = serviceOf(one, where, repository, add);
      if (service !== undefined) services[name] = service;
    }
  }
  const environment = environmentOf(asMap(given['environment']), add);
  dropUnknown(services, add);
  for (const name of Object.keys(given))
    if (!['version', 'environment', 'services'].includes(name)) add(name, noCounterpart);
  return {
    file: { version: 1, ...(Object.keys(environment).length === 0 ? {} : { environment }), services },
    untranslated,
  };
}

function environmentOf(given: Fields, add: Add): Fields {
  for (const [name, value] of Object.entries(given)) {
    if (name === 'optionalServices' && asList(value).length > 0)
      add(
        'environment.optionalServices',
        'Every service of postern.yaml is active unless the request to create says otherwise.',
      );
    else if (!['ignoreFiles', 'defaultServices', 'optionalServices'].includes(name))
      add(`environment.${name}`, noCounterpart);
  }
  const ignoreFiles = asList(given['ignoreFiles']);
  return ignoreFiles.length === 0 ? {} : { ignoreFiles };
}

/** The kinds of services, and how many of their fields have a counterpart. */
function serviceOf(
  given: Fields,
  where: string,
  repository: string | undefined,
  add: Add,
): Fields | undefined {
  const { github, docker, externalHttp, ...rest } = given;
  const order = [
    ...asList(given['requires']).map((one) => nameOf(asMap(one)['name'])),
    ...asList(given['deploymentDependsOn']).map(nameOf),
  ];
  const requires = [...new Set(order.filter((name) => name !== undefined))];
  const ordered = requires.length === 0 ? {} : { requires };
  if (externalHttp !== undefined) {
    const address = asText(asMap(externalHttp)['defaultPublicUrl']);
    if (address === undefined || address.includes('{{')) {
      add(where, 'The address of an external service must be written out.');
      return undefined;
    }
    return { external: { url: /^https?:/.test(address) ? address : `https://${address}` } };
  }
  if (docker !== undefined) {
    const { dockerImage, defaultTag = 'latest', deployment, ...app } = asMap(docker);
    add(where, 'This version of Postern does not deploy ready images.');
    return {
      image: `${String(dockerImage)}:${String(defaultTag)}`,
      ...processOf(app, asMap(deployment), where, add),
      ...ordered,
    };
  }
  if (github !== undefined) return ofRepository(asMap(github), where, repository, ordered, add);
  const [kind] = Object.keys(rest).filter((name) => otherKinds[name] !== undefined);
  add(where, kind === undefined ? noCounterpart : (otherKinds[kind] ?? noCounterpart));
  return undefined;
}

const otherKinds: Readonly<Record<string, string>> = {
  helm: 'Postern deploys no Helm charts.',
  codefresh: 'Postern starts no pipelines of other systems.',
  configuration: 'Write its values as env, where they are used.',
  auroraRestore: 'A service postgres with a seed is a database of the Environment.',
};

function ofRepository(
  given: Fields,
  where: string,
  repository: string | undefined,
  ordered: Fields,
  add: Add,
): Fields | undefined {
  if (given['repository'] !== repository) {
    add(
      where,
      `It is in ${String(given['repository'])}. Every service of a postern.yaml comes from one repository.`,
    );
    return undefined;
  }
  const docker = asMap(given['docker']);
  if (docker['init'] !== undefined) add(`${where} init`, noCounterpart);
  const { dockerfilePath = 'Dockerfile', ...app } = asMap(docker['app']);
  add(
    where,
    'This version of Postern builds no Dockerfiles: write build.image, build.command and run.command instead.',
  );
  return {
    build: { dockerfile: String(dockerfilePath).replace(/^\.?\//, '') },
    ...processOf(app, asMap(given['deployment']), where, add),
    ...ordered,
  };
}

/** What the process, its variables and its address have in both files. */
function processOf(app: Fields, deployment: Fields, where: string, add: Add): Fields {
  const [port, ...otherPorts] = asList(app['ports']).map(Number);
  if (port === undefined) add(`${where} ports`, 'The port is a guess: 8080.');
  if (otherPorts.length > 0) add(`${where} ports`, 'A process has one port.');
  // Arguments are separated by %%SPLIT%% there.
  const words = [asText(app['command']), ...(asText(app['arguments']) ?? '').split('%%SPLIT%%')].filter(
    Boolean,
  );
  const readiness = asMap(deployment['readiness']);
  const health = asText(asMap(readiness['httpGet'])['path']);
  const resources = resourcesOf(asMap(deployment['resource']), where, add);
  const { env, secrets } = variablesOf(asMap(app['env']), where, add);
  for (const name of Object.keys(deployment))
    if (!['public', 'readiness', 'resource'].includes(name))
      add(`${where} deployment.${name}`, noCounterpart);
  return {
    run: {
      ...(words.length === 0 ? {} : { command: words.join(' ') }),
      port: port ?? 8080,
      ...(health === undefined ? {} : { health }),
      ...(Object.keys(resources).length === 0 ? {} : { resources }),
    },
    ...(Object.keys(env).length === 0 ? {} : { env }),
    ...(Object.keys(secrets).length === 0 ? {} : { secrets }),
    ...(deployment['public'] === false ? { exposed: false } : {}),
  };
}

function resourcesOf(given: Fields, where: string, add: Add): Fields {
  const resources: Record<string, unknown> = {};
  for (const [name, form] of [
    ['cpu', /^[1-9]\d{0,5}m$|^\d+(?:\.\d+)?$/],
    ['memory', /^[1-9]\d{0,5}[MG]i$/],
  ] as const) {
    const { limit, request } = asMap(given[name]);
    const value = limit ?? request;
    if (value === undefined) continue;
    const text = typeof value === 'number' ? String(value) : (asText(value) ?? '');
    if (form.test(text)) resources[name] = /m$|i$/.test(text) ? text : Number(text);
    else add(`${where} deployment.resource.${name}`, 'The amount is written in another way.');
  }
  return resources;
}

function variablesOf(given: Fields, where: string, add: Add) {
  const env: Record<string, string> = {};
  const secrets: Record<string, string> = {};
  for (const [name, value] of Object.entries(given)) {
    const text = String(value);
    const at = `${where} env.${name}`;
    const [, path] = /^\{\{(?:aws|gcp|barbican|vault|onepassword):([^{}]+)\}\}$/.exec(text.trim()) ?? [];
    if (!/^(?!PORT$)[A-Za-z_]\w*$/.test(name))
      add(at, 'Postern sets PORT; other names have letters, digits and _.');
    else if (path !== undefined) {
      secrets[name] = path
        .toLowerCase()
        .replaceAll(/[^a-z0-9]+/g, '-')
        .replaceAll(/^-|-$/g, '')
        .slice(-63)
        .replace(/^-/, '');
      add(at, `Store the value as the secret ${secrets[name]}.`);
    } else {
      const translated = withReferences(text);
      if (translated.includes('{{'))
        add(at, 'The value uses a template variable that Postern does not have.');
      else env[name] = translated;
    }
  }
  return { env, secrets };
}

const ofEnvironment: Readonly<Record<string, string>> = { buildUUID: 'name', branchName: 'branch' };

/** Templates of Mustache as references. A public URL has a scheme here, and has none there. */
function withReferences(text: string): string {
  return text
    .replaceAll('${', () => '$${')
    .replaceAll(
      /(https?:\/\/)?\{\{\{?\s*([\w-]+)\s*\}\}\}?/g,
      (whole, scheme: string | undefined, variable: string) => {
        const [, service, field] = /^(.+)_(publicUrl|internalHostname|sha)$/.exec(variable) ?? [];
        const name = nameOf(service);
        const environment = ofEnvironment[variable];
        if (environment !== undefined) return `${scheme ?? ''}\${environment.${environment}}`;
        if (field === 'sha') return `${scheme ?? ''}\${environment.sha}`;
        if (name === undefined) return whole;
        return field === 'publicUrl'
          ? `\${services.${name}.url}`
          : `${scheme ?? ''}\${services.${name}.host}`;
      },
    );
}

/** A reference or a requirement to a service that was left out would make the file invalid. */
function dropUnknown(services: Record<string, unknown>, add: Add): void {
  for (const [name, given] of Object.entries(services)) {
    const service: Record<string, unknown> = { ...asMap(given) };
    const env = { ...asMap(service['env']) };
    for (const [variable, value] of Object.entries(env)) {
      const used = [...String(value).matchAll(/(?<!\$)\$\{services\.([\w-]+)\.(\w+)\}/g)];
      const isWhole = used.every(([, other = '', field]) => {
        const target = asMap(services[other]);
        return field === 'host'
          ? target['run'] !== undefined
          : other in services && target['exposed'] !== false;
      });
      if (isWhole) continue;
      delete env[variable];
      add(
        `services.${name} env.${variable}`,
        'The value needs an address that the other service does not have.',
      );
    }
    const requires = asList(service['requires']).filter((other) => String(other) in services);
    delete service['requires'];
    delete service['env'];
    services[name] = {
      ...service,
      ...(Object.keys(env).length === 0 ? {} : { env }),
      ...(requires.length === 0 ? {} : { requires }),
    };
  }
}

function nameOf(given: unknown): string | undefined {
  const name = typeof given === 'string' ? given.toLowerCase().replaceAll('_', '-') : '';
  return /^[a-z](?:[a-z0-9-]{0,38}[a-z0-9])?$/.test(name) ? name : undefined;
}

function mostCommon(values: readonly (string | undefined)[]): string | undefined {
  const counts = new Map<string, number>();
  for (const value of values) if (value !== undefined) counts.set(value, (counts.get(value) ?? 0) + 1);
  return [...counts].toSorted(([, one], [, other]) => other - one)[0]?.[0];
}
