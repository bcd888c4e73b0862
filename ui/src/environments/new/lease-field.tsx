import { Chip } from '@mantine/core';
import { useId } from 'react';
import type { EnvironmentPolicy } from '../../shell/environment-policy.ts';
import { exactly, hoursInWords } from '../../shell/time.ts';
import { useEnvironmentsNow } from '../environments-now.ts';
import styles from './new.module.css';

type FieldProps = {
  readonly hours: number;
  readonly offered: readonly number[];
  readonly policy: Pick<EnvironmentPolicy, 'maxTtlHours' | 'extensionHours'>;
  readonly error: string | undefined;
  readonly onChange: (hours: number) => void;
};

const hourMs = 3_600_000;

export function LeaseField({ hours, offered, policy, error, onChange }: FieldProps) {
  const id = useId();
  const now = useEnvironmentsNow();
  return (
    <fieldset
      className={styles['part']}
      data-field="ttlHours"
      aria-describedby={error === undefined ? undefined : `${id}-error`}
    >
      <legend>Lease</legend>
      <p className={styles['note']}>
        At most {hoursInWords(policy.maxTtlHours)}. When the lease ends, the Environment is torn down. You can
        extend the lease by {hoursInWords(policy.extensionHours)} at a time.
      </p>
      <div className={styles['chips']}>
        <Chip.Group value={String(hours)} onChange={(value) => onChange(Number(value))}>
          {offered.map((one) => (
            <Chip key={one} value={String(one)}>
              {hoursInWords(one)}
            </Chip>
          ))}
        </Chip.Group>
      </div>
      {error !== undefined && (
        <p className={styles['error']} id={`${id}-error`} role="alert">
          {error}
        </p>
      )}
      <p className={styles['note']}>The lease ends on {exactly(now + hours * hourMs)}, your time.</p>
    </fieldset>
  );
}
