import type { ConfigurationFile, Service } from './schema.ts';

/** A valid service that this version of Postern cannot deploy. */
export type Unsupported = { readonly service: string; readonly message: string; readonly fix: string };

/**
 * Reasons why this version or this installation cannot deploy the file. Its Environment gets the status `config_error` with
 * these messages. `hasDatabases`: pass true where only a worker knows.
 */
export function unsupportedIn(file: ConfigurationFile, hasDatabases = true): Unsupported[] {
  return Object.entries(file.services).flatMap(([name, service]) => {
    if (service.postgres !== undefined && !hasDatabases)
      return [
        {
          service: name,
          message: `The service ${name} is a database, and this installation has none for Environments.`,
          fix: 'Ask an administrator to set ENVIRONMENTS_DATABASE_URL, or use a database that runs elsewhere, as an external service.',
        },
      ];
    const said = saidOf(service);
    if (said === undefined) return [];
    const [what, fix] = said;
    return [
      {
        service: name,
        message: `The service ${name} ${what}, which this version of Postern cannot do.`,
        fix,
      },
    ];
  });
}

function saidOf({ build, image, run }: Service): readonly [what: string, fix: string] | undefined {
  if (build?.dockerfile !== undefined)
    return [
      'is built from a Dockerfile',
      'Use build.image and build.command, and start it with run.command.',
    ];
  if (image !== undefined)
    return ['runs a ready image', 'Use build.image and run.command, or an external service.'];
  if (run !== undefined && run.replicas > 1)
    return [`runs ${run.replicas} processes`, 'Remove run.replicas: a service has one process.'];
  return undefined;
}
