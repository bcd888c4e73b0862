import { Alert, Anchor, Skeleton, Tabs, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { ApiProblem } from '../../api/client.ts';
import { whoAmI } from '../../api/queries.ts';
import { environmentPolicy } from '../../shell/environment-policy.ts';
import { Problem } from '../../shell/problem.tsx';
import { DeployList } from '../deploys/deploy-list.tsx';
import { creatorWords, isEnding, isRowOnly, isUnderWay, statusWords } from '../environment-words.ts';
import { useEnvironmentsNow } from '../environments-now.ts';
import { OffNote } from '../environments-off.tsx';
import { Lease } from '../lease.tsx';
import { NoSuchEnvironment } from '../no-such-environment.tsx';
import { oneEnvironment } from '../queries.ts';
import { EnvironmentBadge } from '../status-badge.tsx';
import shared from '../../shell/page.module.css';
import { Actions } from './actions.tsx';
import { type DetailTab, detailSearch, detailTabs } from './detail-search.ts';
import { Events } from './events.tsx';
import { Explanation } from './explanation.tsx';
import type { Facts } from './facts.ts';
import { Logs } from './logs.tsx';
import { Overview } from './overview.tsx';
import { Settings } from './settings.tsx';
import { StatusNote } from './status-note.tsx';

const route = getRouteApi('/environments/$id');
const labels: Readonly<Record<DetailTab, string>> = {
  overview: 'Overview',
  log: 'Log',
  deploys: 'Deploys',
  events: 'Events',
  why: 'Why',
  settings: 'Settings',
};

/** One Environment: its state, its URLs, and its actions. */
export function EnvironmentPage() {
  const { id } = route.useParams();
  const environment = useQuery(oneEnvironment(id));
  const policy = useQuery(environmentPolicy);
  const me = useQuery(whoAmI);
  const now = useEnvironmentsNow(environment.data !== undefined && isUnderWay(environment.data));
  const error = environment.error ?? policy.error;
  if (error instanceof ApiProblem && error.status === 404) return <NoSuchEnvironment what="Environment" />;
  if (error !== null)
    return (
      <Problem error={error} onRetry={() => void Promise.all([environment.refetch(), policy.refetch()])} />
    );
  if (environment.data === undefined || policy.data === undefined)
    return <Skeleton height={420} radius="lg" aria-label="Loading" role="status" />;
  return (
    <Shown
      environment={environment.data}
      policy={policy.data}
      me={me.data?.principal.id ?? undefined}
      now={now}
    />
  );
}

function Shown(facts: Facts) {
  const { environment, policy, me, now } = facts;
  const { tab = 'overview', page = 1, log } = route.useSearch();
  const navigate = route.useNavigate();
  const isRow = isRowOnly(environment, me);
  const shown: readonly DetailTab[] = isRow ? ['overview', 'settings'] : detailTabs;
  // After the teardown only the history remains.
  const tabs = shown.filter((one) => one !== 'settings' || !isEnding(environment));
  return (
    <>
      <title>{`${environment.uuid} · Postern`}</title>
      <Anchor component={Link} to="/environments" size="sm">
        ← Environments
      </Anchor>
      <div className={shared['head']}>
        <div className={shared['intro']}>
          <div className={shared['title']}>
            <Title order={1} size="h2">
              <bdi>{environment.uuid}</bdi>
            </Title>
            <EnvironmentBadge of={environment.status} />
            <span role="status" className="unseen">
              {statusWords[environment.status][0]}
            </span>
          </div>
          <div className={shared['facts']}>
            <span>
              {environment.repository}, <bdi>{environment.branch}</bdi>
            </span>
            <span>
              Lease <Lease of={environment} now={now} />
            </span>
            <span>
              Creator: <bdi>{creatorWords(environment, me)}</bdi>
            </span>
          </div>
        </div>
        {!isEnding(environment) && !isRow && <Actions {...facts} />}
      </div>
      {!policy.enabled && <OffNote />}
      {isRow && (
        <Alert color="blue" mb="md" title="Only its creator may open it">
          You see this page as an administrator. You can tear the Environment down.
        </Alert>
      )}
      <StatusNote of={environment} hasWhy={!isRow} />
      <Tabs
        value={tabs.includes(tab) ? tab : 'overview'}
        keepMounted={false}
        onChange={(value) => void navigate({ search: detailSearch({ tab: value }) })}
      >
        <Tabs.List className={shared['tabs'] ?? ''} aria-label="Parts of the Environment">
          {tabs.map((one) => (
            <Tabs.Tab key={one} value={one}>
              {labels[one]}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        <Tabs.Panel value="overview">
          <Overview {...facts} />
        </Tabs.Panel>
        <Tabs.Panel value="log">
          <Logs
            {...facts}
            isOfProcesses={log === 'processes'}
            onSource={(next) => void navigate({ search: detailSearch({ tab, log: next }), replace: true })}
          />
        </Tabs.Panel>
        <Tabs.Panel value="deploys">
          <DeployList of={environment} me={me} now={now} page={page} />
        </Tabs.Panel>
        <Tabs.Panel value="events">
          <Events {...facts} />
        </Tabs.Panel>
        <Tabs.Panel value="why">
          <Explanation {...facts} />
        </Tabs.Panel>
        <Tabs.Panel value="settings">
          <Settings {...facts} />
        </Tabs.Panel>
      </Tabs>
    </>
  );
}
