import type { Schemas } from '../../api/contract.ts';

type Event = Schemas['AuditEvent'];

/** Labels of events, for the owner of the key. An event without a label is shown by its name. */
const deeds: Readonly<Record<string, string>> = {
  'api_key.created': 'Created',
  'api_key.narrowed': 'Renamed or narrowed',
  'api_key.rotated': 'A replacement was created',
  'api_key.revoked': 'Revoked',
  'api_key.suspended': 'Suspended, because the account was disabled',
  'api_key.expired': 'Expired',
  'api_key.exposed': 'Seen where no key may appear',
  'api_key.dead_use': 'Used after it stopped working, and refused',
  'api_key.imported': 'Imported from an older installation',
  'api_key.value_erased': 'The value was erased for ever',
  'api_key.trust_changed': 'A trust rule was added',
};

/** Why an ID token was not exchanged, as the end of a sentence about it. */
export const exchangeRefusals: Readonly<Record<string, string>> = {
  unknown_issuer: 'the key policy does not list its issuer',
  bad_signature: 'no key of its issuer verifies its signature',
  stale: 'it has expired, is not valid yet, or is too old',
  audience: 'its audience is not exactly this installation',
  claim: 'no trust rule accepts its claims',
  replayed: 'it was exchanged before',
  key_inactive: 'the key is not active, or the policy disables service keys',
};

/** What the key did to a site; its id follows. */
const siteDeeds: Readonly<Record<string, string>> = {
  'site.created': 'Created the site',
  'site.published': 'Published a version of the site',
  'site.rolled_back': 'Rolled back the site',
  'site.changed': 'Changed the site',
  'site.extended': 'Extended the site',
  'site.deleted': 'Deleted the site',
  'site.restored': 'Restored the site',
};

/** What the key did to an Environment; a link to it follows. */
const environmentDeeds: Readonly<Record<string, string>> = {
  'environment.created': 'Created the Environment',
  'environment.changed': 'Changed the Environment',
  'environment.extended': 'Extended the lease of the Environment',
  'environment.torn_down': 'Tore down the Environment',
  'build.created': 'Queued a deploy of the Environment',
  'build.cancelled': 'Cancelled a deploy of the Environment',
};

export function deedOf(event: Event): string {
  const { count } = event.details;
  const times = typeof count === 'number' && count > 1 ? `, ${count} times` : '';
  if (event.event === 'auth.denied')
    return `A request was refused: ${event.reason ?? 'unknown'} at ${event.target.id}${times}`;
  if (event.event === 'api_key.rotated' && event.reason === 'successor_used')
    return 'The replacement was first used; the old key expires soon';
  if (event.event === 'api_key.suspended' && event.reason === 'owner_enabled')
    return 'No longer suspended: the account may be used again';
  if (event.event === 'api_key.suspended' && event.reason === 'owner_without_role')
    return 'Suspended, because the account lost the role user';
  if (event.event === 'api_key.trust_changed' && event.reason === 'removed')
    return 'A trust rule was removed';
  if (event.event === 'api_key.exchanged') return exchangeOf(event);
  if (event.event === 'api_key.exchange_refused') {
    // Only administrators read the reason.
    const why = event.reason === null ? '' : `: ${exchangeRefusals[event.reason] ?? event.reason}`;
    return `An ID token was refused${why}${times}`;
  }
  const siteDeed = siteDeeds[event.event];
  if (siteDeed !== undefined) return `${siteDeed} ${event.target.id}`;
  return environmentDeeds[event.event] ?? `${deeds[event.event] ?? event.event}${times}`;
}

function exchangeOf({ reason, details: { repository, ref } }: Event): string {
  if (reason === 'exposed') return 'A token of a pipeline was seen where no key may appear, and ended';
  const whose = typeof repository === 'string' ? ` of ${repository}` : '';
  if (reason === 'revoked') return `A pipeline${whose} ended its token`;
  return `A pipeline${whose}${typeof ref === 'string' ? ` at ${ref}` : ''} got a token`;
}

/** The Environment that the key did something to. */
export function environmentOf({ event, target }: Event): string | undefined {
  return event in environmentDeeds ? target.id : undefined;
}

/** Who changed the key. Empty if the key itself did it: in a refused request, or as a service key. */
export function whoOf({ actor, event }: Event): string {
  if (event === 'auth.denied' || actor.kind === 'service_key') return '';
  if (actor.kind === 'system') return 'by Postern';
  if (actor.kind === 'anonymous') return '';
  return actor.name === null ? '' : `by ${actor.name}`;
}

export function isBad({ outcome, event, reason }: Event): boolean {
  const isExposed = event === 'api_key.exposed' || (event === 'api_key.exchanged' && reason === 'exposed');
  return outcome !== 'success' || isExposed;
}
