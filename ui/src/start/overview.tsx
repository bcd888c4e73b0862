import { Anchor, Skeleton, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { myPolicy, unreadNotices } from '../api/queries.ts';
import { Moment } from '../app/moment.tsx';
import { useNow } from '../app/now.ts';
import { Problem } from '../app/problem.tsx';
import { endingKeys, mySites } from './queries.ts';
import styles from './start.module.css';

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
          <Link to="/settings/keys">of {policy.data?.activeKeys.limit ?? '…'} API keys active</Link>
        </Tile>
        <Tile number={sites.data}>
          <a href="/sites">{sites.data === 1 ? 'site of yours' : 'sites of yours'}</a>
        </Tile>
        <Tile number={notices.data}>
          <Link to="/settings/notices">{notices.data === 1 ? 'unread notice' : 'unread notices'}</Link>
        </Tile>
      </ul>
      <EndingNext offsetMs={policy.data?.clockOffsetMs ?? 0} />
    </section>
  );
}

function Tile({ number, children }: { number: number | undefined; children: ReactNode }) {
  return (
    <li>
      <b>{number === undefined ? '–' : number.toLocaleString()}</b>
      {children}
    </li>
  );
}

function EndingNext({ offsetMs }: { offsetMs: number }) {
  const { data: keys, error, refetch } = useQuery(endingKeys);
  const now = useNow() + offsetMs;
  const ending = keys?.filter(({ expiresAt }) => expiresAt !== null);
  return (
    <div className={styles['card']}>
      <div className={styles['bar']}>
        <Title order={3} size="h4">
          What ends next
        </Title>
      </div>
      {error !== null && <Problem error={error} onRetry={() => void refetch()} />}
      {ending === undefined && error === null && (
        <Skeleton m="md" height={60} role="status" aria-label="Loading what ends next" />
      )}
      {ending?.length === 0 && (
        <p className={styles['nothing']}>
          {keys?.length === 0
            ? 'You have no keys yet. Give each one an end: the next to come stands here, and you hear of it in time.'
            : 'No active key of yours has an end. Narrow a key to give it one.'}
        </p>
      )}
      {ending !== undefined && ending.length > 0 && (
        <ul className={styles['ending']}>
          {ending.map((key) => (
            <li key={key.id}>
              <Anchor
                inherit
                fw={600}
                renderRoot={(props) => <Link to="/settings/keys/$id" params={{ id: key.id }} {...props} />}
              >
                <bdi>{key.name}</bdi>
              </Anchor>
              <span className="quiet">
                ends {key.expiresAt !== null && <Moment at={key.expiresAt} now={now} isAhead />}
              </span>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
