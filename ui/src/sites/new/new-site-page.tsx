import { Anchor, Skeleton, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { Problem } from '../../app/problem.tsx';
import { capabilities } from '../queries.ts';
import { SitesClosed } from '../sites-off.tsx';
import styles from './form.module.css';
import { NewSite } from './new-site.tsx';

export function NewSitePage() {
  const { data, error, refetch } = useQuery(capabilities);
  if (data?.enabled === false) return <SitesClosed title="New site" why="off" />;
  return (
    <div className={styles['page']}>
      <title>New site · Postern</title>
      <div>
        <Anchor component={Link} to="/sites" size="sm">
          ← Sites
        </Anchor>
        <Title order={1} size="h2" mt={4}>
          New site
        </Title>
      </div>
      {data === undefined && error !== null && <Problem error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && (
        <Skeleton height={420} radius="lg" aria-label="Loading" role="status" />
      )}
      {data !== undefined && <NewSite capabilities={data} />}
    </div>
  );
}
