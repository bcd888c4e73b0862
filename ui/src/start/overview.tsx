import { Anchor, Skeleton, Title } from '@mantine/core';
import { type UseQueryResult, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { unreadNotices, waitingApprovals } from '../api/queries.ts';
import { Tile, Tiles } from '../lists/tiles.tsx';
import { Moment } from '../shell/moment.tsx';
import { useNow } from '../shell/now.ts';
import { Problem } from '../shell/problem.tsx';
import { WaitingCalls } from '../agents/waiting-calls.tsx';
import { useHasEnvironments } from '../shell/areas.ts';
import { type Counted, itemsOf, nounOf } from '../shell/count.ts';
import { endingKeys, endingMost, endingSites, myEnvironments, type MySites, mySites } from './queries.ts';
import styles from './start.module.css';
import { myPolicy } from '../keys/queries.ts';

/** The user's keys, sites and Environments at a glance, and which of them expire next. */
export function Overview() {
  const policy = useQuery(myPolicy);
  const sites = useQuery(mySites);
  const notices = useQuery(unreadNotices);
  const hasEnvironments = useHasEnvironments();
  const environments = useQuery({ ...myEnvironments, enabled: hasEnvironments });
  const { data: waiting } = useQuery(waitingApprovals);
  const offsetMs = policy.data?.clockOffsetMs ?? 0;
  const now = useNow() + offsetMs;
  return (
    <section aria-labelledby="overview">
      <Title order={2} size="h4" id="overview" className="unseen">
        Overview
      </Title>
      {waiting?.isOn === true && <WaitingCalls of={waiting.approvals} now={now} />}
      <Tiles>
        <Tile number={policy.data?.activeKeys.count}>
          <Link to="/settings/keys">
            {policy.error === null || policy.data !== undefined
              ? `of ${policy.data?.activeKeys.limit ?? '…'} API keys active`
              : 'Your keys could not be counted'}
          </Link>
        </Tile>
        <Tile number={sites.data?.kind === 'open' ? sites.data.count : undefined}>
          <Link to="/sites">{sitesWords(sites)}</Link>
        </Tile>
        {hasEnvironments && (
          <Tile number={itemsOf(environments.data)}>
            <Link to="/environments">{environmentsWords(environments)}</Link>
          </Tile>
        )}
        <Tile number={notices.data}>
          <Link to="/settings/notices">
            {notices.error === null || notices.data !== undefined
              ? `unread ${notices.data === 1 ? 'notice' : 'notices'}`
              : 'Your notices could not be counted'}
          </Link>
        </Tile>
      </Tiles>
      <EndingNext hasEnvironments={hasEnvironments} now={now} />
    </section>
  );
}

function environmentsWords({ data, error }: Pick<UseQueryResult<Counted>, 'data' | 'error'>): string {
  if (data === undefined && error !== null) return 'Your Environments could not be counted';
  return nounOf(itemsOf(data), 'your Environment', 'your Environments');
}

function sitesWords({ data, error }: Pick<UseQueryResult<MySites>, 'data' | 'error'>): string {
  if (data === undefined) return error === null ? 'your sites' : 'Your sites could not be counted';
  if (data.kind === 'open') return nounOf(data.count, 'your site', 'your sites');
  return data.why === 'off' ? 'Sites is switched off' : 'Your account may not use Sites';
}

/** A key and a site expire; an Environment's lease ends. */
const kinds = {
  key: 'API key, expires',
  site: 'Site, expires',
  environment: 'Environment, lease ends',
} as const;

type Ending = {
  readonly kind: keyof typeof kinds;
  readonly id: string;
  readonly name: string;
  readonly expiresAt: string;
};

function EndingNext({ hasEnvironments, now }: { hasEnvironments: boolean; now: number }) {
  const keys = useQuery(endingKeys);
  const sites = useQuery(endingSites);
  const environments = useQuery({ ...myEnvironments, enabled: hasEnvironments });
  const ending = [
    ...endingOf('key', keys.data),
    ...endingOf('site', sites.data),
    ...endingOf(
      'environment',
      environments.data?.data.map(({ id, uuid, expiresAt }) => ({ id, name: uuid, expiresAt })),
    ),
  ]
    .sort((one, other) => Date.parse(one.expiresAt) - Date.parse(other.expiresAt))
    .slice(0, endingMost);
  const asked = [keys, sites, ...(hasEnvironments ? [environments] : [])];
  const failed = asked.find(({ error }) => error !== null);
  const isAnswered = asked.every(({ isFetched }) => isFetched);
  return (
    <div className={styles['card']}>
      <div className={styles['bar']}>
        <Title order={3} size="h4">
          Next to expire
        </Title>
      </div>
      {failed !== undefined && <Problem error={failed.error} onRetry={() => void failed.refetch()} />}
      {!isAnswered && <Skeleton m="md" height={60} role="status" aria-label="Loading what expires next" />}
      {isAnswered && failed === undefined && ending.length === 0 && (
        <p className={styles['nothing']}>
          {keys.data?.length === 0
            ? 'You have no keys yet. Give each key an expiry: the next one to expire appears here, and you are notified in time.'
            : 'None of your active keys and sites expires. Narrow a key, or open a site’s settings, to give it an expiry.'}
        </p>
      )}
      {isAnswered && ending.length > 0 && (
        <ul className={styles['ending']}>
          {ending.map((one) => (
            <li key={one.id}>
              <Anchor inherit fw={600} renderRoot={(props) => <LinkTo of={one} {...props} />}>
                <bdi>{one.name}</bdi>
              </Anchor>
              <span className="quiet">
                {kinds[one.kind]} <Moment at={one.expiresAt} now={now} isAhead />
              </span>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

function endingOf(
  kind: Ending['kind'],
  found: readonly { id: string; name: string; expiresAt: string | null }[] = [],
): Ending[] {
  return found.flatMap(({ id, name, expiresAt }) =>
    expiresAt === null ? [] : [{ kind, id, name, expiresAt }],
  );
}

function LinkTo({ of: { kind, id }, ...props }: { of: Ending }) {
  if (kind === 'key') return <Link to="/settings/keys/$id" params={{ id }} {...props} />;
  if (kind === 'site') return <Link to="/sites/$id" params={{ id }} {...props} />;
  return <Link to="/environments/$id" params={{ id }} {...props} />;
}
