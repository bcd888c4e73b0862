import type { Query } from '../../api/contract.ts';
import { exchangeRefusals } from '../../keys/detail/event-words.ts';

export type EventName = NonNullable<Query<'/audit/events'>['event']>;

/** A label for each kind of event. The contract's types ensure that none is missing. */
export const eventWords: Readonly<Record<EventName, string>> = {
  'api_key.created': 'Key created',
  'api_key.narrowed': 'Key narrowed',
  'api_key.rotated': 'Key replaced',
  'api_key.revoked': 'Key revoked',
  'api_key.suspended': 'Key suspended or suspension lifted',
  'api_key.expired': 'Key expired',
  'api_key.exposed': 'Key exposed',
  'api_key.dead_use': 'Inactive key used',
  'api_key.value_erased': 'Key value erased',
  'api_key.trust_changed': 'Trust rules of a key changed',
  'api_key.exchanged': 'ID token exchanged, or exchanged token ended',
  'api_key.exchange_refused': 'Exchange of an ID token refused',
  'api_key.imported': 'Key imported',
  'auth.denied': 'Refused',
  'auth.throttled': 'Address throttled',
  'session.started': 'Signed in',
  'user.passkey_added': 'Passkey created',
  'user.passkey_renamed': 'Passkey renamed',
  'user.passkey_removed': 'Passkey removed',
  'user.passkey_refused': 'Passkey refused',
  'user.passkeys_reset': 'Passkeys reset',
  'user.recovery_codes_created': 'Recovery codes created',
  'user.recovery_code_used': 'Recovery code used',
  'session.ended': 'Signed out',
  'audit.exported': 'Audit log exported',
  'client.connected': 'Client connected',
  'client.revoked': 'Client disconnected',
  'policy.changed': 'Key policy changed',
  'config.access.changed': 'Sign-in settings changed',
  'config.access.reverted': 'Sign-in settings reverted',
  'config.sites.changed': 'Sites configuration changed',
  'config.sites.reverted': 'Sites configuration reverted',
  'config.api-environments.changed': 'Environment policy changed',
  'mcp.tool_called': 'Agent changed something',
  'mcp.approval_decided': 'Agent call approved or refused',
  'mcp.definition_chosen': 'Agent definition chosen for a client',
  'mcp.session_ended': 'Agent session ended',
  'config.agents.changed': 'Agent definition or models for agents changed',
  'config.mcp.changed': 'MCP policy changed',
  'mcp.connection_changed': 'External MCP connection changed',
  'config.mcp.server_changed': 'External MCP server or its tools changed',
  'config.mcp.client_changed': 'MCP client allowed or blocked',
  'config.metadata.changed': 'Metadata links changed',
  'config.signing_keys.changed': 'Signing keys rotated',
  'site.created': 'Site created',
  'site.published': 'Site published',
  'site.rolled_back': 'Site rolled back',
  'site.previewed': 'Site previewed',
  'site.changed': 'Site changed',
  'site.visibility_changed': 'Site made public or private',
  'site.extended': 'Site extended',
  'site.expired': 'Site expired',
  'site.deleted': 'Site deleted',
  'site.restored': 'Site restored',
  'site.purged': 'Site permanently removed',
  'site.taken_down': 'Site taken down',
  'site.put_back': 'Site reinstated',
  'site.grant_issued': 'Browser grant issued',
  'site.grant_refused': 'Browser grant refused',
  'site.grants_ended': 'Browser grants ended',
  'repository.created': 'Repository registered',
  'repository.changed': 'Repository changed',
  'repository.deleted': 'Repository removed',
  'repository.credential_set': 'Repository credential set',
  'repository.credential_removed': 'Repository credential removed',
  'repository.webhook_set': 'Repository webhook set',
  'repository.webhook_removed': 'Repository webhook removed',
  'environment.created': 'Environment created',
  'environment.changed': 'Environment changed',
  'environment.extended': 'Environment lease extended',
  'environment.fell_asleep': 'Environment fell asleep',
  'environment.torn_down': 'Environment teardown began',
  'build.created': 'Build queued',
  'build.cancelled': 'Build cancelled',
  'build.deployed': 'Build deployed',
  'build.failed': 'Build failed',
  'user.created': 'Account created',
  'user.changed': 'Account changed',
  'user.deleted': 'Account deleted',
  'user.signed_out': 'Account signed out everywhere',
  'user.password_reset': 'Password reset',
  'user.password_changed': 'Password changed by its owner',
  'group.created': 'Group created',
  'group.changed': 'Group changed',
  'group.deleted': 'Group deleted',
  'environment.grant_issued': 'Browser grant of an Environment issued',
  'environment.grant_refused': 'Browser grant of an Environment refused',
  'sweep.held': 'Owner sweep held',
};

export function isEventName(name: string): name is EventName {
  return Object.hasOwn(eventWords, name);
}

/** Events that mean different things, by name and reason. */
const wordsByReason: Readonly<Record<string, string>> = {
  'api_key.exchanged ': 'ID token exchanged',
  'api_key.exchanged revoked': 'Exchanged token ended by its job',
  'api_key.exchanged exposed': 'Exchanged token exposed, and ended',
  'api_key.trust_changed added': 'Trust rule added',
  'api_key.trust_changed removed': 'Trust rule removed',
  'user.created first_administrator': 'First administrator created',
};

type Told = { readonly event: string; readonly reason: string | null };

/** A name from an older version is shown unchanged. */
export function eventInWords({ event, reason }: Told): string {
  return wordsByReason[`${event} ${reason ?? ''}`] ?? (isEventName(event) ? eventWords[event] : event);
}

/** Labels of reasons. A refusal has the code of its error instead, which is shown unchanged. */
const reasonWords: Readonly<Record<string, string>> = {
  owner_request: 'By its owner',
  administrator: 'By an administrator',
  self: 'By the key itself',
  owner_deleted: 'With its owner’s account',
  owner_disabled: 'Its owner’s account was disabled',
  owner_enabled: 'Its owner’s account was enabled',
  successor_used: 'Its successor was first used',
  superseded: 'Its successor took over',
  lifetime: 'It expired',
  signed_in_again: 'Signed in again',
  first_administrator: 'During installation',
  too_many: 'Too many owners at once',
  server_added: 'A server was added',
  server_changed: 'A server was changed',
  server_removed: 'A server was deleted',
  tool_accepted: 'A tool was accepted',
  tool_changed: 'The server changed a tool',
  issuer_changed: 'The server named another sign-in',
  connected: 'An account was connected',
  disconnected: 'An account was disconnected',
  broken: 'The server no longer accepts the account',
  definition_added: 'A definition was added',
  definition_changed: 'A definition was changed',
  definition_removed: 'A definition was deleted',
  allowed: 'It was allowed',
  blocked: 'It was blocked',
  approved: 'It was approved',
  refused: 'It was refused',
  link_added: 'A link was added',
  link_changed: 'A link was changed or moved',
  link_removed: 'A link was deleted',
  ...Object.fromEntries(
    Object.entries(exchangeRefusals).map(([reason, words]) => [reason, withCapital(words)]),
  ),
  // The event already says so.
  added: '',
  changed: '',
  removed: '',
  reverted: '',
};

function withCapital(words: string): string {
  return `${words[0]?.toUpperCase()}${words.slice(1)}`;
}

export function reasonInWords(reason: string): string | undefined {
  return reasonWords[reason];
}

/** Labels of actors without a known name. */
export function actorInWords({ event, reason }: Told, kind: string): string {
  if (kind !== 'anonymous') return 'Postern';
  return reason === 'first_administrator' && event === 'user.created'
    ? 'The person who opened the one-time link'
    : 'Unknown';
}

export const outcomeWords = {
  success: ['Done', 'green'],
  denied: ['Refused', 'red'],
  failure: ['Failed', 'yellow'],
} as const;
