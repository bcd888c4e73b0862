import { Button } from '@mantine/core';
import { useState } from 'react';
import { contextOfKey } from '../../api/client.ts';
import type { Schemas } from '../../api/contract.ts';
import { Problem } from '../../shell/problem.tsx';
import { exactly } from '../../shell/time.ts';
import styles from './issued-dialog.module.css';

/** Sends one request with the key, to prove that it works before the user stores it elsewhere. */
export function VerifyKey({ token }: { token: string }) {
  const [context, setContext] = useState<Schemas['Context']>();
  const [error, setError] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);

  async function verify(): Promise<void> {
    setBusy(true);
    setError(undefined);
    try {
      setContext(await contextOfKey(token));
    } catch (failure) {
      setError(failure);
    } finally {
      setBusy(false);
    }
  }

  if (error !== undefined) return <Problem error={error} onRetry={() => void verify()} />;
  return (
    <div className={styles['verify']}>
      <Button size="compact-sm" variant="default" loading={isBusy} onClick={() => void verify()}>
        Verify now
      </Button>
      <span role="status">{context === undefined ? '' : wordsOf(context)}</span>
    </div>
  );
}

function wordsOf({ keyType, effectiveScopes, repositories: reach, expiresAt }: Schemas['Context']): string {
  const where = reach.mode === 'all' ? 'all repositories' : reach.repositories.join(', ');
  const end = expiresAt === null ? 'without expiry' : `until ${exactly(Date.parse(expiresAt))}`;
  return `It works: ${effectiveScopes?.join(', ') ?? ''}; on ${where}; a ${keyType} key ${end}.`;
}
