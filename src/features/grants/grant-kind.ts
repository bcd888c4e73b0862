import { minute } from '../../core/clock.ts';

/**
 * Differences between the grants of private sites and those of Environments. Each kind has its own cookie, names in the
 * key-value store, and signature keys, so a code or a grant of one kind never opens the other.
 */
export type GrantKind = {
  readonly name: 'site' | 'environment';
  /** The noun for it in texts. */
  readonly noun: 'site' | 'Environment';
  /** Which of the two addresses its hosts are below, and the setting with that address. */
  readonly contentUrl: 'contentUrl' | 'environmentsContentUrl';
  readonly contentSetting: 'SITES_CONTENT_URL' | 'ENVIRONMENTS_CONTENT_URL';
  /** Names the keys that are derived from GRANT_SECRET. */
  readonly secretName: string;
  /** In front of the names of codes and grants in the key-value store. */
  readonly space: string;
  /** Maximum lifetime of a grant, in milliseconds, whichever process wrote it (threat T12). */
  readonly maxMs: number;
  readonly switchKey: string;
  /** Before the id of what the grant opens. */
  readonly stateSpace: string;
  readonly cookie: string;
  /** The page of the web app that decides, and the one that permanent links lead to. */
  readonly openPath: string;
  readonly linkPath: string;
  readonly refusedEvent: 'site.grant_refused' | 'environment.grant_refused';
};

export const siteGrants: GrantKind = {
  name: 'site',
  noun: 'site',
  contentUrl: 'contentUrl',
  contentSetting: 'SITES_CONTENT_URL',
  secretName: 'postern-grant',
  space: '',
  maxMs: 5 * minute,
  switchKey: 'sites:switch',
  stateSpace: 'site',
  cookie: '__Host-postern_grant',
  openPath: '/sites/open',
  linkPath: '/s/',
  refusedEvent: 'site.grant_refused',
};

export const environmentGrants: GrantKind = {
  name: 'environment',
  noun: 'Environment',
  contentUrl: 'environmentsContentUrl',
  contentSetting: 'ENVIRONMENTS_CONTENT_URL',
  secretName: 'postern-environment-grant',
  space: 'environment-',
  // The maximum of `grantMinutes` in the Environment policy.
  maxMs: 60 * minute,
  switchKey: 'environments:switch',
  stateSpace: 'environment',
  cookie: '__Host-postern_environment_grant',
  openPath: '/environments/open',
  linkPath: '/e/',
  refusedEvent: 'environment.grant_refused',
};

export function stateKey({ stateSpace }: GrantKind, targetId: string): string {
  return `${stateSpace}:{${targetId}}:state`;
}
