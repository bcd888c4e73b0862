/**
 * Every event that the audit log can contain (contract 9), with its description in docs/reference/events.md. The list is
 * closed: an event that is not here does not compile.
 */
export const auditEvents = {
  'api_key.created': 'A key was created.',
  'api_key.narrowed': 'A key was renamed, or its scopes, repositories or lifetime were reduced.',
  'api_key.rotated':
    'Written twice: when a successor was created for a key, which sets the deadline of the key; and, with reason `successor_used`, when the successor was first used and the grace began.',
  'api_key.revoked': 'A key was revoked by a person, by itself, or because its owner was deleted.',
  'api_key.suspended':
    'A key was suspended because its owner is disabled (reason `owner_disabled`) or lacks the role that lets a person use Postern (`owner_without_role`), or the suspension was lifted (`owner_enabled`).',
  'api_key.expired': 'A key reached its expiry.',
  'api_key.exposed':
    'A live key was found where no key may be: in a URL (reason `credential_in_url`) or in an upload (`credential_in_content`).',
  'api_key.dead_use': 'A revoked, expired or superseded key was used; one event per key and minute.',
  'api_key.value_erased':
    'The value of a service key was erased. The key became federated, and no value of it is accepted again.',
  'api_key.trust_changed':
    'A service key got a trust rule after its creation (reason `added`) or lost one (`removed`); `details.rule` has it.',
  'api_key.exchanged':
    'A pipeline exchanged an ID token for a token of a service key; `details` has its issuer, repository, ref and run. Or such a token was ended before its time, by itself (reason `revoked`) or because it was found where no key may be (`exposed`).',
  'api_key.exchange_refused':
    'An ID token was not exchanged, with the failed check as reason. The first refusal is written within 5 seconds. Repetitions are counted in one event per minute, which has the last ten requests in `details.requestIds`.',
  'api_key.imported': 'A key record of an older deployment was imported.',
  'auth.denied':
    'A request was refused, with the error code as reason, or a sign-in was refused, with the reason `wrong_password`, `wrong_recovery_code`, `passkey_refused` (nobody has this passkey), `account_disabled` or `throttled`. The first refusal is written within 5 seconds. Repetitions are counted in one event per minute, which has the last ten requests in `details.requestIds`.',
  'auth.throttled':
    'An address sent too many invalid keys or access tokens, and was throttled. A throttled sign-in by password is `auth.denied`.',
  'session.started': 'A person signed in.',
  'session.ended':
    'A session ended by a sign-out, by a new sign-in, or from the list of sessions. A session that expires leaves no event.',
  'user.passkey_added': 'A person created a passkey.',
  'user.passkey_renamed': 'A person renamed a passkey.',
  'user.passkey_removed': 'A person removed a passkey.',
  'user.passkey_refused':
    'A sign-in with a passkey was refused for a known account: the answer could not be verified or belongs to another account (reason `not_verified`, counted like `auth.denied`), or its counter went back (`counter_went_back`), which means that there is a copy of the authenticator.',
  'user.passkeys_reset':
    'An administrator or the command line removed all passkeys and recovery codes of an account, and ended its sessions and offline grants.',
  'user.recovery_codes_created': 'A person created recovery codes, which ended the earlier ones.',
  'user.recovery_code_used':
    'A recovery code was used after the right password. `details.codesLeft` counts those that are left.',
  'audit.exported': 'The audit log, or a part of it, was downloaded.',
  'client.connected': 'A client got access to an account beyond the browser session.',
  'client.revoked':
    'A connected client lost its access to an account: a person or the client ended it, or a code or token was used twice.',
  'policy.changed': 'The API key policy was changed or reverted.',
  'config.access.changed': 'The access configuration was changed.',
  'config.access.reverted': 'An earlier access configuration was restored.',
  'config.sites.changed': 'The Sites configuration was changed.',
  'config.sites.reverted': 'An earlier Sites configuration was restored.',
  'config.api-environments.changed':
    'The Environment policy was changed (reason `changed`) or reverted (`reverted`).',
  'mcp.tool_called':
    'An agent called a tool that changed something, for a person; the change has a separate event. The actor’s credential is the client.',
  'mcp.approval_decided':
    'A person approved a call of their agent (reason `approved`) or refused it (`refused`). `mcp.tool_called` is written when the agent makes it.',
  'mcp.definition_chosen':
    'A person chose the agent definition for a client of theirs, at consent or in Settings; `details.definitionId` is null when its agents only read.',
  'mcp.connection_changed':
    'A person connected an account at an external MCP server (reason `connected`) or disconnected it (`disconnected`), the server no longer accepts the account (`broken`), or the person was deleted (`owner_deleted`).',
  'mcp.session_ended':
    'A person or an administrator ended a session of an agent, and with it the access of its client to the account.',
  'config.agents.changed':
    'An agent definition was added (reason `definition_added`), changed (`definition_changed`), or deleted (`definition_removed`); or the models for agents were changed (`changed`) or reverted (`reverted`).',
  'config.mcp.changed': 'The MCP policy was changed (reason `changed`) or reverted (`reverted`).',
  'config.mcp.server_changed':
    'An external MCP server was added (reason `server_added`), changed (`server_changed`) or removed (`server_removed`), or an administrator accepted a tool (`tool_accepted`). The server itself changed the text of an accepted tool (`tool_changed`) or named another authorization server (`issuer_changed`). `details.endedConnections` counts the connections that this removed.',
  'config.mcp.client_changed':
    'An administrator allowed an MCP client (reason `allowed`) or blocked it (`blocked`).',
  'config.metadata.changed':
    'A metadata link of Environments was added (reason `link_added`), changed or moved (`link_changed`), or deleted (`link_removed`).',
  'config.signing_keys.changed':
    'The command line gave the built-in provider a new signing key; `details.kid` is its id.',
  'site.created': 'A site was created.',
  'site.published': 'A version of a site went live.',
  'site.rolled_back': 'An earlier version of a site went live again.',
  'site.previewed': 'A version of a site got its own address for a day.',
  'site.changed': 'A site was renamed, or its fallback to the start page was switched on or off.',
  'site.visibility_changed': 'A site became public or private; its address changed and its grants ended.',
  'site.extended': 'The expiry of a site was extended.',
  'site.expired': 'A site reached its expiry.',
  'site.deleted': 'A site was deleted; its owner can restore it for some days.',
  'site.restored': 'A deleted site was restored.',
  'site.purged':
    'A site was removed permanently: after the configured days since its deletion or expiry, or after a day without any version (reason `never_published`).',
  'site.taken_down': 'An administrator took down a site.',
  'site.put_back': 'An administrator reinstated a site.',
  'site.grant_issued': 'A browser got access to a private site for at most five minutes.',
  'site.grant_refused':
    'A browser was refused access to a private site, with the failed check as reason. Also written when a one-time code is used twice or at another host.',
  'site.grants_ended': 'The owner ended every browser grant of a private site.',
  'environment.grant_issued': 'A browser got access to an Environment that is not public.',
  'environment.grant_refused':
    'A browser was refused access to an Environment, with the failed check as reason. Also written when a one-time code is used twice or at another host.',
  'repository.created': 'A repository was registered.',
  'repository.changed': 'A repository was renamed or changed.',
  'repository.deleted': 'A repository was removed from the registry.',
  'repository.credential_set': 'A repository got a credential for its git server.',
  'repository.credential_removed':
    'A repository lost its credential for its git server: an administrator removed it (reason `removed`), the clone URL changed (`clone_url_changed`), or the repository was removed (`repository_deleted`).',
  'repository.webhook_set': 'A repository got a new secret for webhooks of its git server.',
  'repository.webhook_removed':
    'A repository lost its secret for webhooks: an administrator removed it (reason `removed`), or the repository was removed (`repository_deleted`).',
  'environment.created': 'An Environment was created.',
  'environment.changed': 'The choices of an Environment were changed, such as who may open it.',
  'environment.extended': 'The lease of an Environment was extended.',
  'environment.fell_asleep':
    'The processes of an Environment were ended, because nobody used it for the time that the policy sets.',
  'environment.torn_down':
    'The teardown of an Environment began: someone asked for it (reason `asked`), or its lease ended (`expired`).',
  'build.created': 'A deploy of an Environment was queued, with its trigger as reason.',
  'build.cancelled': 'A deploy of an Environment was cancelled.',
  'build.deployed': 'A deploy succeeded, and its Environment serves it, with its trigger as reason.',
  'build.failed': 'A deploy failed (reason `error`), or `postern.yaml` has problems (`config_error`).',
  'user.created': 'An account was created.',
  'user.changed': 'An account was changed.',
  'user.deleted': 'An account was deleted.',
  'user.signed_out': 'An administrator ended every session and offline grant of an account.',
  'user.password_reset': 'An account got a new password from an administrator or from the command line.',
  'user.password_changed': 'A person changed the password of their account with the old password.',
  'group.created': 'A group was created.',
  'group.changed': 'A group was changed.',
  'group.deleted': 'A group was deleted.',
  'sweep.held':
    'An owner sweep would have suspended or revoked the keys of too many owners at once. It changed nothing. When only the owners without the role are too many (`details.withoutRole`), it left only their keys unchanged.',
} as const;

export type AuditEventName = keyof typeof auditEvents;
