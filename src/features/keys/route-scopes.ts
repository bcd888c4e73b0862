import type { RoutePolicy } from '../../core/authorize.ts';
import { callerKinds } from '../../core/caller.ts';
import type { Scope } from '../../core/scopes.ts';
import { patternOf, type Route } from '../../platform/http.ts';

/** The scope that a route requires of a key; the audit log names the route by method and pattern. */
export function scopeAskedBy(routes: readonly Route[], name: string): Scope | undefined {
  const policy = routes.find((route) => `${route.method} ${patternOf(route)}` === name)?.policy;
  return policy?.scope;
}

/** The policy behind `?can=`: that of a route which requires the scope. */
export function policyOf(routes: readonly Route[], scope: Scope): RoutePolicy {
  const found = routes.find((route) => route.policy.scope === scope);
  return found?.policy ?? { callers: callerKinds, scope, role: 'user', identity: 'live' };
}
