import { isIP } from 'node:net';
import type { RequestOrigin } from '../../core/caller.ts';
import { safeAgent } from '../../core/safe-text.ts';
import { addressBucket } from '../rate-limit/rate-limit.ts';

/** Where a key was last used from: enough to tell a CI runner from a stranger, too little to locate a person. */
export type UsedFrom = { readonly network: string | null; readonly program: string | null };
export type UseOrigin = Pick<RequestOrigin, 'address' | 'agent'>;

export function usedFrom({ address, agent }: UseOrigin): UsedFrom {
  return { network: networkOf(address), program: safeAgent(agent) };
}

/** The /24 of an IPv4 address, the /48 of an IPv6 one. */
function networkOf(address: string | null): string | null {
  const bucket = addressBucket(address);
  if (isIP(bucket) === 4) return bucket.replace(/\d+$/, '0/24');
  return bucket.endsWith('::/64') ? `${bucket.split(':').slice(0, 3).join(':')}::/48` : null;
}
