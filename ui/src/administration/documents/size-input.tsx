import { NativeSelect, NumberInput } from '@mantine/core';
import { useState } from 'react';
import styles from './documents.module.css';

const units = [
  { value: '1048576', label: 'MiB' },
  { value: '1073741824', label: 'GiB' },
  { value: '1024', label: 'KiB' },
  { value: '1', label: 'bytes' },
];

type SizeProps = {
  readonly said: { readonly 'aria-labelledby': string; readonly 'aria-describedby': string };
  readonly hasError: boolean;
  readonly value: unknown;
  readonly onChange: (bytes: unknown) => void;
};

/** A number of bytes, shown in the unit that gives a short number. */
export function SizeInput({ said, hasError, value, onChange }: SizeProps) {
  const [unit, setUnit] = useState(() => unitFor(value));
  const factor = Number(unit);
  return (
    <div className={styles['size']}>
      <NumberInput
        {...said}
        radius="md"
        hideControls
        thousandSeparator=","
        decimalScale={factor === 1 ? 0 : 3}
        error={hasError}
        value={typeof value === 'number' ? value / factor : ''}
        onChange={(amount) => onChange(typeof amount === 'number' ? Math.round(amount * factor) : '')}
      />
      <NativeSelect
        radius="md"
        aria-label="Unit"
        data={units}
        value={unit}
        onChange={({ currentTarget }) => setUnit(currentTarget.value)}
      />
    </div>
  );
}

function unitFor(value: unknown): string {
  const bytes = typeof value === 'number' ? value : 0;
  const fitting = ['1073741824', '1048576', '1024'].find(
    (one) => bytes >= Number(one) && bytes % Number(one) === 0,
  );
  return fitting ?? '1';
}
