import { UpIcon } from '../shell/icons.tsx';
import styles from './table.module.css';

/** A column that the list can be put in the order of, by its head. */
export type SortedColumn = {
  readonly name: string;
  /** Undefined: the list is in another order. */
  readonly order: 'asc' | 'desc' | undefined;
  readonly onSort: () => void;
};

export function SortedHead({ name, order, onSort }: SortedColumn) {
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
