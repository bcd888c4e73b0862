import { useQuery } from '@tanstack/react-query';
import { environmentPolicy } from '../shell/environment-policy.ts';
import { useNow } from '../shell/now.ts';

/** The moment by the server's clock, as far as it is known. `isUnderWay`: seconds are shown, so it moves every second. */
export function useEnvironmentsNow(isUnderWay = false): number {
  const { data } = useQuery(environmentPolicy);
  return useNow(isUnderWay ? 1_000 : undefined) + (data?.clockOffsetMs ?? 0);
}
