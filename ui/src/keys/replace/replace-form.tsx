import { Button, Radio, TextInput } from '@mantine/core';
import { useBlocker } from '@tanstack/react-router';
import { useState } from 'react';
import { flushSync } from 'react-dom';
import { api, unwrap } from '../../api/client.ts';
import type { Schemas } from '../../api/contract.ts';
import { queryClient } from '../../api/queries.ts';
import { announce } from '../../shell/announce.tsx';
import { useNow } from '../../shell/now.ts';
import { Problem } from '../../shell/problem.tsx';
import type { Key } from '../key-words.ts';
import { mistakesInRights } from '../narrow/mistakes.ts';
import { type Expiry, lifetimeOf, mistakeInExpiry, type Policy } from '../new/draft.ts';
import { ExpiryField } from '../new/expiry-field.tsx';
import { IssuedDialog } from '../new/issued-dialog.tsx';
import styles from '../new/new-key.module.css';
import { narrowingOf, type Rights, rightsOf } from '../rights.ts';
import { RightsFields } from '../rights-fields.tsx';
import { useKeyForm } from '../use-key-form.ts';
import { type Overlap, OverlapField, usualOverlap, verifyNote } from './overlap-field.tsx';

type FormProps = { of: Key; policy: Policy & { clockOffsetMs: number } };

/** The first two steps: what the new key may do, and its value, shown once. */
export function ReplaceForm({ of: key, policy }: FormProps) {
  const [before] = useState(key);
  const [name, setName] = useState(before.name);
  const [rights, setRights] = useState<Rights>(() => rightsOf(before));
  /** Undefined: the lifetime of the old key. */
  const [expiry, setExpiry] = useState<Expiry>();
  const [overlap, setOverlap] = useState<Overlap>(usualOverlap);
  const [issued, setIssued] = useState<Schemas['RotatedKey']>();
  const now = useNow() + policy.clockOffsetMs;
  // While a value is shown that may not be stored yet, the browser asks before the user leaves the page.
  useBlocker({ shouldBlockFn: () => issued !== undefined, enableBeforeUnload: issued !== undefined });

  const { form, errors, refusal, isBusy, fix, onSubmit } = useKeyForm({
    mistakes: () => ({
      ...(name.trim() === '' ? { name: 'Give it a name.' } : {}),
      ...mistakesInRights(rights, before),
      ...(expiry === undefined ? {} : mistakeInExpiry(expiry, policy, now)),
    }),
    async send() {
      const { data } = await unwrap(
        api.POST('/me/tokens/{id}/rotate', {
          params: { path: { id: before.id } },
          body: {
            ...(name.trim() === before.name ? {} : { name: name.trim() }),
            ...narrowingOf(before, rights),
            ...(expiry === undefined ? {} : lifetimeOf(expiry)),
            ...overlap,
          },
        }),
      );
      setIssued(data);
      announce('The new key is created. Store its value now.');
    },
  });
  function changeExpiry(next: Expiry | undefined): void {
    setExpiry(next);
    fix('expiry');
  }

  async function finish(): Promise<void> {
    // Before anything else, so that no later step can keep the value alive.
    flushSync(() => setIssued(undefined));
    await queryClient.invalidateQueries({ queryKey: ['keys'] });
  }

  return (
    <form ref={form} className={styles['card']} noValidate onSubmit={onSubmit}>
      <div data-field="name" className={styles['part']}>
        <TextInput
          label="Name of the new key"
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
          setRights((current) => ({ ...current, ...part }));
          fix(field);
        }}
      />
      <LifetimeChoice isSame={expiry === undefined} of={before} onChange={changeExpiry} policy={policy} />
      {expiry !== undefined && (
        <ExpiryField
          expiry={expiry}
          lifetime={policy.lifetime}
          now={now}
          error={errors.expiry}
          onChange={changeExpiry}
        />
      )}
      <OverlapField overlap={overlap} onChange={setOverlap} />
      <div className={styles['end']}>
        {refusal !== undefined && <Problem error={refusal} />}
        <Button type="submit" loading={isBusy}>
          Create the new key
        </Button>
      </div>
      <IssuedDialog issued={issued} verifyNote={verifyNote} onStored={() => void finish()} />
    </form>
  );
}

type LifetimeProps = {
  of: Key;
  policy: Policy;
  isSame: boolean;
  onChange: (expiry: Expiry | undefined) => void;
};

function LifetimeChoice({ of: key, policy, isSame, onChange }: LifetimeProps) {
  const same = key.expiresAt === null ? 'No expiry, like the old one' : 'The same lifetime as the old one';
  return (
    <fieldset className={styles['part']}>
      <legend>Lifetime</legend>
      <p className={styles['hint']}>Counted from now.</p>
      <div className={styles['choices']}>
        <Radio name="lifetime" label={same} checked={isSame} onChange={() => onChange(undefined)} />
        <Radio
          name="lifetime"
          label="Another"
          checked={!isSame}
          onChange={() => onChange({ kind: 'hours', hours: policy.lifetime.defaultTtlHours })}
        />
      </div>
    </fieldset>
  );
}
