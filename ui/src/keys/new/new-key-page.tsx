import { Alert, Anchor, Skeleton, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { useRef, useState } from 'react';
import { api, dataOf } from '../../api/client.ts';
import { queryClient } from '../../api/queries.ts';
import { useNow } from '../../shell/now.ts';
import { Problem } from '../../shell/problem.tsx';
import type { Key } from '../key-words.ts';
import { LimitReached } from '../limit-reached.tsx';
import { RevokeDialog } from '../revoke-dialog.tsx';
import { NewKeyForm } from './new-key-form.tsx';
import styles from './new-key.module.css';
import { myPolicy } from '../queries.ts';
import { focusIfLost } from '../../shell/focus.ts';
import { FreshSignIn } from '../../shell/fresh-sign-in.tsx';

const route = getRouteApi('/settings/keys/new');

export function NewKeyPage() {
  const prefill = route.useSearch();
  const navigate = useNavigate();
  const { data: policy, error, refetch } = useQuery(myPolicy);
  const [revoking, setRevoking] = useState<Key>();
  const heading = useRef<HTMLHeadingElement>(null);
  const now = useNow() + (policy?.clockOffsetMs ?? 0);
  // Revoking a key helps only if nothing else prevents a new one.
  const isFull = policy?.reasons.every(({ code }) => code === 'personal_token_limit') === true;

  async function finish(): Promise<void> {
    await queryClient.invalidateQueries({ queryKey: ['keys'] });
    await navigate({ to: '/settings/keys', ignoreBlocker: true });
  }

  return (
    <div className={styles['page']}>
      <title>New key · Postern</title>
      <Anchor component={Link} to="/settings/keys" size="sm">
        ← API keys
      </Anchor>
      <Title order={1} size="h2" mt={4} mb="md" tabIndex={-1} ref={heading}>
        New key
      </Title>
      {policy === undefined && error !== null && <Problem error={error} onRetry={() => void refetch()} />}
      {policy === undefined && error === null && (
        <Skeleton height={420} radius="lg" aria-label="Loading" role="status" />
      )}
      {policy?.canCreate === false && isFull && <LimitReached now={now} onRevoke={setRevoking} />}
      {policy?.canCreate === false && !isFull && (
        <Alert color="yellow" title="You cannot create a key now" mb="md">
          {policy.reasons.map(({ message }) => message).join(' ')}{' '}
          <Anchor component={Link} to="/settings/keys" inherit underline="always">
            See your keys
          </Anchor>
        </Alert>
      )}
      {policy !== undefined && (
        <FreshSignIn>
          <NewKeyForm
            policy={policy}
            prefill={prefill}
            onCreate={(body) => dataOf(api.POST('/me/tokens', { body }))}
            onStored={finish}
          />
        </FreshSignIn>
      )}
      <RevokeDialog
        revoking={revoking}
        now={now}
        onClose={() => setRevoking(undefined)}
        onRevoked={() => focusIfLost(heading.current)}
      />
    </div>
  );
}
