import { Select } from '@mantine/core';
import { FieldGroup } from '../new/field-group.tsx';
import styles from '../rights-fields.module.css';

export type Overlap = { readonly graceSeconds: number; readonly deadlineHours: number };

export const usualOverlap: Overlap = { graceSeconds: 300, deadlineHours: 24 };

const graces = [
  { value: '0', label: 'At once' },
  { value: '300', label: 'After 5 minutes' },
  { value: '1800', label: 'After 30 minutes' },
  { value: '3600', label: 'After an hour' },
];
const deadlines = [
  { value: '1', label: 'In an hour' },
  { value: '24', label: 'In a day' },
  { value: '72', label: 'In 3 days' },
  { value: '168', label: 'In a week' },
];

/** How long both keys work. */
export function OverlapField({
  overlap,
  onChange,
}: {
  overlap: Overlap;
  onChange: (overlap: Overlap) => void;
}) {
  return (
    <FieldGroup
      field="overlap"
      legend="When the old key expires"
      description="Long enough for the slowest script to change over."
      error={undefined}
    >
      <div className={styles['pair']}>
        <Select
          label="After the first use of the new key"
          data={graces}
          allowDeselect={false}
          value={String(overlap.graceSeconds)}
          onChange={(value) => onChange({ ...overlap, graceSeconds: Number(value) })}
        />
        <Select
          label="If the new key is never used"
          data={deadlines}
          allowDeselect={false}
          value={String(overlap.deadlineHours)}
          onChange={(value) => onChange({ ...overlap, deadlineHours: Number(value) })}
        />
      </div>
    </FieldGroup>
  );
}

/** Says that “Verify now” on a successor does not start the overlap. */
export const verifyNote = 'This does not count as its first use: the old key keeps working.';
