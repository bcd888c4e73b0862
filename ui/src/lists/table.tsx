import { Skeleton } from '@mantine/core';
import { type ReactNode, type RefObject, useEffect, useRef } from 'react';
import styles from './table.module.css';
import { UpIcon } from '../shell/icons.tsx';

type TableProps = {
  /** What it lists, for screen readers. */
  readonly caption: string;
  /** Each cell repeats its column's name in `data-label`; the first of a row is its `<th scope="row">`. */
  readonly columns: readonly (string | SortedColumn)[];
  /** A last column without a name, for actions. */
  readonly hasActions?: boolean;
  /** The rows are of the previous query, shown until the new response arrives. */
  readonly isStale: boolean;
  /** One line for each row, for lists that are long and read by their columns. */
  readonly isDense?: boolean;
  readonly children: ReactNode;
};

/** A table on wide screens, a list of cards on narrow ones. */
export function Table({
  caption,
  columns,
  hasActions = false,
  isStale,
  isDense = false,
  children,
}: TableProps) {
  const body = useRef<HTMLTableSectionElement>(null);
  useArrows(body);
  return (
    <div className={styles['card']} aria-busy={isStale}>
      <table className={styles['table']} data-dense={isDense}>
        <caption className="unseen">{caption}</caption>
        <thead>
          <tr>
            {columns.map((column) =>
              typeof column === 'string' ? (
                <th key={column} scope="col">
                  {column}
                </th>
              ) : (
                <SortedHead key={column.name} {...column} />
              ),
            )}
            {hasActions && (
              <th scope="col">
                <span className="unseen">Actions</span>
              </th>
            )}
          </tr>
        </thead>
        <tbody ref={body}>{children}</tbody>
      </table>
    </div>
  );
}

export function TableLoading({ what }: { what: string }) {
  return (
    <div className={styles['card']} role="status" aria-label={`Loading ${what}`}>
      {[1, 2, 3].map((row) => (
        <div key={row} className={styles['loading']}>
          <Skeleton height={14} width="32%" />
          <Skeleton height={14} width="60%" />
        </div>
      ))}
    </div>
  );
}

/** A column whose head sorts the list. */
type SortedColumn = {
  readonly name: string;
  /** Undefined: the list is in another order. */
  readonly order: 'asc' | 'desc' | undefined;
  readonly onSort: () => void;
};

function SortedHead({ name, order, onSort }: SortedColumn) {
  const sorted = order === 'asc' ? 'ascending' : 'descending';
  return (
    <th scope="col" {...(order && { 'aria-sort': sorted })}>
      <button type="button" className={styles['sort']} onClick={onSort}>
        {name}
        <UpIcon size={13} />
      </button>
    </th>
  );
}

const steps: Readonly<Record<string, 'nextElementSibling' | 'previousElementSibling'>> = {
  ArrowDown: 'nextElementSibling',
  ArrowUp: 'previousElementSibling',
};

/** Up and down go from the link of a row to that of its neighbour; Enter then opens it, as it does any link. */
function useArrows(body: RefObject<HTMLTableSectionElement | null>): void {
  useEffect(() => {
    const rows = body.current;
    function move(event: KeyboardEvent): void {
      const step = steps[event.key];
      const from = event.target instanceof HTMLAnchorElement ? event.target.closest('tr') : null;
      if (step === undefined || from === null) return;
      const link = from[step]?.querySelector<HTMLElement>('th a');
      if (link === null || link === undefined) return;
      event.preventDefault();
      link.focus();
    }
    rows?.addEventListener('keydown', move);
    return () => rows?.removeEventListener('keydown', move);
  }, [body]);
}
