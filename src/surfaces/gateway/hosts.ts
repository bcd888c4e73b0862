import { keepLastUsed } from '../../platform/last-used.ts';
import { readServiceLabel } from '../../features/environments/environments.ts';
import { visibilityOfLabel } from '../../features/sites/sites.ts';

/**
 * Which site, or which service of an Environment, a request is for, by its Host header only (threats T24, T35). It is
 * compared exactly with the two configured content hosts, which may be one: no suffix rules and no normalisation beyond
 * letter case, so no two hosts are one origin. Where they differ, each serves its own labels only.
 */
export type HostName =
  | {
      readonly kind: 'site';
      readonly label: string;
      /** The visibility by the label's form; the site may no longer exist. */
      readonly visibility: 'public' | 'private';
      readonly host: string;
    }
  | {
      readonly kind: 'environment';
      /** The first part of the host name. */
      readonly name: string;
      readonly service: string;
      /** Label in the form of an Environment's; there may be no such Environment. */
      readonly label: string;
      readonly host: string;
    }
  /** A content host itself, or a name below it that cannot be a label of it. */
  | { readonly kind: 'nobody' }
  | { readonly kind: 'foreign' };

const foreign: HostName = { kind: 'foreign' };
const nobody: HostName = { kind: 'nobody' };

/** Number of cached hosts, and the length up to which one is cached: the maximum length of a DNS name with a port. */
const maxKnown = 10_000;
const maxKnownLength = 260;

export function hostReader(urls: {
  readonly contentUrl: string;
  readonly environmentsContentUrl: string;
}): (sent: readonly string[]) => HostName {
  const sitesHost = new URL(urls.contentUrl).host;
  const environmentsHost = new URL(urls.environmentsContentUrl).host;
  const known = keepLastUsed<HostName>(maxKnown);

  function read(name: string): HostName {
    // Browsers send lower case; other clients may not, and host names have no case (RFC 3986 section 3.2.2).
    const lower = name.toLowerCase();
    if (lower === sitesHost || lower === environmentsHost) return nobody;
    const ofSite = nameBelow(sitesHost, lower);
    const ofEnvironment = nameBelow(environmentsHost, lower);
    if (ofSite === '' && ofEnvironment === '') return foreign;
    // No form is part of another one: a label of a site has at most one hyphen, as its second character.
    const visibility = visibilityOfLabel(ofSite);
    if (visibility !== undefined) return { kind: 'site', label: ofSite, visibility, host: lower };
    const found = readServiceLabel(ofEnvironment);
    return found === undefined ? nobody : { kind: 'environment', name: ofEnvironment, ...found, host: lower };
  }

  return (sent) => {
    const [name] = sent;
    if (name === undefined || sent.length > 1) return foreign;
    const there = known.get(name);
    if (there !== undefined) return there;
    const found = read(name);
    if (name.length <= maxKnownLength) known.set(name, found);
    return found;
  };
}

/** The only part of `name` in front of `host`; empty when there is none, or more than one. */
function nameBelow(host: string, name: string): string {
  const label = name.endsWith(`.${host}`) ? name.slice(0, -host.length - 1) : '';
  return label.includes('.') ? '' : label;
}
