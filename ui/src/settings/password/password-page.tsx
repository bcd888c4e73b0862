import { Alert, Anchor, Button, PasswordInput } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { api, unwrap, wrongFields } from '../../api/client.ts';
import { whoAmI } from '../../api/queries.ts';
import { Problem } from '../../shell/problem.tsx';
import { PageHead } from '../../lists/page-head.tsx';
import styles from './password.module.css';

/** Changes the user's password, if this installation manages passwords. */
export function PasswordPage() {
  const [currentPassword, setCurrent] = useState('');
  const [newPassword, setNew] = useState('');
  const { data: me } = useQuery(whoAmI);
  const change = useMutation({
    mutationFn: () => unwrap(api.POST('/me/password', { body: { currentPassword, newPassword } })),
    // The input is no longer needed, and is kept nowhere.
    onSuccess() {
      setCurrent('');
      setNew('');
    },
  });
  const wrong = wrongFields(change.error);
  const isOfNoField = change.error !== null && Object.keys(wrong).length === 0;

  function send(event: FormEvent): void {
    event.preventDefault();
    change.mutate();
  }

  return (
    <>
      <PageHead
        title="Password"
        intro="Changing it signs you out everywhere, including here, and disconnects every client. Your API keys keep working, because they do not depend on the password."
      />
      {change.isSuccess ? (
        <Alert color="green" title="Your password is changed" role="status">
          You are signed out everywhere. <Anchor href="/auth/login?returnTo=%2F">Sign in</Anchor> with the new
          one.
        </Alert>
      ) : (
        <form className={styles['form']} onSubmit={send}>
          {isOfNoField && <Problem error={change.error} />}
          {/* So that a password manager knows whose it is. */}
          <input name="username" autoComplete="username" value={me?.principal.name ?? ''} readOnly hidden />
          <PasswordInput
            label="Current password"
            autoComplete="current-password"
            maxLength={200}
            required
            value={currentPassword}
            error={wrong['currentPassword']}
            onChange={({ currentTarget }) => setCurrent(currentTarget.value)}
          />
          <PasswordInput
            label="New password"
            description="At least 12 characters; a few words are easier to remember than symbols"
            autoComplete="new-password"
            minLength={12}
            maxLength={200}
            required
            value={newPassword}
            error={wrong['newPassword']}
            onChange={({ currentTarget }) => setNew(currentTarget.value)}
          />
          <Button type="submit" loading={change.isPending} className={styles['send']}>
            Change password
          </Button>
        </form>
      )}
    </>
  );
}
