import { Badge, Skeleton } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import type { Schemas } from '../../api/contract.ts';
import { Problem } from '../../shell/problem.tsx';
import { toTheSecond } from '../../shell/time.ts';
import { PageHead } from '../../lists/page-head.tsx';
import common from '../admin.module.css';
import { auditEvent } from '../queries.ts';
import { EventDetails } from './event-details.tsx';
import { OnWhat, Who } from './event-ends.tsx';
import { eventInWords, outcomeWords } from './event-words.ts';
import { Reason } from './reason.tsx';
import { TextLink } from '../text-link.tsx';

const route = getRouteApi('/administration/admin/audit/$id');

export function EventPage() {
  const { id } = route.useParams();
  const { data, error, refetch } = useQuery(auditEvent(id));
  return (
    <>
      <TextLink to="/admin/audit" size="sm">
        ← Audit log
      </TextLink>
      <PageHead
        title={data === undefined ? 'Event' : eventInWords(data)}
        intro={data === undefined ? <code>{id}</code> : `On ${toTheSecond(Date.parse(data.time))}.`}
      />
      {error !== null && <Problem error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && (
        <Skeleton height={320} radius="lg" role="status" aria-label="Loading" />
      )}
      {data !== undefined && <Event of={data} />}
    </>
  );
}

function Event({ of: event }: { of: Schemas['ListedAuditEvent'] }) {
  const { actor, target } = event;
  const [label, color] = outcomeWords[event.outcome];
  return (
    <>
      <section className={common['card']} aria-label="The event">
        <dl className={common['facts']}>
          <Fact name="Outcome">
            <Badge color={color}>{label}</Badge>
            <Reason of={event.reason} />
          </Fact>
          <Fact name="Actor">
            <Who of={event} />
            {actor.id !== null && (
              <>
                {' · '}
                <TextLink to="/admin/audit" search={{ actor: actor.id }} inherit>
                  All events by this actor
                </TextLink>
              </>
            )}
          </Fact>
          {actor.credential !== null && (
            <Fact name="Credential">
              <code>{actor.credential}</code>
            </Fact>
          )}
          <Fact name="Target">
            {target.kind} <OnWhat of={event} />{' '}
            {event.targetName !== null && <code className="quiet">{target.id}</code>}
            {' · '}
            <TextLink to="/admin/audit" search={{ target: target.id }} inherit>
              All events on this target
            </TextLink>
          </Fact>
          {event.requestId !== null && (
            <Fact name="Request">
              <TextLink to="/admin/audit" search={{ requestId: event.requestId }} inherit>
                <code>{event.requestId}</code>
              </TextLink>
            </Fact>
          )}
          {event.address !== null && (
            <Fact name="Address">
              <code>{event.address}</code>
            </Fact>
          )}
          {event.agent !== null && (
            <Fact name="Program">
              <bdi>{event.agent}</bdi>
            </Fact>
          )}
          {event.keyIds.length > 0 && (
            <Fact name="Keys">
              {event.keyIds.map((keyId) => (
                <TextLink key={keyId} to="/admin/audit" search={{ keyId }} inherit mr="xs">
                  <code>{keyId}</code>
                </TextLink>
              ))}
            </Fact>
          )}
          {event.event === 'mcp.tool_called' && <SessionOf details={event.details} />}
          <Fact name="Event">
            <code>{event.event}</code>
          </Fact>
          <Fact name="Event id">
            <code>{event.id}</code>
          </Fact>
          <Fact name="Chain hash">
            {event.hash === null ? 'Not chained yet; this takes a few seconds.' : <code>{event.hash}</code>}
          </Fact>
        </dl>
      </section>
      <EventDetails of={event.details} />
    </>
  );
}

/** The same link as on the page of a session. */
const callsOfPage = 50;

/** The session of the call. It may have been removed since: calls are kept for fewer days than events. */
function SessionOf({ details: { sessionId, call } }: { details: Schemas['ListedAuditEvent']['details'] }) {
  if (typeof sessionId !== 'string') return null;
  const page = typeof call === 'number' ? Math.ceil(call / callsOfPage) : 1;
  return (
    <Fact name="Agent session">
      <TextLink
        to="/admin/agents/sessions/$id"
        params={{ id: sessionId }}
        search={page > 1 ? { page } : {}}
        inherit
      >
        <code>{sessionId}</code>
      </TextLink>
      {typeof call === 'number' && ` · call ${call.toLocaleString()}`}
    </Fact>
  );
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}
