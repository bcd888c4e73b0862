import { Alert, Anchor, Badge, Button, Skeleton, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { api, ApiProblem, dataOf, unwrap } from '../../api/client.ts';
import { whoAmI } from '../../api/queries.ts';
import { RefreshIcon } from '../../shell/icons.tsx';
import { Moment } from '../../shell/moment.tsx';
import { Problem } from '../../shell/problem.tsx';
import { useChange } from '../../shell/use-change.ts';
import {
  type Deploy,
  deployStatusWords,
  hasEnded,
  isDeploy,
  shortSha,
  triggerWords,
} from '../environment-words.ts';
import { useEnvironmentsNow } from '../environments-now.ts';
import { LinksCard } from '../links-card.tsx';
import { LogView } from '../log/log-view.tsx';
import { NoSuchEnvironment } from '../no-such-environment.tsx';
import { ProblemTable } from '../problem-table.tsx';
import { oneDeploy } from '../queries.ts';
import { DeployBadge } from '../status-badge.tsx';
import shared from '../../shell/page.module.css';
import { deployCreator, tookWords } from './deploy-facts.ts';
import { StepTimeline } from './step-timeline.tsx';

const route = getRouteApi('/environments/$id/deploys/$deploy');

/** One deploy: its steps, what went wrong and how to fix it, and its log. */
export function DeployPage() {
  const { deploy: id } = route.useParams();
  const { data: deploy, error, refetch } = useQuery(oneDeploy(id));
  if (error instanceof ApiProblem && error.status === 404) return <NoSuchEnvironment what="deploy" />;
  if (error !== null) return <Problem error={error} onRetry={() => void refetch()} />;
  if (deploy === undefined) return <Skeleton height={420} radius="lg" aria-label="Loading" role="status" />;
  return isDeploy(deploy) ? <Shown deploy={deploy} /> : <NoSuchEnvironment what="deploy" />;
}

function Shown({ deploy }: { deploy: Deploy }) {
  const me = useQuery(whoAmI).data?.principal.id ?? undefined;
  const now = useEnvironmentsNow(!hasEnded(deploy));
  const { environment, sha } = deploy;
  const took = tookWords(deploy, now);
  const name = sha === null ? 'Deploy' : `Deploy of ${shortSha(sha)}`;
  return (
    <>
      <title>{`${name} · ${environment.uuid} · Postern`}</title>
      <Anchor
        size="sm"
        className="wrap"
        renderRoot={(props) => (
          <Link
            to="/environments/$id"
            params={{ id: environment.id }}
            search={{ tab: 'deploys' }}
            {...props}
          />
        )}
      >
        ← <bdi>{environment.uuid}</bdi>
      </Anchor>
      <div className={shared['head']}>
        <div className={shared['intro']}>
          <div className={shared['title']}>
            <Title order={1} size="h2">
              {name}
            </Title>
            <DeployBadge of={deploy.status} />
            {deploy.isLive && <Badge color="green">Live</Badge>}
            <span role="status" className="unseen">
              {deployStatusWords[deploy.status][0]}
            </span>
          </div>
          <div className={shared['facts']}>
            {deploy.commitSubject !== null && <bdi>{deploy.commitSubject}</bdi>}
            <span>
              {deploy.repository}, <bdi>{deploy.branch}</bdi>
            </span>
            <span>{triggerWords[deploy.trigger]}</span>
            <bdi>{deployCreator(deploy, me)}</bdi>
            <Moment at={deploy.createdAt} now={now} />
            {took !== null && <span>{took}</span>}
          </div>
        </div>
        {hasEnded(deploy) ? <Retry of={deploy} /> : <Cancel of={deploy} />}
      </div>
      <div className={shared['stack']}>
        {deploy.message !== null && (
          <Alert color={isWrong(deploy) ? 'red' : 'blue'} title={deploy.message}>
            {deploy.fix}
          </Alert>
        )}
        {deploy.problems.length > 0 && (
          <section>
            <Title order={2} size="h4" mb="xs">
              Problems in postern.yaml
            </Title>
            <ProblemTable problems={deploy.problems} />
          </section>
        )}
        <section className={shared['roomy']} aria-labelledby="steps">
          <h2 id="steps">Steps</h2>
          <StepTimeline of={deploy} now={now} />
        </section>
        <LinksCard links={deploy.links} />
        <div>
          <Title order={2} size="h4" mb="xs">
            Log
          </Title>
          <LogView source={{ kind: 'builds', id: deploy.id }} />
        </div>
      </div>
    </>
  );
}

function isWrong({ status }: Deploy): boolean {
  return status === 'error' || status === 'config_error';
}

function Cancel({ of: { id } }: { of: Deploy }) {
  const { run, error, isBusy } = useChange({
    act: () => unwrap(api.POST('/builds/{id}/cancel', { params: { path: { id } } })),
    said: 'The deploy is cancelled. The live deploy does not change.',
    refresh: ['environments'],
  });
  return <Act label="Cancel the deploy" run={run} error={error} isBusy={isBusy} />;
}

function Retry({ of: { id, environment, status, isLive } }: { of: Deploy }) {
  const navigate = useNavigate();
  const isRollback = status === 'deployed' && !isLive;
  const { run, error, isBusy } = useChange({
    act: async () => {
      const next = await dataOf(api.POST('/builds/{id}/retry', { params: { path: { id } } }));
      await navigate({
        to: '/environments/$id/deploys/$deploy',
        params: { id: environment.id, deploy: next.id },
      });
    },
    said: isRollback ? 'The rollback is queued.' : 'The deploy is queued.',
    refresh: ['environments'],
  });
  const label = isRollback ? 'Roll back to this commit' : 'Deploy this commit again';
  return <Act label={label} run={run} error={error} isBusy={isBusy} isAgain />;
}

type ActProps = ReturnType<typeof useChange> & {
  readonly label: string;
  readonly isAgain?: boolean;
};

function Act({ label, run, error, isBusy, isAgain = false }: ActProps) {
  return (
    <div>
      <Button
        variant="default"
        loading={isBusy}
        onClick={run}
        {...(isAgain && { leftSection: <RefreshIcon size={16} /> })}
      >
        {label}
      </Button>
      {error !== undefined && (
        <Text component="div" size="sm" mt="xs" maw="24rem">
          <Problem error={error} />
        </Text>
      )}
    </div>
  );
}
