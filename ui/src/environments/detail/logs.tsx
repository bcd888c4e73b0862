import { SegmentedControl, Skeleton } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { Moment } from '../../shell/moment.tsx';
import { Problem } from '../../shell/problem.tsx';
import { isEnding, isUnderWay, shortSha } from '../environment-words.ts';
import { LogView } from '../log/log-view.tsx';
import { deploysOf } from '../queries.ts';
import { DeployBadge } from '../status-badge.tsx';
import shared from '../../shell/page.module.css';
import type { Facts } from './facts.ts';
import styles from './detail.module.css';

type LogsProps = Facts & {
  readonly isOfProcesses: boolean;
  readonly onSource: (source: 'processes' | undefined) => void;
};

/** The log of its newest deploy, or of its running processes. */
export function Logs({ isOfProcesses, onSource, ...facts }: LogsProps) {
  const { environment } = facts;
  // Static files write no log, and the log of a removed process is deleted.
  const hasProcesses = !isEnding(environment) && environment.services.some(({ kind }) => kind === 'process');
  return (
    <>
      {hasProcesses && (
        <SegmentedControl
          mb="sm"
          aria-label="Which log"
          value={isOfProcesses ? 'processes' : 'deploy'}
          onChange={(value) => onSource(value === 'processes' ? value : undefined)}
          data={[
            { value: 'deploy', label: 'Newest deploy' },
            { value: 'processes', label: 'Running processes' },
          ]}
        />
      )}
      {hasProcesses && isOfProcesses ? (
        <LogView source={{ kind: 'environments', id: environment.id }} />
      ) : (
        <NewestLog {...facts} />
      )}
    </>
  );
}

function NewestLog({ environment, now }: Facts) {
  const { data, error, refetch } = useQuery(deploysOf(environment.id, 1, 1, isUnderWay(environment)));
  if (error !== null) return <Problem error={error} onRetry={() => void refetch()} />;
  if (data === undefined)
    return <Skeleton height={320} radius="lg" role="status" aria-label="Loading the newest deploy" />;
  const [newest] = data.data;
  if (newest === undefined) return <div className={shared['roomy']}>Nothing has been deployed yet.</div>;
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
      <LogView source={{ kind: 'builds', id: newest.id }} />
    </>
  );
}
