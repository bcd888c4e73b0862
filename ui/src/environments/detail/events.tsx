import { Button, Skeleton } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { Schemas } from '../../api/contract.ts';
import { Moment } from '../../shell/moment.tsx';
import { Problem } from '../../shell/problem.tsx';
import { eventsOf } from '../queries.ts';
import shared from '../../shell/page.module.css';
import { shortSha } from '../environment-words.ts';
import { changesIn, deedOf, deployOf, whoOf } from './event-words.ts';
import type { Facts } from './facts.ts';
import styles from './detail.module.css';

/** Audit events of an Environment, newest first. */
export function Events({ environment, now }: Facts) {
  const { data, error, refetch, fetchNextPage, hasNextPage, isFetchingNextPage } = useInfiniteQuery(
    eventsOf(environment.id),
  );
  if (error !== null) return <Problem error={error} onRetry={() => void refetch()} />;
  if (data === undefined)
    return <Skeleton height={240} radius="lg" role="status" aria-label="Loading the events" />;
  const events = data.pages.flatMap((page) => page.data);
  return (
    <section className={shared['roomy']} aria-labelledby="events">
      <h2 id="events">Events</h2>
      {events.length === 0 && (
        <p className={shared['hint']}>The audit log has no events of this Environment.</p>
      )}
      <ol className={shared['story']}>
        {events.map((event) => (
          <Event key={event.id} of={event} environmentId={environment.id} now={now} />
        ))}
      </ol>
      {hasNextPage && (
        <Button variant="default" size="xs" loading={isFetchingNextPage} onClick={() => void fetchNextPage()}>
          Show earlier events
        </Button>
      )}
    </section>
  );
}

type EventProps = {
  readonly of: Schemas['AuditEvent'];
  readonly environmentId: string;
  readonly now: number;
};

function Event({ of: event, environmentId, now }: EventProps) {
  const who = whoOf(event);
  const deploy = deployOf(event);
  return (
    <li data-bad={event.outcome !== 'success'}>
      <div>
        {deedOf(event)}
        {deploy !== null && (
          <>
            {' · '}
            <Link to="/environments/$id/deploys/$deploy" params={{ id: environmentId, deploy: deploy.id }}>
              {deploy.sha === null ? 'Show the deploy' : <code>{shortSha(deploy.sha)}</code>}
            </Link>
          </>
        )}
      </div>
      {changesIn(event).map((change) => (
        <div key={change} className={styles['change']}>
          {change}
        </div>
      ))}
      <span>
        <Moment at={event.time} now={now} />
        {who !== '' && (
          <>
            {' · '}
            <bdi>{who}</bdi>
          </>
        )}
      </span>
    </li>
  );
}
