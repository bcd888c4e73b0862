import { Anchor, Skeleton, Title } from '@mantine/core';
import { type UseQueryResult, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { unreadNotices } from '../api/queries.ts';
import { Moment } from '../shell/moment.tsx';
import { useNow } from '../shell/now.ts';
import { Problem } from '../shell/problem.tsx';
import { endingKeys, endingMost, endingSites, type MySites, mySites } from './queries.ts';
import styles from './start.module.css';
import { myPolicy } from '../keys/queries.ts';

/** What is mine at a glance, and what ends next. */
export function Overview() {
  const policy = useQuery(myPolicy);
  const sites = useQuery(mySites);
  const notices = useQuery(unreadNotices);
  return (
    <section aria-labelledby="overview">
      <Title order={2} size="h4" id="overview" className="unseen">
        Overview
      </Title>
      <ul className={styles['tiles']}>
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
        <Tile number={notices.data}>
          <Link to="/settings/notices">
            {notices.error === null || notices.data !== undefined
              ? `unread ${notices.data === 1 ? 'notice' : 'notices'}`
              : 'Your notices could not be counted'}
          </Link>
        </Tile>
      </ul>
      <EndingNext offsetMs={policy.data?.clockOffsetMs ?? 0} />
    </section>
  );
}

function sitesWords({ data, error }: Pick<UseQueryResult<MySites>, 'data' | 'error'>): string {
  if (data === undefined) return error === null ? 'sites of yours' : 'Your sites could not be counted';
  if (data.kind === 'open') return data.count === 1 ? 'site of yours' : 'sites of yours';
  return data.why === 'off' ? 'Sites is switched off' : 'Your account may not use Sites';
}

function Tile({ number, children }: { number: number | undefined; children: ReactNode }) {
  return (
    <li>
      {number !== undefined && <b>{number.toLocaleString()}</b>}
      {children}
    </li>
  );
}

type Ending = {
  readonly kind: 'key' | 'site';
  readonly id: string;
  readonly name: string;
  readonly expiresAt: string;
};

function EndingNext({ offsetMs }: { offsetMs: number }) {
  const keys = useQuery(endingKeys);
  const sites = useQuery(endingSites);
  const now = useNow() + offsetMs;
  const ending = [...endingOf('key', keys.data), ...endingOf('site', sites.data)]
    .sort((one, other) => Date.parse(one.expiresAt) - Date.parse(other.expiresAt))
    .slice(0, endingMost);
  const failed = [keys, sites].find(({ error }) => error !== null);
  const isAnswered = keys.isFetched && sites.isFetched;
  return (
    <div className={styles['card']}>
      <div className={styles['bar']}>
        <Title order={3} size="h4">
          What ends next
        </Title>
      </div>
      {failed !== undefined && <Problem error={failed.error} onRetry={() => void failed.refetch()} />}
      {!isAnswered && <Skeleton m="md" height={60} role="status" aria-label="Loading what ends next" />}
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
                {one.kind === 'key' ? 'API key' : 'Site'}, ends{' '}
                <Moment at={one.expiresAt} now={now} isAhead />
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
  return kind === 'key' ? (
    <Link to="/settings/keys/$id" params={{ id }} {...props} />
  ) : (
    <Link to="/sites/$id" params={{ id }} {...props} />
  );
}
