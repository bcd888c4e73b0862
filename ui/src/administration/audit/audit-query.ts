import { infiniteQueryOptions, keepPreviousData } from '@tanstack/react-query';
import { api, unwrap } from '../../api/client.ts';
import { given } from '../search.ts';
import { type AuditSearch, rangeOf } from './audit-search.ts';
import { isEventName } from './event-words.ts';

/** The filters of the address as the API takes them. */
export function filtersOf(search: AuditSearch, now: number) {
  const { actor, event, target, outcome, requestId, keyId } = search;
  return given({
    actor,
    target,
    outcome,
    requestId,
    keyId,
    event: event !== undefined && isEventName(event) ? event : undefined,
    ...rangeOf(search, now),
  });
}

export const auditEvents = (filters: ReturnType<typeof filtersOf>) =>
  infiniteQueryOptions({
    queryKey: ['admin', 'audit', 'list', filters],
    // The first page has no cursor.
    initialPageParam: '',
    queryFn: ({ pageParam, signal }) =>
      unwrap(
        api.GET('/audit/events', {
          params: { query: { ...filters, limit: 50, ...(pageParam === '' ? {} : { cursor: pageParam }) } },
          signal,
        }),
      ),
    getNextPageParam: ({ metadata }) => metadata.pagination.nextCursor,
    placeholderData: keepPreviousData,
  });

/** A plain link: the browser saves the file, and the session goes with it. */
export function exportAddress(filters: ReturnType<typeof filtersOf>, format: 'csv' | 'ndjson'): string {
  const query = new URLSearchParams({ ...filters, format });
  return `/api/v2/audit/export?${query.toString()}`;
}
