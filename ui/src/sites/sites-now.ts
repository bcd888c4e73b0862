import { useQuery } from '@tanstack/react-query';
import { useNow } from '../shell/now.ts';
import { capabilities } from './queries.ts';

/** The moment by the server's clock, as far as it is known. */
export function useSitesNow(): number {
  const { data } = useQuery(capabilities);
  return useNow() + (data?.clockOffsetMs ?? 0);
}
