import { useQuery } from '@tanstack/react-query';
import { oneUser } from './queries.ts';

/** Whoever has this id, by name where the directory knows one. */
export function PersonName({ id }: { id: string | null }) {
  const { data } = useQuery({ ...oneUser(id ?? ''), enabled: id?.startsWith('usr_') === true, retry: false });
  if (id === null) return <>Nobody</>;
  return <bdi>{data?.name ?? id}</bdi>;
}
