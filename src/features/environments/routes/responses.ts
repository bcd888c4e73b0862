import { timestamp, timestampOrNull } from '../../../core/clock.ts';
import {
  type Creator,
  type Environment,
  type EnvironmentService,
  shownStatus,
} from '../environment/environment.ts';
import { didYouMean } from '../../configuration-file/configuration-file.ts';
import type { EnvironmentAddresses } from '../environment/addresses.ts';
import { type MetadataLink, renderLinks } from '../metadata-links/metadata-link.ts';

/** Display names of creators. */
export type CreatorNames = (creators: readonly Creator[]) => Promise<ReadonlyMap<string, string>>;

/** Metadata links of an Environment, or of one of its deploys with that deploy's branch and commit. */
export function linksOf(
  {
    id,
    uuid,
    repository,
    branch,
    sha,
    label,
  }: Pick<Environment, 'id' | 'uuid' | 'repository' | 'branch' | 'sha' | 'label'>,
  services: readonly EnvironmentService[],
  { addresses, links }: { readonly addresses: EnvironmentAddresses; readonly links: readonly MetadataLink[] },
) {
  const first = services.find(({ isExposed }) => isExposed);
  const url = first === undefined ? addresses.linkOf(id) : addresses.urlOf(first.name, label);
  const urls = new Map(services.map((service) => [service.name, urlOf(service, { addresses, label })]));
  return renderLinks(links, { id, name: uuid, repository, branch, sha: sha ?? '', url, services: urls });
}

/** URL of a service. Null: it has no web address. */
function urlOf(
  { name, isExposed, url }: EnvironmentService,
  { addresses, label }: { readonly addresses: EnvironmentAddresses; readonly label: string },
): string | null {
  return url ?? (isExposed ? addresses.urlOf(name, label) : null);
}

/** Names of chosen services that are not in postern.yaml. Empty until Postern has read the file. */
function unknownChoices({ services: choices }: Environment, services: readonly EnvironmentService[]) {
  if (services.length === 0) return [];
  const names = services.map(({ name }) => name);
  return choices
    .filter(({ name }) => !names.includes(name))
    .map(({ name }) => {
      const hint = didYouMean(name, names);
      const words = `postern.yaml has no service ${name}, so the choice for it does nothing.`;
      return hint === null ? words : `${words} ${hint}`;
    });
}

export function toEnvironmentResponse(
  environment: Environment,
  services: readonly EnvironmentService[],
  {
    addresses,
    links,
    names,
    namespace,
  }: {
    readonly addresses: EnvironmentAddresses;
    readonly links: readonly MetadataLink[];
    readonly names: ReadonlyMap<string, string>;
    /** Namespace of the Environments. Null: they do not run on Kubernetes. */
    readonly namespace: string | null;
  },
) {
  const { id, uuid, branch, sha, label, creator } = environment;
  const isActive = ({ status }: EnvironmentService) => status !== 'inactive';
  return {
    id,
    uuid,
    ...shownStatus(environment),
    namespace,
    trigger: environment.trigger,
    repository: environment.repository,
    branch,
    sha,
    access: environment.access,
    deployEnabled: environment.deployEnabled,
    // The default until Postern has read postern.yaml.
    autoTrack: environment.autoTrack ?? true,
    trackDefaultBranches: environment.trackDefaultBranches,
    expiresAt: timestamp(environment.expiresAt),
    deletedAt: timestampOrNull(environment.deletedAt),
    activeServiceCount: services.filter(isActive).length,
    hasReadyActiveService: services.some(({ status }) => status === 'ready'),
    createdBy: { ...creator, name: names.get(creator.id) ?? null },
    createdAt: timestamp(environment.createdAt),
    updatedAt: timestamp(environment.updatedAt),
    warnings: unknownChoices(environment, services),
    services: services.map((service) => ({
      name: service.name,
      kind: service.kind,
      status: service.status,
      url: urlOf(service, { addresses, label }),
      reason: service.reason,
      active: isActive(service),
    })),
    links: linksOf(environment, services, { addresses, links }),
    link: addresses.linkOf(id),
    statusUrl: addresses.statusUrlOf(id),
  };
}
