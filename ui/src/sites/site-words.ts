import type { Schemas } from '../api/contract.ts';

export type Site = Schemas['Site'];

const soonMs = 7 * 86_400_000;

/** The state of a site as a badge: label and colour. The label alone is sufficient. */
export function standingOf(site: Site, now: number): readonly [label: string, color: string] {
  if (site.status === 'active' && endsBefore(site, now)) return ['Expired', 'red'];
  if (site.status === 'active' && endsBefore(site, now + soonMs)) return ['Expires soon', 'yellow'];
  return words[site.status];
}

const words: Readonly<Record<Site['status'], readonly [string, string]>> = {
  active: ['Live', 'green'],
  empty: ['No version yet', 'gray'],
  expired: ['Expired', 'red'],
  taken_down: ['Taken down', 'red'],
  deleted: ['Deleted', 'gray'],
};

function endsBefore({ expiresAt }: Site, at: number): boolean {
  return expiresAt !== null && Date.parse(expiresAt) <= at;
}

/** The owner of a site, as shown to the person `me`. */
export function ownerWords({ owner }: Site, me: string | undefined): string {
  if (owner.kind === 'user') return owner.id === me ? 'You' : (owner.name ?? 'Unknown user');
  return `Key ${owner.name ?? owner.id}`;
}

/** The URL to share: the link of a private site, at which its owner gets access; the address of a public one. */
export function addressOf({ visibility, url, link }: Site): string {
  return visibility === 'private' ? link : url;
}

export function withoutScheme(url: string): string {
  return url.replace(/^https?:\/\//, '').replace(/\/$/, '');
}
