import { Alert, Button, Radio, TextInput } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { api, unwrap } from '../../api/client.ts';
import type { Schemas } from '../../api/contract.ts';
import { queryClient } from '../../api/queries.ts';
import { announce } from '../../shell/announce.tsx';
import { useNow } from '../../shell/now.ts';
import { Problem } from '../../shell/problem.tsx';
import { exactly } from '../../shell/time.ts';
import { cacheAt, type KeyHome, routesAt } from '../key-home.ts';
import type { Key } from '../key-words.ts';
import { inUtc, localText } from '../new/expiry-field.tsx';
import { FieldGroup } from '../new/field-group.tsx';
import styles from '../new/new-key.module.css';
import { narrowingOf, type Rights, rightsOf } from '../rights.ts';
import { RightsFields } from '../rights-fields.tsx';
import { useKeyForm } from '../use-key-form.ts';
import { mistakesIn } from './mistakes.ts';

/** Starts with the key's values. Only changes are sent, and an error is shown beside its field. */
export function NarrowForm({ of: key, home }: { of: Key; home: KeyHome }) {
  // The key when this page opened: a change from elsewhere must not undo the input.
  const [before] = useState(key);
  const [name, setName] = useState(before.name);
  const [rights, setRights] = useState<Rights>(() => rightsOf(before));
  /** The value of a datetime-local field; empty: the expiry does not change. */
  const [end, setEnd] = useState('');
  const navigate = useNavigate();
  const toKey = { to: `${home}/$id`, params: { id: before.id } } as const;

  const { form, errors, refusal, isBusy, fix, onSubmit } = useKeyForm({
    mistakes: () => mistakesIn({ name, rights, end }, before),
    async send() {
      const body: Schemas['KeyNarrowing'] = {
        ...(name.trim() === before.name ? {} : { name: name.trim() }),
        ...narrowingOf(before, rights),
        ...(end === '' ? {} : { expiresAt: new Date(end).toISOString() }),
      };
      if (Object.keys(body).length > 0) {
        await unwrap(api.PATCH(`${routesAt[home]}/{id}`, { params: { path: { id: before.id } }, body }));
        announce('The key is narrowed.');
        await queryClient.invalidateQueries({ queryKey: cacheAt[home] });
      }
      await navigate(toKey);
    },
  });

  if (before.status !== 'active') {
    return <Alert title="This key no longer works">It cannot be changed. Create a new key instead.</Alert>;
  }
  return (
    <form ref={form} className={styles['card']} noValidate onSubmit={onSubmit}>
      <div data-field="name" className={styles['part']}>
        <TextInput
          label="Name"
          autoComplete="off"
          maxLength={200}
          value={name}
          error={errors.name}
          onChange={({ currentTarget }) => {
            setName(currentTarget.value);
            fix('name');
          }}
        />
      </div>
      <RightsFields
        of={before}
        rights={rights}
        errors={errors}
        onChange={(field, part) => {
          setRights((now) => ({ ...now, ...part }));
          fix(field);
        }}
      />
      <EndField
        of={before}
        end={end}
        error={errors.expiry}
        onChange={(next) => {
          setEnd(next);
          fix('expiry');
        }}
      />
      <div className={styles['end']}>
        {refusal !== undefined && <Problem error={refusal} />}
        <div className={styles['buttons']}>
          <Button type="submit" loading={isBusy}>
            Narrow the key
          </Button>
          <Button variant="default" disabled={isBusy} onClick={() => void navigate(toKey)}>
            Cancel
          </Button>
        </div>
      </div>
    </form>
  );
}

type EndProps = { of: Key; end: string; error: string | undefined; onChange: (end: string) => void };

function EndField({ of: { expiresAt }, end, error, onChange }: EndProps) {
  const now = expiresAt === null ? 'It never expires' : `It expires on ${exactly(Date.parse(expiresAt))}`;
  const moment = useNow();
  return (
    <FieldGroup field="expiry" legend="Expiry" description="Only earlier than the current one." error={error}>
      <div className={styles['choices']}>
        <Radio name="end" label={`${now}, unchanged`} checked={end === ''} onChange={() => onChange('')} />
        <Radio
          name="end"
          label="Earlier"
          checked={end !== ''}
          onChange={() => onChange(localText(earlierThan(expiresAt, moment)))}
        />
      </div>
      {end !== '' && (
        <TextInput
          mt="sm"
          type="datetime-local"
          label="Expires on"
          description={inUtc(end)}
          value={end}
          {...(expiresAt === null ? {} : { max: localText(Date.parse(expiresAt)) })}
          onChange={({ currentTarget }) => onChange(currentTarget.value)}
        />
      )}
    </FieldGroup>
  );
}

/** The initial value: tomorrow, or half of the remaining time if that is less. */
function earlierThan(expiresAt: string | null, now: number): number {
  const tomorrow = now + 24 * 3_600_000;
  return expiresAt === null ? tomorrow : Math.min(tomorrow, (now + Date.parse(expiresAt)) / 2);
}
