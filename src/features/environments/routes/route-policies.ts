import { callerKinds } from '../../../core/caller.ts';

/** Who may call the routes of Environments and their builds. */
export const readers = { callers: callerKinds, scope: 'env:read', role: 'user', identity: 'people' } as const;
export const writers = {
  callers: callerKinds,
  scope: 'env:write',
  role: 'user',
  identity: 'introspected',
} as const;
