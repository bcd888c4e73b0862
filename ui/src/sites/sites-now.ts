import { useQuery } from '@tanstack/react-query';
import { useNow } from '../shell/now.ts';
import { capabilities } from './queries.ts';

/** The time of the server's clock, if known. */
export function useSitesNow(): number {
  const { data } = useQuery(capabilities);
  return useNow() + (data?.clockOffsetMs ?? 0);
}
