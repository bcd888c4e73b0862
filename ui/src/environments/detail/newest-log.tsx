import { Skeleton } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { Moment } from '../../shell/moment.tsx';
import { Problem } from '../../shell/problem.tsx';
import { isUnderWay, shortSha } from '../environment-words.ts';
import { LogView } from '../log/log-view.tsx';
import { deploysOf } from '../queries.ts';
import { DeployBadge } from '../status-badge.tsx';
import shared from '../environments.module.css';
import type { Facts } from './facts.ts';
import styles from './detail.module.css';

/** The log of its newest deploy. */
export function NewestLog({ environment, now }: Facts) {
  const { data, error, refetch } = useQuery(deploysOf(environment.id, 1, 1, isUnderWay(environment)));
  if (error !== null) return <Problem error={error} onRetry={() => void refetch()} />;
  if (data === undefined)
    return <Skeleton height={320} radius="lg" role="status" aria-label="Loading the newest deploy" />;
  const [newest] = data.data;
  if (newest === undefined) return <div className={shared['card']}>Nothing was deployed yet.</div>;
  return (
    <>
      <p className={styles['which']}>
        <Link to="/environments/$id/deploys/$deploy" params={{ id: environment.id, deploy: newest.id }}>
          Newest deploy{newest.sha !== null && `, ${shortSha(newest.sha)}`}
        </Link>
        <DeployBadge of={newest.status} />
        <span className="quiet">
          <Moment at={newest.createdAt} now={now} />
        </span>
      </p>
      <LogView buildId={newest.id} />
    </>
  );
}
