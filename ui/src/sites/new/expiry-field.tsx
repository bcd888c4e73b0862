import '@mantine/dates/styles.css';
import { Chip } from '@mantine/core';
import { DateInput } from '@mantine/dates';
import { useId } from 'react';
import type { Schemas } from '../../api/contract.ts';
import { exactly, hoursInWords } from '../../shell/time.ts';
import { type Expiry, hoursOf } from './draft.ts';
import shared from '../../shell/page.module.css';
import styles from '../../shell/form.module.css';

type FieldProps = {
  readonly expiry: Expiry;
  readonly ttl: Schemas['SiteCapabilities']['ttl'];
  readonly now: number;
  readonly error: string | undefined;
  readonly onChange: (expiry: Expiry) => void;
};

const hour = 3_600_000;

/** After a while, or at the end of a day from the calendar; never later than the ceiling. */
export function ExpiryField({ expiry, ttl, now, error, onChange }: FieldProps) {
  const id = useId();
  if (!ttl.enabled)
    return (
      <div className={styles['part']}>
        <p className={styles['label']}>Expires</p>
        <p className={styles['note']}>Sites do not expire here.</p>
      </div>
    );
  const offered = [24, 7 * 24, ttl.defaultHours, 90 * 24, ttl.maxHours].filter(
    (hours) => hours <= ttl.maxHours,
  );
  const presets = [...new Set(offered)].sort((a, b) => a - b);
  const hours = hoursOf(expiry, ttl, now);
  return (
    <fieldset
      className={styles['part']}
      data-field="expiry"
      aria-describedby={error === undefined ? undefined : `${id}-error`}
    >
      <legend>Expires after</legend>
      <p className={styles['note']}>
        At most {hoursInWords(ttl.maxHours)}. You are notified before it expires, and can extend it.
      </p>
      <div className={styles['chips']}>
        <Chip.Group
          value={expiry.kind === 'date' ? 'date' : String(expiry.hours)}
          onChange={(value) =>
            onChange(value === 'date' ? { kind: 'date', day: null } : { kind: 'hours', hours: Number(value) })
          }
        >
          {presets.map((one) => (
            <Chip key={one} value={String(one)}>
              {hoursInWords(one)}
            </Chip>
          ))}
          <Chip value="date">On a day</Chip>
        </Chip.Group>
      </div>
      {expiry.kind === 'date' && (
        <DateInput
          label="Last day"
          placeholder="2026-12-31"
          valueFormat="YYYY-MM-DD"
          radius="md"
          popoverProps={{ classNames: { dropdown: shared['calendar'] } }}
          value={expiry.day}
          onChange={(day) => onChange({ kind: 'date', day })}
          minDate={dayOf(now)}
          maxDate={dayOf(now + ttl.maxHours * hour)}
          hideOutsideDates
          ariaLabels={{ previousMonth: 'Month before', nextMonth: 'Month after' }}
        />
      )}
      {error !== undefined && (
        <p className={styles['error']} id={`${id}-error`} role="alert">
          {error}
        </p>
      )}
      {hours !== null && (
        <p className={styles['note']}>It expires on {exactly(now + hours * hour)}, your time.</p>
      )}
    </fieldset>
  );
}

/** A moment's day in the reader's own time zone, `2026-11-22`, as calendars want it. */
function dayOf(at: number): string {
  const date = new Date(at);
  return [date.getFullYear(), date.getMonth() + 1, date.getDate()]
    .map((part) => String(part).padStart(2, '0'))
    .join('-');
}
