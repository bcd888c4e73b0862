import { LRUCache } from 'lru-cache';
import { readServiceLabel } from '../../features/environments/serving/serving.ts';
import { visibilityOfLabel } from '../../features/sites/sites.ts';

/**
 * Which site, or which service of an Environment, a request is for, by its Host header only (threats T24, T35). It is compared exactly with the configured
 * content host: no suffix rules and no normalisation beyond letter case, so no two hosts are one origin.
 */
export type HostName =
  | {
      readonly kind: 'site';
      readonly label: string;
      /** The visibility by the label's form; there may be no such site any more. */
      readonly visibility: 'public' | 'private';
      readonly host: string;
    }
  | {
      readonly kind: 'environment';
      /** The first part of the host name. */
      readonly name: string;
      readonly service: string;
      /** Of the Environment, by its form; there may be no such Environment. */
      readonly label: string;
      readonly host: string;
    }
  /** The content host itself, or a name below it that cannot be a label. */
  | { readonly kind: 'nobody' }
  | { readonly kind: 'foreign' };

const foreign: HostName = { kind: 'foreign' };
const nobody: HostName = { kind: 'nobody' };

/** Number of cached hosts, and the length up to which one is cached: the maximum length of a DNS name with a port. */
const maxKnown = 10_000;
const maxKnownLength = 260;

export function hostReader(contentUrl: string): (sent: readonly string[]) => HostName {
  const { host } = new URL(contentUrl);
  const suffix = `.${host}`;
  const known = new LRUCache<string, HostName>({ max: maxKnown });

  function read(name: string): HostName {
    // Browsers send lower case; other clients may not, and host names have no case (RFC 3986 section 3.2.2).
    const lower = name.toLowerCase();
    if (lower === host) return nobody;
    if (!lower.endsWith(suffix)) return foreign;
    const label = lower.slice(0, -suffix.length);
    // No form is part of another one: a label of a site has at most one hyphen, as its second character.
    if (label === '' || label.includes('.')) return foreign;
    const visibility = visibilityOfLabel(label);
    if (visibility !== undefined) return { kind: 'site', label, visibility, host: lower };
    const found = readServiceLabel(label);
    return found === undefined ? nobody : { kind: 'environment', name: label, ...found, host: lower };
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
