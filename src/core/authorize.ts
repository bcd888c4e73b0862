import { type Caller, type CallerKind, repositoryAccessOf, type Role } from './caller.ts';
import type { ErrorCode, ErrorDetails } from './errors.ts';
import { isScope, satisfies, type Scope } from './scopes.ts';

/**
 * Who may call a route. The policy is data: the same value drives the enforcement, the OpenAPI security and
 * docs/reference/routes.md.
 */
export type RoutePolicy = {
  /**
   * `anyone` needs no credential at all. The next two are no callers of Postern, and the handler checks what they send.
   * `git_server` needs the webhook secret of a repository: the signature covers the body. `pod` needs a ticket for one archive.
   */
  readonly callers: 'anyone' | 'git_server' | 'pod' | readonly Exclude<CallerKind, 'anonymous'>[];
  /** Required of keys and access tokens; a browser session is limited by roles and ownership instead. */
  readonly scope?: Scope;
  /** Required of people (session, access token, personal key), read live from the directory. */
  readonly role?: Role;
  /** An OAuth scope that an access token must also have, such as `admin` (contract 10.15). */
  readonly tokenScope?: string;
  /**
   * Which checks the identity service makes of the person during the request.
   * `introspected`: the directory confirms now that the person behind the credential exists and is enabled. The token
   * behind a browser session must be active now; an access token was checked when the client presented it. Every route
   * that grants or changes rights requires this (decision 0008).
   * `live`: the same check of the person, without the token behind the session. For routes that remove rights, and for
   * a person's own lists.
   * `people`: `live` for a session and an access token. A personal key is not checked, because the owner sweep suspends
   * the keys of people who may not use the service.
   * `none`: works without the identity service, such as revoking one's own key.
   */
  readonly identity: 'live' | 'introspected' | 'people' | 'none';
  /**
   * The person must have signed in within `freshProofMinutes` of `/config/access`. Unless that is 0, access tokens are refused.
   * `sometimes`: the handler decides, because only some of the changes need it.
   */
  readonly freshProof?: 'always' | 'sometimes';
  /** True: the limit on changes by a person neither counts nor refuses this route, such as revoking a leaked key. */
  readonly exemptFromChangeLimit?: true;
};

/** An administrator in the web app. Keys and access tokens cannot use these routes. */
export const administratorSession: RoutePolicy = {
  callers: ['session'],
  role: 'admin',
  identity: 'introspected',
};

/** What the directory says about the person behind the caller at this moment. */
export type PrincipalFacts =
  | { readonly kind: 'active'; readonly roles: readonly Role[] }
  | { readonly kind: 'disabled' }
  | { readonly kind: 'missing' }
  | { readonly kind: 'unavailable' }
  /** The token behind the session was revoked or cannot be renewed. */
  | { readonly kind: 'signed_out' }
  /** The caller is not a person, or the policy requires no check. */
  | { readonly kind: 'not_asked' };

export type RuleName =
  | 'credential'
  | 'caller_kind'
  | 'key_type_enabled'
  | 'owner_enabled'
  | 'identity_binding'
  | 'scope'
  | 'role'
  | 'repository';

/** One check with its result, as `GET /auth/context?can=` shows it. */
export type RuleResult = { readonly rule: RuleName; readonly passed: boolean; readonly detail: string };

export type Denial = {
  readonly code: ErrorCode;
  /** Replaces the registry's sentence where this one can name the values that decided. */
  readonly message?: string;
  readonly details?: ErrorDetails;
};

export type Decision = {
  readonly allowed: boolean;
  readonly rules: readonly RuleResult[];
  readonly denial: Denial | null;
};

type Check = { rule: RuleName; passed: boolean; detail: string; denial: Denial };

/**
 * Decides whether `caller` satisfies `policy`. Pure, and the only place that decides: routes enforce with it and
 * `?can=` explains with it. It evaluates every rule; the first one that fails determines the error.
 *
 * `repository` is the id of the repository the action touches, `unregistered`, or null when none is involved.
 */
export function decide(
  caller: Caller,
  policy: RoutePolicy,
  principal: PrincipalFacts,
  repository: string | null = null,
): Decision {
  if (policy.callers === 'anyone') return { allowed: true, rules: [], denial: null };
  if (policy.callers === 'git_server' || policy.callers === 'pod')
    return { allowed: false, rules: [], denial: { code: 'invalid_credential' } };
  const checks =
    caller.kind === 'anonymous'
      ? [credentialCheck()]
      : [
          kindCheck(caller, policy.callers),
          ...keyChecks(caller, policy, principal),
          ...scopeChecks(caller, policy),
          ...personChecks(caller, policy, principal),
          ...(repository === null ? [] : [repositoryCheck(caller, repository)]),
        ];
  const failed = checks.find((check) => !check.passed);
  return {
    allowed: failed === undefined,
    rules: checks.map(({ rule, passed, detail }) => ({ rule, passed, detail })),
    denial: failed?.denial ?? null,
  };
}

function credentialCheck(): Check {
  return {
    rule: 'credential',
    passed: false,
    detail: 'No credential was sent.',
    denial: { code: 'authentication_required' },
  };
}

function kindCheck(caller: Caller, callers: readonly CallerKind[]): Check {
  const passed = callers.includes(caller.kind);
  return {
    rule: 'caller_kind',
    passed,
    detail: passed ? `Accepts ${words(caller.kind)}.` : `Does not accept ${words(caller.kind)}.`,
    denial: {
      code: acceptsKeys(callers) ? 'forbidden_role' : 'interactive_auth_required',
      message: `This route accepts ${callers.map(words).join(', ')}; it does not accept ${words(caller.kind)}.`,
    },
  };
}

/** False for routes that need a signed-in person, whatever a key may do. */
export function acceptsKeys(callers: readonly CallerKind[]): boolean {
  return callers.includes('personal_key') || callers.includes('service_key');
}

/** True when the policy requires the directory to check a caller of this kind. */
export function asksAbout(kind: CallerKind, { identity }: RoutePolicy): boolean {
  if (kind === 'anonymous' || kind === 'service_key') return false;
  return identity === 'people' ? kind !== 'personal_key' : identity !== 'none';
}

function keyChecks(caller: Caller, policy: RoutePolicy, principal: PrincipalFacts): Check[] {
  if (caller.kind !== 'personal_key' && caller.kind !== 'service_key') return [];
  const { key } = caller;
  const checks: Check[] = [
    {
      rule: 'key_type_enabled',
      passed: key.isTypeEnabled,
      detail: key.isTypeEnabled
        ? `Keys of the type ${key.type} are enabled.`
        : `The policy has switched off keys of the type ${key.type}.`,
      denial: { code: 'api_keys_disabled' },
    },
    suspensionCheck(key.isSuspended, principal),
  ];
  if (policy.scope?.startsWith('sites:') && key.type === 'personal') {
    checks.push({
      rule: 'identity_binding',
      passed: key.isBound,
      detail: key.isBound ? 'The key is bound to a user.' : 'The key is not bound to a user.',
      denial: { code: 'identity_binding_required' },
    });
  }
  return checks;
}

/**
 * A suspension records what the owner sweep found last. The directory's response to this request is newer. An owner
 * who is enabled again and has the role need not wait for the next sweep.
 */
function suspensionCheck(isSuspended: boolean, principal: PrincipalFacts): Check {
  const lacksRole = principal.kind === 'active' && !principal.roles.includes('user');
  const passed = !isSuspended || (principal.kind === 'active' && !lacksRole);
  return {
    rule: 'owner_enabled',
    passed,
    detail: passed ? 'The key is not suspended.' : 'The key is suspended: its owner may not use the service.',
    denial: lacksRole
      ? { code: 'role_required', details: { requiredRole: 'user' } }
      : { code: 'user_disabled' },
  };
}

function scopeChecks(caller: Caller, policy: RoutePolicy): Check[] {
  const checks: Check[] = [];
  if (policy.scope !== undefined && caller.kind !== 'session') {
    checks.push(scopeCheck(caller, policy.scope));
  }
  if (policy.tokenScope !== undefined && caller.kind === 'access_token') {
    const passed = caller.scopes.includes(policy.tokenScope);
    checks.push({
      rule: 'scope',
      passed,
      detail: passed ? `Has ${policy.tokenScope}.` : `Needs the OAuth scope ${policy.tokenScope}.`,
      denial: {
        code: 'forbidden_scope',
        message: scopeMessage(caller, caller.scopes, policy.tokenScope),
        details: { requiredScope: policy.tokenScope },
      },
    });
  }
  return checks;
}

function scopeCheck(caller: Caller, required: Scope): Check {
  const granted = grantedScopes(caller);
  const passed = satisfies(granted, required);
  return {
    rule: 'scope',
    passed,
    detail: passed ? `Has ${required}.` : `Needs ${required}; has ${granted.join(', ') || 'no scope'}.`,
    denial: {
      code: 'forbidden_scope',
      message: scopeMessage(caller, granted, required),
      details: { requiredScope: required, grantedScopes: granted },
    },
  };
}

/** The client chooses the scopes of an access token, so the message lists a bounded number of them. */
function scopeMessage(caller: Caller, granted: readonly string[], required: string): string {
  const credential = caller.kind === 'access_token' ? 'access token' : 'key';
  const has = granted.length === 0 ? 'no scope' : granted.slice(0, 10).join(', ');
  return `This ${credential} has ${has}; this request needs ${required}.`;
}

/** The scopes a caller holds. A session holds none: it is limited by roles and ownership. */
export function grantedScopes(caller: Caller): readonly Scope[] {
  if (caller.kind === 'personal_key' || caller.kind === 'service_key') return caller.key.scopes;
  if (caller.kind === 'access_token') return caller.scopes.filter(isScope);
  return [];
}

function personChecks(caller: Caller, policy: RoutePolicy, principal: PrincipalFacts): Check[] {
  if (!asksAbout(caller.kind, policy)) return [];
  // An imported key without a user acts by the key alone on Environments (contract 7).
  if (caller.kind === 'personal_key' && !caller.key.isBound && policy.scope?.startsWith('env:')) return [];
  const checks: Check[] = [ownerCheck(principal)];
  if (policy.role !== undefined) checks.push(roleCheck(policy.role, principal));
  return checks;
}

function ownerCheck(principal: PrincipalFacts): Check {
  const outcomes = {
    active: ['The account is enabled.', 'user_disabled'],
    disabled: ['The account is disabled.', 'user_disabled'],
    missing: ['The account no longer exists.', 'user_disabled'],
    unavailable: ['Postern could not check in time who makes the request.', 'identity_unavailable'],
    signed_out: ['The sign-in of the session has ended.', 'authentication_required'],
    not_asked: ['This credential does not belong to an account.', 'forbidden_role'],
  } as const;
  const [detail, code] = outcomes[principal.kind];
  return { rule: 'owner_enabled', passed: principal.kind === 'active', detail, denial: { code } };
}

function roleCheck(role: Role, principal: PrincipalFacts): Check {
  const passed = principal.kind === 'active' && principal.roles.includes(role);
  return {
    rule: 'role',
    passed,
    detail: passed ? `Has the role ${role}.` : `Needs the role ${role}.`,
    denial: {
      code: role === 'admin' ? 'forbidden_role' : 'role_required',
      message: `This request needs the role ${role}; the account does not have it.`,
      details: { requiredRole: role },
    },
  };
}

/** Stands for a repository that is not registered. */
export const unregistered = 'unregistered';

function repositoryCheck(caller: Caller, repositoryId: string): Check {
  const passed = canReachRepository(caller, repositoryId);
  // A credential with a selected list gets the same message for a missing repository as for one outside its list.
  const missing =
    repositoryAccessOf(caller).mode === 'selected'
      ? `The repository is not in the ${'key' in caller ? 'key’s' : 'agent definition’s'} selection.`
      : 'There is no such repository.';
  return {
    rule: 'repository',
    passed,
    detail: passed ? 'The credential may use the repository.' : missing,
    denial: { code: 'forbidden_repository' },
  };
}

/** A session reaches every registered repository; a key and an agent reach only those that their repository access allows. */
export function canReachRepository(caller: Caller, repositoryId: string): boolean {
  if (repositoryId === unregistered || caller.kind === 'anonymous') return false;
  const reach = reachOf(caller);
  return reach === 'all' || reach.includes(repositoryId);
}

/** Ids of the repositories that the caller reaches, for lists. */
export function reachOf(caller: Caller): readonly string[] | 'all' {
  const access = repositoryAccessOf(caller);
  return access.mode === 'selected' ? access.repositoryIds : 'all';
}

function words(kind: CallerKind): string {
  const names = {
    anonymous: 'anonymous callers',
    session: 'browser sessions',
    access_token: 'access tokens',
    personal_key: 'personal keys',
    service_key: 'service keys',
  } as const;
  return names[kind];
}
