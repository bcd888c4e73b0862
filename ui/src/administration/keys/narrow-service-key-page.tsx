import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Navigate } from '@tanstack/react-router';
import { Narrow } from '../../keys/narrow/narrow-page.tsx';
import { homeOf } from './managed-key-words.ts';
import { keyAt } from '../../keys/queries.ts';

const route = getRouteApi('/administration/admin/service-keys/$id/narrow');

/** Removes rights, repositories or lifetime from a service key. Only its owner can narrow a personal key. */
export function NarrowServiceKeyPage() {
  const { id } = route.useParams();
  const { data: key } = useQuery(keyAt('/admin/service-keys', id));
  if (key !== undefined && homeOf(key) !== '/admin/service-keys')
    return <Navigate to={`${homeOf(key)}/$id`} params={{ id }} replace />;
  return <Narrow home="/admin/service-keys" id={id} />;
}
