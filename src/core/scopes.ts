/** The six scopes a new key may carry (contract 4), in the order people read them. */
export const grantableScopes = [
  'env:read',
  'env:write',
  'sites:read',
  'sites:write',
  'repos:read',
  'repos:write',
] as const;
export type GrantableScope = (typeof grantableScopes)[number];

/** Only imported service keys can hold this one; it satisfies no other scope (contract 4). */
export const legacyScope = 'env:admin';
export type Scope = GrantableScope | typeof legacyScope;
export const allScopes: readonly Scope[] = [...grantableScopes, legacyScope];

/** The OAuth scope of an access token for `/mcp`. No key has it, and it is none of the scopes above. */
export const mcpScope = 'mcp';

export function isGrantable(text: string): text is GrantableScope {
  return (grantableScopes as readonly string[]).includes(text);
}

export function isScope(text: string): text is Scope {
  return (allScopes as readonly string[]).includes(text);
}

/** True when `granted` contains `required`, or the write form of the same resource. */
export function satisfies(granted: readonly Scope[], required: Scope): boolean {
  if (granted.includes(required)) return true;
  const write = writeFormOf(required);
  return write !== undefined && granted.includes(write);
}

/** Everything `granted` permits: the scopes themselves plus the reads their writes imply. */
export function effectiveScopes(granted: readonly Scope[]): Scope[] {
  return allScopes.filter((scope) => satisfies(granted, scope));
}

/** True when nothing in `next` was not already permitted by `previous`. */
export function isNarrowerOrEqual(next: readonly Scope[], previous: readonly Scope[]): boolean {
  return next.every((scope) => satisfies(previous, scope));
}

function writeFormOf(scope: Scope): Scope | undefined {
  if (scope === 'env:read') return 'env:write';
  if (scope === 'sites:read') return 'sites:write';
  if (scope === 'repos:read') return 'repos:write';
  return undefined;
}
