import { Button, TextInput } from '@mantine/core';
import { useState } from 'react';
import { api, unwrap } from '../../api/client.ts';
import { Problem } from '../../shell/problem.tsx';
import shared from '../../shell/page.module.css';
import { useChange } from '../../shell/use-change.ts';
import styles from './detail.module.css';

type TakeDownProps = {
  readonly id: string;
  /** What an administrator may know; nothing about another person's site that is not served. */
  readonly standing: 'served' | 'taken_down' | 'unknown';
};

/** Takes down or reinstates a site, without showing its content to the administrator. */
export function TakeDown({ id, standing }: TakeDownProps) {
  const [reason, setReason] = useState('');
  const [done, setDone] = useState('');
  const body = { reason: reason.trim() };
  const down = useChange({
    act: () => unwrap(api.POST('/sites/{id}/take-down', { params: { path: { id } }, body })),
    said: 'The site is taken down.',
    refresh: ['sites'],
    onDone: () => setDone('The site is taken down. Its owner can read the reason.'),
  });
  const back = useChange({
    act: () => unwrap(api.POST('/sites/{id}/put-back', { params: { path: { id } }, body })),
    said: 'The site is reinstated.',
    refresh: ['sites'],
    onDone: () => setDone('The site is reinstated and served as before.'),
  });
  const error = down.error ?? back.error;
  const hasReason = body.reason !== '';
  return (
    <section className={shared['card']} aria-labelledby="administrator">
      <h2 id="administrator">As an administrator</h2>
      <p className={shared['hint']}>
        You can take a site down immediately, everywhere, without seeing its content. Its owner can read your
        reason, and the audit log keeps it. Site <code>{id}</code>.
      </p>
      <div className={styles['form']}>
        <TextInput
          label="Reason"
          placeholder="Phishing, reported by the bank"
          maxLength={500}
          autoComplete="off"
          value={reason}
          onChange={({ currentTarget }) => setReason(currentTarget.value)}
        />
        {standing !== 'taken_down' && (
          <Button color="red" disabled={!hasReason} loading={down.isBusy} onClick={down.run}>
            Take it down
          </Button>
        )}
        {standing !== 'served' && (
          <Button variant="default" disabled={!hasReason} loading={back.isBusy} onClick={back.run}>
            Reinstate it
          </Button>
        )}
      </div>
      {error !== undefined && <Problem error={error} />}
      <p role="status" className={shared['reason']}>
        {done}
      </p>
    </section>
  );
}
