import { Badge, Skeleton } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { AddressPages } from '../../lists/pages.tsx';
import { Moment } from '../../shell/moment.tsx';
import { Problem } from '../../shell/problem.tsx';
import { type Deploy, type Environment, isUnderWay, shortSha, triggerWords } from '../environment-words.ts';
import { deploysOf } from '../queries.ts';
import { DeployBadge } from '../status-badge.tsx';
import shared from '../../shell/page.module.css';
import { deployCreator, tookWords } from './deploy-facts.ts';
import { StepTimeline } from './step-timeline.tsx';
import styles from './deploys.module.css';

const pageSize = 10;

type ListProps = {
  readonly of: Environment;
  readonly me: string | undefined;
  readonly now: number;
  readonly page: number;
};

/** The deploys of an Environment, newest first, each with its steps. */
export function DeployList({ of: environment, me, now, page }: ListProps) {
  const found = useQuery(deploysOf(environment.id, page, pageSize, isUnderWay(environment)));
  if (found.error !== null) return <Problem error={found.error} onRetry={() => void found.refetch()} />;
  if (found.data === undefined)
    return <Skeleton height={240} radius="lg" role="status" aria-label="Loading the deploys" />;
  const { data: deploys, metadata } = found.data;
  if (deploys.length === 0) return <div className={shared['roomy']}>Nothing has been deployed yet.</div>;
  return (
    <>
      <ol className={`${shared['stack']} ${shared['plain']}`} aria-label="Deploys">
        {deploys.map((deploy) => (
          <li key={deploy.id} className={styles['deploy']}>
            <DeployLine of={deploy} me={me} now={now} />
            {deploy.message !== null && <p className={styles['problem']}>{deploy.message}</p>}
            <StepTimeline of={deploy} now={now} />
          </li>
        ))}
      </ol>
      <AddressPages total={metadata.pagination.total} />
    </>
  );
}

function DeployLine({ of: deploy, me, now }: { of: Deploy; me: string | undefined; now: number }) {
  const took = tookWords(deploy, now);
  return (
    <div className={styles['line']}>
      <h2>
        <Link
          to="/environments/$id/deploys/$deploy"
          params={{ id: deploy.environment.id, deploy: deploy.id }}
        >
          {deploy.sha === null ? 'Deploy' : <code>{shortSha(deploy.sha)}</code>}
          <span className="unseen"> of {deploy.branch}</span>
        </Link>
      </h2>
      <DeployBadge of={deploy.status} />
      {deploy.isLive && <Badge color="green">Live</Badge>}
      {deploy.commitSubject !== null && <bdi>{deploy.commitSubject}</bdi>}
      <span>
        {triggerWords[deploy.trigger]} · <bdi>{deployCreator(deploy, me)}</bdi> ·{' '}
        <Moment at={deploy.createdAt} now={now} />
        {took !== null && ` · ${took}`}
      </span>
    </div>
  );
}
