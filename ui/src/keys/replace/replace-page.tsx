import { Alert, Anchor, Skeleton, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { Problem } from '../../shell/problem.tsx';
import { FreshSignIn } from '../../shell/fresh-sign-in.tsx';
import type { Key } from '../key-words.ts';
import styles from '../new/new-key.module.css';
import { Changeover } from './changeover.tsx';
import { ReplaceForm } from './replace-form.tsx';
import { Steps } from './steps.tsx';
import { myKey, myPolicy } from '../queries.ts';

const route = getRouteApi('/settings/keys/$id/replace');

/**
 * Replaces a key without a moment in which neither works. The keys themselves tell the step, so the user can leave the page and return.
 */
export function ReplacePage() {
  const { id } = route.useParams();
  const { data: key, error, refetch } = useQuery(myKey(id));
  return (
    <div className={styles['page']}>
      <title>Replace a key · Postern</title>
      <Anchor size="sm" renderRoot={(props) => <Link to="/settings/keys/$id" params={{ id }} {...props} />}>
        ← <bdi>{key?.name ?? 'The key'}</bdi>
      </Anchor>
      <Title order={1} size="h2" mt={4}>
        Replace this key
      </Title>
      <p className={styles['lead']}>
        A new key takes over, and the old one expires after the new one is in use. Until then both work.
      </p>
      {key === undefined && error !== null && <Problem error={error} onRetry={() => void refetch()} />}
      {key === undefined && error === null && (
        <Skeleton height={420} radius="lg" aria-label="Loading the key" role="status" />
      )}
      {key !== undefined && <Where of={key} />}
    </div>
  );
}

function Where({ of: key }: { of: Key }) {
  const { data: policy, error, refetch } = useQuery(myPolicy);
  if (key.replacedBy !== null) return <Changeover old={key} newId={key.replacedBy} />;
  if (key.status !== 'active') {
    return <Alert title="This key no longer works">It needs no replacement. Create a new key instead.</Alert>;
  }
  if (policy === undefined) {
    return error === null ? (
      <Skeleton height={420} radius="lg" aria-label="Loading the policy" role="status" />
    ) : (
      <Problem error={error} onRetry={() => void refetch()} />
    );
  }
  return (
    <>
      <Steps at={1} />
      <FreshSignIn>
        <ReplaceForm key={key.id} of={key} policy={policy} />
      </FreshSignIn>
    </>
  );
}
