import { LRUCache } from 'lru-cache';
import { visibilityOfLabel } from '../../features/sites/sites.ts';

/**
 * Which site a request is for, by its Host header and nothing else (threats T24, T35). Compared with the configured
 * content host exactly: no suffix rules, no normalising beyond letter case, so no two hosts are one origin.
 */
export type HostName =
  | {
      readonly kind: 'site';
      readonly label: string;
      /** What the form of the label says; what stands there may be gone. */
      readonly visibility: 'public' | 'private';
      readonly host: string;
    }
  /** The content host itself, or below it what cannot be anybody's label. */
  | { readonly kind: 'nobody' }
  | { readonly kind: 'foreign' };

const foreign: HostName = { kind: 'foreign' };
const nobody: HostName = { kind: 'nobody' };

/** Hosts, and the length up to which one is remembered: as long as a DNS name may be, with a port. */
const mostKnown = 10_000;
const longestKnown = 260;

export function hostReader(contentUrl: string): (sent: readonly string[]) => HostName {
  const { host } = new URL(contentUrl);
  const suffix = `.${host}`;
  const known = new LRUCache<string, HostName>({ max: mostKnown });

  function read(name: string): HostName {
    // Browsers send lower case; other clients may not, and host names have no case (RFC 3986 section 3.2.2).
    const lower = name.toLowerCase();
    if (lower === host) return nobody;
    if (!lower.endsWith(suffix)) return foreign;
    const label = lower.slice(0, -suffix.length);
    if (label === '' || label.includes('.')) return foreign;
    const visibility = visibilityOfLabel(label);
    return visibility === undefined ? nobody : { kind: 'site', label, visibility, host: lower };
  }

  return (sent) => {
    const [name] = sent;
    if (name === undefined || sent.length > 1) return foreign;
    const there = known.get(name);
    if (there !== undefined) return there;
    const found = read(name);
    if (name.length <= longestKnown) known.set(name, found);
    return found;
  };
}
