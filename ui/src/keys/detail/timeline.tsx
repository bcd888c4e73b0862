import { Anchor, Button, Skeleton, Title } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { Schemas } from '../../api/contract.ts';
import { Moment } from '../../shell/moment.tsx';
import { Problem } from '../../shell/problem.tsx';
import type { KeyHome } from '../key-home.ts';
import { deedOf, environmentOf, isBad, whoOf } from './event-words.ts';
import shared from '../../shell/page.module.css';
import styles from './key-page.module.css';
import { timelineAt } from '../queries.ts';

/** The audit events of the key, newest first. */
export function Timeline({ home, id, now }: { home: KeyHome; id: string; now: number }) {
  const { data, error, refetch, fetchNextPage, hasNextPage, isFetchingNextPage } = useInfiniteQuery(
    timelineAt(home, id),
  );
  const events = data?.pages.flatMap((page) => page.data);
  return (
    <section className={styles['card']} aria-labelledby="timeline">
      <Title order={2} size="h4" id="timeline">
        Timeline
      </Title>
      {error !== null && <Problem error={error} onRetry={() => void refetch()} />}
      {events === undefined && error === null && (
        <Skeleton mt="md" height={120} role="status" aria-label="Loading the timeline" />
      )}
      {events !== undefined && (
        <ol className={shared['story']}>
          {events.map((event) => (
            <Event key={event.id} of={event} home={home} now={now} />
          ))}
        </ol>
      )}
      {hasNextPage && (
        <Button variant="default" size="xs" loading={isFetchingNextPage} onClick={() => void fetchNextPage()}>
          Show earlier events
        </Button>
      )}
    </section>
  );
}

function Event({ of: event, home, now }: { of: Schemas['AuditEvent']; home: KeyHome; now: number }) {
  const who = whoOf(event);
  const environment = environmentOf(event);
  return (
    <li data-bad={isBad(event)}>
      <div>
        {deedOf(event)}
        {environment !== undefined && (
          <>
            {' '}
            <Anchor
              inherit
              renderRoot={(props) => <Link to="/environments/$id" params={{ id: environment }} {...props} />}
            >
              {environment}
            </Anchor>
          </>
        )}
      </div>
      {typeof event.details['note'] === 'string' && (
        <div>
          Reason: <bdi>{event.details['note']}</bdi>
        </div>
      )}
      <span>
        <Moment at={event.time} now={now} />
        {who !== '' && (
          <>
            {' · '}
            <bdi>{who}</bdi>
          </>
        )}
        {event.address !== null && <> · from {event.address}</>}
        {event.event === 'auth.denied' && event.requestId !== null && (
          <>
            {' · '}
            <Why home={home} requestId={event.requestId} />
          </>
        )}
      </span>
    </li>
  );
}

/** The refusals page explains requests only to the owner of the key; an administrator gets a link to the audit log. */
function Why({ home, requestId }: { home: KeyHome; requestId: string }) {
  return (
    <Anchor
      inherit
      underline="always"
      renderRoot={(props) =>
        home === '/settings/keys' ? (
          <Link to="/settings/refusals" search={{ requestId }} {...props} />
        ) : (
          <Link to="/admin/audit" search={{ requestId }} {...props} />
        )
      }
    >
      Why?
    </Anchor>
  );
}
