import { Skeleton } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Problem } from '../../shell/problem.tsx';
import { capabilities } from '../queries.ts';
import { SitesClosed } from '../sites-off.tsx';
import styles from '../../shell/form.module.css';
import { NewSite } from './new-site.tsx';
import { NewSiteHead } from './new-site-head.tsx';

export function NewSitePage() {
  const { data, error, refetch } = useQuery(capabilities);
  if (data?.enabled === false) return <SitesClosed title="New site" why="off" />;
  return (
    <div className={styles['page']}>
      {data === undefined && <NewSiteHead title="New site">New site</NewSiteHead>}
      {data === undefined && error !== null && <Problem error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && (
        <Skeleton height={420} radius="lg" aria-label="Loading" role="status" />
      )}
      {data !== undefined && <NewSite capabilities={data} />}
    </div>
  );
}
