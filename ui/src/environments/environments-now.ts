import { useQuery } from '@tanstack/react-query';
import { environmentPolicy } from '../shell/environment-policy.ts';
import { useNow } from '../shell/now.ts';

/** The time of the server's clock, if known. `isUnderWay`: it updates every second, because seconds are shown. */
export function useEnvironmentsNow(isUnderWay = false): number {
  const { data } = useQuery(environmentPolicy);
  return useNow(isUnderWay ? 1_000 : undefined) + (data?.clockOffsetMs ?? 0);
}
