import { useQuery } from '@tanstack/react-query';
import { person } from './queries.ts';

/** The person with this id, by name if known. */
export function PersonName({ id }: { id: string | null }) {
  const { data } = useQuery({ ...person(id ?? ''), enabled: id?.startsWith('usr_') === true, retry: false });
  if (id === null) return <>Nobody</>;
  return <bdi>{data?.name ?? id}</bdi>;
}
