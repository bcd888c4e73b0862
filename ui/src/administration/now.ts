import { useQuery } from '@tanstack/react-query';
import { useNow } from '../shell/now.ts';
import { myPolicy } from '../keys/queries.ts';

/** The time by the server's clock, which decides whether a key has expired. Until it is known, the time of this device. */
export function useServerNow(): number {
  const { data: policy } = useQuery(myPolicy);
  return useNow() + (policy?.clockOffsetMs ?? 0);
}
