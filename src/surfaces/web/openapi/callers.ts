import type { RoutePolicy } from '../../../core/authorize.ts';
import type { CallerKind } from '../../../core/caller.ts';

const names: Readonly<Record<Exclude<CallerKind, 'anonymous'>, string>> = {
  session: 'a browser session',
  access_token: 'an access token',
  personal_key: 'a personal key',
  service_key: 'a service key',
};

/** Who may call a route, as one readable line: in the API reference and in docs/reference/routes.md. */
export function callersInWords(policy: RoutePolicy): string {
  if (policy.callers === 'anyone') return 'Anyone';
  if (policy.callers === 'git_server') return 'A git server with the webhook secret of the repository';
  if (policy.callers === 'pod') return 'A pod of an Environment with a ticket for one archive';
  const list = policy.callers.map((kind) => names[kind]);
  if (isAdministratorsSession(policy)) return 'An administrator’s browser session';
  return capital(orList(list));
}

/** What a caller of the right kind must also have. */
export function needsInWords(policy: RoutePolicy): string[] {
  const needs: string[] = [];
  if (typeof policy.callers === 'string') return needs;
  if (policy.role === 'admin' && !isAdministratorsSession(policy))
    needs.push('The person must be an administrator.');
  if (policy.role === 'user') needs.push('The person must have the role `user`.');
  if (policy.scope !== undefined && policy.callers.some((kind) => kind !== 'session')) {
    needs.push(`Keys and access tokens need the scope \`${policy.scope}\`.`);
  }
  if (policy.tokenScope !== undefined && policy.callers.includes('access_token')) {
    needs.push(`Access tokens need the OAuth scope \`${policy.tokenScope}\`.`);
  }
  if (policy.freshProof === 'always')
    needs.push('The person must have signed in within `freshProofMinutes`.');
  if (policy.freshProof === 'sometimes')
    needs.push('A change that gives more access needs a sign-in within `freshProofMinutes`.');
  return needs;
}

/** Then the line about callers already says it. */
function isAdministratorsSession({ role, callers }: RoutePolicy): boolean {
  return role === 'admin' && typeof callers !== 'string' && callers.length === 1 && callers[0] === 'session';
}

function orList(items: readonly string[]): string {
  return items.length < 2 ? items.join('') : `${items.slice(0, -1).join(', ')} or ${items.at(-1)}`;
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
