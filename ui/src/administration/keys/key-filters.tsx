import { Chip, NativeSelect, SegmentedControl } from '@mantine/core';
import { Tools } from '../../lists/page-head.tsx';
import { SearchField } from '../../lists/search-field.tsx';
import styles from './key-filters.module.css';
import { keyOrders } from './managed-key-order.ts';
import {
  concerns,
  type Concern,
  keyStates,
  type KeyState,
  type ManagedKeySearch,
  type SearchPart,
  unusedDays,
} from './managed-key-search.ts';

const stateLabels: Readonly<Record<KeyState, string>> = {
  active: 'Active',
  expired: 'Expired',
  revoked: 'Revoked',
  all: 'All',
};
const concernLabels: Readonly<Record<Concern, string>> = {
  unused: `Unused for ${unusedDays} days`,
  endless: 'No expiry',
  broad: 'All repositories',
};

type FilterProps = {
  readonly search: ManagedKeySearch;
  readonly onChange: (part: SearchPart) => void;
  readonly children?: React.ReactNode;
};

/** Search, state, and filters for keys that need attention. */
export function KeyFilters({ search: asked, onChange, children }: FilterProps) {
  const { state = 'active', search = '', only = [] } = asked;
  return (
    <>
      <Tools>
        <SearchField
          label="Search by name or id"
          placeholder="Search by name or id"
          value={search}
          onChange={(text) => onChange({ search: text })}
        />
        {children}
        <SegmentedControl
          aria-label="State"
          className={styles['states']}
          value={state}
          onChange={(value) => onChange({ state: value })}
          data={keyStates.map((value) => ({ value, label: stateLabels[value] }))}
        />
        <NativeSelect
          className={styles['order']}
          aria-label="Order"
          radius="md"
          value={asked.sort ?? 'created'}
          data={keyOrders.sorts.map((value) => ({ value, label: keyOrders.inWords(asked, value) }))}
          onChange={({ currentTarget: { value } }) => onChange({ sort: value, order: undefined })}
        />
      </Tools>
      <div className={styles['concerns']} role="group" aria-label="Only keys that need attention">
        {concerns.map((one) => (
          <Chip
            key={one}
            size="xs"
            variant="outline"
            checked={only.includes(one)}
            onChange={(isOn) =>
              onChange({ only: isOn ? [...only, one] : only.filter((other) => other !== one) })
            }
          >
            {concernLabels[one]}
          </Chip>
        ))}
      </div>
    </>
  );
}
