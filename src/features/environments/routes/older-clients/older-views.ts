import type { Caller } from '../../../../core/caller.ts';
import { AppError } from '../../../../core/errors.ts';
import type { Deploys } from '../../deploys/deploys.ts';
import type { ServiceLog } from '../../deploys/log.ts';
import type { Environment } from '../../environment/environment.ts';
import type { Lifecycle } from '../../lifecycle/lifecycle.ts';
import type { MetadataLinks } from '../../metadata-links/metadata-links.ts';
import type { EnvironmentReading } from '../../lifecycle/reading.ts';
import type { EnvironmentAddresses } from '../../environment/addresses.ts';
import { linksOf, toEnvironmentResponse } from '../responses.ts';
import {
  isBuildOf,
  toBuildJob,
  toBuildJobLog,
  toOlderBuild,
  toOlderMetadata,
  toServiceOverrides,
  type Viewed,
} from './older-shapes.ts';

/** Maximum builds of a service in one response. */
const maxJobs = 100;
/** Maximum characters of a log in one response, counted from its end. */
const maxLogCharacters = 2 ** 20;
const linesAtOnce = 1_000;

export type OlderViews = ReturnType<typeof createOlderViews>;

/** Views for clients of the older system. They use the views of other clients, so the same callers see them. */
export function createOlderViews(deps: {
  readonly lifecycle: Pick<Lifecycle, 'find' | 'findRow'>;
  readonly reading: Pick<EnvironmentReading, 'services'>;
  readonly deploys: Pick<Deploys, 'get' | 'list' | 'logs'>;
  readonly metadataLinks: Pick<MetadataLinks, 'list'>;
  readonly addresses: EnvironmentAddresses;
}) {
  const { lifecycle, reading, deploys, metadataLinks, addresses } = deps;

  async function viewed(caller: Caller, environment: Environment): Promise<Viewed> {
    const { id } = environment;
    const [services, newest] = await Promise.all([
      reading.services([id]),
      deploys.list(caller, { environmentId: id }, 1, 1),
    ]);
    // Metadata links have a separate route.
    const context = { addresses, links: [], names: new Map(), namespace: null };
    const row = toEnvironmentResponse(environment, services.get(id) ?? [], context);
    return { environment, row, steps: newest.items[0]?.steps ?? [] };
  }
  const build = async (caller: Caller, environment: Environment) =>
    toOlderBuild(await viewed(caller, environment));

  return {
    build,
    async findBuild(caller: Caller, idOrName: string) {
      return await build(caller, await lifecycle.findRow(caller, idOrName));
    },
    async serviceOverrides(caller: Caller, environment: Environment) {
      return toServiceOverrides(await viewed(caller, environment));
    },
    async metadata(caller: Caller, idOrName: string) {
      const environment = await lifecycle.findRow(caller, idOrName);
      const [services, links] = await Promise.all([reading.services([environment.id]), metadataLinks.list()]);
      const own = services.get(environment.id) ?? [];
      // Rendered one by one, because an Environment does not show every link.
      const shown = links.flatMap((link) =>
        linksOf(environment, own, { addresses, links: [link] }).map((one) => ({ ...one, id: link.id })),
      );
      return toOlderMetadata(shown);
    },

    /** Lists jobs, newest first. */
    async jobs(caller: Caller, idOrName: string, service: string) {
      const environment = await lifecycle.find(caller, idOrName);
      const { items } = await deploys.list(caller, { environmentId: environment.id }, 1, maxJobs);
      return items.flatMap(({ deploy, steps }) =>
        steps.filter((step) => isBuildOf(service, step)).map((step) => toBuildJob(environment, deploy, step)),
      );
    },
    /** @throws AppError build_not_found, also for a build of another Environment or service */
    async jobLog(caller: Caller, idOrName: string, service: string, deployId: string) {
      const environment = await lifecycle.find(caller, idOrName);
      const { deploy, steps } = await deploys.get(caller, deployId);
      const step = steps.find((one) => isBuildOf(service, one));
      if (deploy.environmentId !== environment.id || step === undefined)
        throw new AppError('build_not_found');
      const { logs } = await (await deploys.logs(caller, deployId)).look();
      const log = logs.find((one) => one.service === service);
      return toBuildJobLog(deploy, step, log === undefined ? '' : await endOf(log));
    },
  };
}

/** Returns as many whole lines as fit, from the end. */
async function endOf({ read }: ServiceLog): Promise<string> {
  let text = '';
  for (let after = 0; ; ) {
    const lines = await read(after, linesAtOnce);
    const last = lines.at(-1);
    if (last === undefined) return text;
    after = last.id;
    text += lines.map((line) => `${line.text}\n`).join('');
    if (text.length > maxLogCharacters)
      text = text.slice(text.indexOf('\n', text.length - maxLogCharacters - 1) + 1);
  }
}
