import { Anchor, Skeleton, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { Problem } from '../../shell/problem.tsx';
import type { KeyHome } from '../key-home.ts';
import styles from '../new/new-key.module.css';
import { NarrowForm } from './narrow-form.tsx';
import { keyAt } from '../queries.ts';

const route = getRouteApi('/settings/keys/$id/narrow');

/** Removes rights, repositories or lifetime from one of the user's keys, or renames it. */
export function NarrowPage() {
  const { id } = route.useParams();
  return <Narrow home="/settings/keys" id={id} />;
}

export function Narrow({ home, id }: { home: KeyHome; id: string }) {
  const { data: key, error, refetch } = useQuery(keyAt(home, id));
  return (
    <div className={styles['page']}>
      <title>Narrow a key · Postern</title>
      <Anchor size="sm" renderRoot={(props) => <Link to={`${home}/$id`} params={{ id }} {...props} />}>
        ← <bdi>{key?.name ?? 'The key'}</bdi>
      </Anchor>
      <Title order={1} size="h2" mt={4}>
        Narrow this key
      </Title>
      <p className={styles['lead']}>
        The key immediately loses what you take away, everywhere. You cannot give it back: wider rights need a
        new key.
      </p>
      {key === undefined && error !== null && <Problem error={error} onRetry={() => void refetch()} />}
      {key === undefined && error === null && (
        <Skeleton height={420} radius="lg" aria-label="Loading the key" role="status" />
      )}
      {key !== undefined && <NarrowForm key={key.id} of={key} home={home} />}
    </div>
  );
}
