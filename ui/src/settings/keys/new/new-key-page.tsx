import { Alert, Anchor, Skeleton, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { call } from '../../../api/client.ts';
import { myPolicy, queryClient } from '../../../api/queries.ts';
import { Problem } from '../../../app/problem.tsx';
import { NewKeyForm } from './new-key-form.tsx';
import styles from './new-key.module.css';

const route = getRouteApi('/settings/keys/new');

export function NewKeyPage() {
  const prefill = route.useSearch();
  const navigate = useNavigate();
  const { data: policy, error, refetch } = useQuery(myPolicy);

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
      <Title order={1} size="h2" mt={4} mb="md">
        New key
      </Title>
      {policy === undefined && error !== null && <Problem error={error} onRetry={() => void refetch()} />}
      {policy === undefined && error === null && (
        <Skeleton height={420} radius="lg" aria-label="Loading" role="status" />
      )}
      {policy?.canCreate === false && (
        <Alert color="yellow" title="You cannot create a key now" mb="md">
          {policy.reasons.map(({ message }) => message).join(' ')}{' '}
          <Anchor component={Link} to="/settings/keys" inherit underline="always">
            See your keys
          </Anchor>
        </Alert>
      )}
      {policy !== undefined && (
        <NewKeyForm
          policy={policy}
          prefill={prefill}
          onCreate={async (body) => (await call('POST /me/tokens', { body })).data}
          onStored={finish}
        />
      )}
    </div>
  );
}
