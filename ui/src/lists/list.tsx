import type { ReactNode } from 'react';
import { Problem } from '../shell/problem.tsx';
import { AddressPages } from './pages.tsx';
import { TableLoading } from './table.tsx';

type Page<Item> = {
  readonly data: readonly Item[];
  readonly metadata: { readonly pagination: { readonly total: number } };
};

type ListProps<Item> = {
  /** What it lists, for screen readers while it loads. */
  readonly what: string;
  readonly found: {
    readonly data: Page<Item> | readonly Item[] | undefined;
    readonly error: unknown;
    readonly isPending: boolean;
    readonly refetch: () => unknown;
  };
  /** Runs when the user goes to another page. */
  readonly onTurn?: () => void;
  /** Replaces the items while there are none. */
  readonly empty?: ReactNode;
  readonly children: (items: readonly Item[]) => ReactNode;
};

/** Shows the items of a query, its loading state, its error or the empty state, and the page controls below. */
export function List<Item>({ what, found, onTurn, empty, children }: ListProps<Item>) {
  const { data, error, isPending, refetch } = found;
  const isPaged = data !== undefined && 'metadata' in data;
  const items = isPaged ? data.data : data;
  return (
    <>
      {isPending && <TableLoading what={what} />}
      {error !== null && <Problem error={error} onRetry={() => void refetch()} />}
      {items !== undefined && (items.length > 0 || empty === undefined ? children(items) : empty)}
      {isPaged && <AddressPages total={data.metadata.pagination.total} onTurn={onTurn} />}
    </>
  );
}
