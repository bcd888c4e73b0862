import { Alert, Checkbox, Chip, TextInput } from '@mantine/core';
import { exactly, hoursInWords } from '../../shell/time.ts';
import type { Expiry, Policy } from './draft.ts';
import { FieldGroup } from './field-group.tsx';
import styles from './new-key.module.css';

type ExpiryProps = {
  expiry: Expiry;
  lifetime: Policy['lifetime'];
  now: number;
  error: string | undefined;
  onChange: (expiry: Expiry) => void;
};

/** The lifetimes that the policy offers. A forbidden choice is shown with its reason. */
export function ExpiryField({ expiry, lifetime, now, error, onChange }: ExpiryProps) {
  const { defaultTtlHours, maxTtlHours, offeredTtlHours, allowNoExpiry } = lifetime;
  const chosen = expiry.kind === 'hours' ? [expiry.hours] : [];
  const hours = [...new Set([...offeredTtlHours, defaultTtlHours, ...chosen])]
    .filter((one) => one <= maxTtlHours)
    .sort((a, b) => a - b);
  const value = expiry.kind === 'hours' ? String(expiry.hours) : expiry.kind;

  function choose(next: string): void {
    if (next === 'never') onChange({ kind: 'never', isAccepted: false });
    else if (next === 'custom')
      onChange({ kind: 'custom', at: localText(now + defaultTtlHours * 3_600_000) });
    else onChange({ kind: 'hours', hours: Number(next) });
  }

  return (
    <FieldGroup
      field="expiry"
      legend="Expires after"
      description={`${allowNoExpiry ? 'Keys with an expiry last up to' : 'At most'} ${hoursInWords(maxTtlHours)}. The shorter the lifetime, the less a leaked key is worth.`}
      error={error}
    >
      <div className={styles['chips']}>
        <Chip.Group value={value} onChange={choose}>
          {hours.map((one) => (
            <Chip key={one} value={String(one)}>
              {hoursInWords(one)}
            </Chip>
          ))}
          <Chip value="custom">Custom</Chip>
          <Chip value="never" disabled={!allowNoExpiry}>
            No expiry
          </Chip>
        </Chip.Group>
      </div>
      {!allowNoExpiry && (
        <p className={styles['note']}>The key policy does not allow keys without an expiry.</p>
      )}
      {expiry.kind === 'hours' && (
        <p className={styles['note']}>It expires on {exactly(now + expiry.hours * 3_600_000)}, your time.</p>
      )}
      {expiry.kind === 'custom' && (
        <TextInput
          mt="sm"
          type="datetime-local"
          label="Expires on"
          description={inUtc(expiry.at)}
          max={localText(now + maxTtlHours * 3_600_000)}
          value={expiry.at}
          onChange={({ currentTarget }) => onChange({ kind: 'custom', at: currentTarget.value })}
        />
      )}
      {expiry.kind === 'never' && (
        <Alert color="yellow" mt="sm" title="A key that never expires">
          <p className={styles['risk']}>
            If it leaks, it works until someone notices. Prefer a lifetime, and replace the key when it
            expires.
          </p>
          <Checkbox
            label="I understand this key works until someone revokes it"
            checked={expiry.isAccepted}
            onChange={({ currentTarget }) => onChange({ kind: 'never', isAccepted: currentTarget.checked })}
          />
        </Alert>
      )}
    </FieldGroup>
  );
}

/** The value of a datetime-local field: the user's local time, to the minute. */
export function localText(at: number): string {
  return new Date(at - new Date(at).getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

export function inUtc(at: string): string {
  const ms = Date.parse(at);
  return Number.isNaN(ms)
    ? 'Your time'
    : `Your time; ${new Date(ms).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}
