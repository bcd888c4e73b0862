import { z } from 'zod';
import {
  asksAbout,
  decide,
  grantedScopes,
  type PrincipalFacts,
  type RoutePolicy,
  unregistered,
} from '../../core/authorize.ts';
import { type Caller, callerKinds, type Exchange, type Role, userOf } from '../../core/caller.ts';
import { timestampOrNull } from '../../core/clock.ts';
import { effectiveScopes, grantableScopes, type Scope } from '../../core/scopes.ts';
import { defineRoute, type RequestBudget, type Route } from '../../platform/http.ts';
import { queryFlag } from '../../platform/schemas.ts';
import { toConstraint } from './responses.ts';
import { contextSchema } from './schemas.ts';

/**
 * `GET /auth/context`: what the presented credential is and may do, without its value (contract 4). `?can=` runs
 * the same function that enforces access, with the policy that a route of that scope declares.
 */
export type ContextDeps = {
  readonly principal: (caller: Caller) => PrincipalFacts | Promise<PrincipalFacts>;
  /** When the proof of a session ends, in milliseconds; null when it has ended, and for other credentials. */
  readonly freshUntil: (caller: Caller) => number | null;
  /** The policy that routes with this scope enforce. */
  readonly policyOf: (scope: Scope) => RoutePolicy;
  readonly findRepositoryId: (fullName: string) => Promise<string | undefined>;
};

const policy: RoutePolicy = { callers: callerKinds, identity: 'none' };

const exampleContext = {
  principal: { kind: 'user', id: 'usr_8fQ2mV6sT0aXk4RjB1Zc', name: 'Ada' },
  authMethod: 'api_key',
  credential: 'value',
  tokenExpiresAt: null,
  act: null,
  keyType: 'personal',
  keyId: '4fKd02LmQx9Z',
  keyName: 'deploy from CI',
  scopes: ['repos:write'],
  effectiveScopes: ['repos:read', 'repos:write'],
  repositories: { mode: 'selected', repositories: ['acme/website'] },
  expiresAt: '2026-01-08T09:00:00.000Z',
  freshUntil: null,
  identityBinding: 'present',
  roles: ['user'],
  rateLimit: { limit: 600, remaining: 599, resetSeconds: 60 },
};

export function contextRoute(deps: ContextDeps): Route {
  return defineRoute({
    method: 'GET',
    path: '/auth/context',
    operationId: 'readAuthContext',
    tag: 'Authentication',
    summary: 'Read what my credential is and what it may do',
    description:
      'Verifies a key without showing it. `?can=sites:write&repository=acme/website` adds a decision, rule by rule, from the function that enforces the rules.',
    policy,
    query: z
      .strictObject({
        can: z.enum(grantableScopes).optional().describe('A scope to try'),
        check: queryFlag
          .optional()
          .describe(
            'Only verify the key. The request counts in its usage, but not as its last use, and not as the first use of a successor, which ends the predecessor',
          ),
        repository: z.string().max(201).optional().describe('A repository to try the scope on; needs can'),
      })
      .refine(({ can, repository }) => repository === undefined || can !== undefined, {
        path: ['repository'],
        message: 'needs can, the scope to try on it: ?can=repos:read&repository=owner/name',
      }),
    success: { status: 200, data: contextSchema },
    example: { data: exampleContext },
    handle({ caller, query, budget }) {
      // Most requests have no `?can=` and find the roles in memory: answer those synchronously.
      const facts = deps.principal(caller);
      if (query.can === undefined && !(facts instanceof Promise))
        return { data: contextOf(caller, facts, budget, deps), isCheck: query.check === true };
      return withDecision(caller, facts, budget, query, deps);
    },
  });
}

async function withDecision(
  caller: Caller,
  asked: PrincipalFacts | Promise<PrincipalFacts>,
  budget: RequestBudget | null,
  {
    can,
    check,
    repository,
  }: { can?: Scope | undefined; check?: boolean | undefined; repository?: string | undefined },
  deps: ContextDeps,
) {
  const facts = await asked;
  const context = contextOf(caller, facts, budget, deps);
  const isCheck = check === true;
  if (can === undefined) return { data: context, isCheck };
  return { data: { ...context, decision: await explain(caller, can, repository, facts, deps) }, isCheck };
}

function contextOf(
  caller: Caller,
  facts: PrincipalFacts,
  budget: RequestBudget | null,
  { freshUntil }: Pick<ContextDeps, 'freshUntil'>,
) {
  return {
    ...factsOf(caller),
    freshUntil: timestampOrNull(freshUntil(caller)),
    roles: userOf(caller) === null ? null : rolesIn(facts),
    rateLimit: budget,
  };
}

type Facts = ReturnType<typeof describe>;
const factsOfKeys = new WeakMap<Caller, Facts>();

/** The verifier reuses a key's caller object until the key or the policy changes, so facts derived from it are cached too. */
function factsOf(caller: Caller): Facts {
  if (!('key' in caller)) return describe(caller);
  const known = factsOfKeys.get(caller);
  if (known !== undefined) return known;
  const facts = describe(caller);
  factsOfKeys.set(caller, facts);
  return facts;
}

function describe(caller: Caller) {
  const user = userOf(caller);
  const key = 'key' in caller ? caller.key : null;
  const exchange = (caller.kind === 'service_key' ? caller.exchange : undefined) ?? null;
  const scopes =
    caller.kind === 'session' ? null : caller.kind === 'access_token' ? caller.scopes : grantedScopes(caller);
  const effective = caller.kind === 'session' ? null : effectiveScopes(grantedScopes(caller));
  return {
    principal:
      caller.kind === 'service_key'
        ? ({ kind: 'service_key', id: caller.key.id, name: caller.key.name } as const)
        : ({ kind: 'user', id: user?.id ?? null, name: user?.name ?? null } as const),
    authMethod: methodOf(caller),
    credential: key === null ? null : exchange === null ? ('value' as const) : ('exchanged' as const),
    tokenExpiresAt: timestampOrNull(exchange?.expiresAt ?? null),
    act: exchange === null ? null : actOf(exchange),
    keyType: key?.type ?? null,
    keyId: key?.id ?? null,
    keyName: key?.name ?? null,
    scopes: scopes === null ? null : [...scopes],
    effectiveScopes: effective,
    repositories: toConstraint(key?.repositories.mode ?? 'all', key?.repositoryNames ?? []),
    expiresAt: expiryOf(caller),
    identityBinding:
      key?.type === 'personal' ? (key.isBound ? ('present' as const) : ('absent' as const)) : null,
  };
}

function methodOf(caller: Caller) {
  if (caller.kind === 'session' || caller.kind === 'access_token') return caller.kind;
  const isExchanged = caller.kind === 'service_key' && caller.exchange !== undefined;
  return isExchanged ? ('federated' as const) : ('api_key' as const);
}

function actOf({ issuer, repository, ref, run }: Exchange) {
  return { issuer, repository, ref, run };
}

function expiryOf(caller: Caller): string | null {
  if (caller.kind === 'anonymous') return null;
  const ms = 'key' in caller ? caller.key.expiresAt : caller.expiresAt;
  return timestampOrNull(ms);
}

/** Null when the directory is unavailable. */
function rolesIn(facts: PrincipalFacts): Role[] | null {
  return facts.kind === 'active' ? [...facts.roles] : facts.kind === 'unavailable' ? null : [];
}

async function explain(
  caller: Caller,
  scope: Scope,
  repository: string | undefined,
  asked: PrincipalFacts,
  deps: ContextDeps,
) {
  const tried = deps.policyOf(scope);
  const facts: PrincipalFacts = asksAbout(caller.kind, tried) ? asked : { kind: 'not_asked' };
  const repositoryId =
    repository === undefined ? null : ((await deps.findRepositoryId(repository)) ?? unregistered);
  const { allowed, rules } = decide(caller, tried, facts, repositoryId);
  return { allowed, rules: [...rules] };
}
