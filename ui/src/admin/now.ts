import { useQuery } from '@tanstack/react-query';
import { myPolicy } from '../api/queries.ts';
import { useNow } from '../app/now.ts';

/** The moment by the server's clock, which decides whether a key has ended; by this machine's until that is known. */
export function useServerNow(): number {
  const { data: policy } = useQuery(myPolicy);
  return useNow() + (policy?.clockOffsetMs ?? 0);
}
