import { Badge, Button, Menu, Switch } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import { DownloadIcon, ScrollIcon } from '../../shell/icons.tsx';
import { Moment } from '../../shell/moment.tsx';
import { useNow } from '../../shell/now.ts';
import { Problem } from '../../shell/problem.tsx';
import type { Schemas } from '../../api/contract.ts';
import { Empty, NoMatch } from '../../lists/empty.tsx';
import { PageHead } from '../../lists/page-head.tsx';
import { Table, TableLoading } from '../../lists/table.tsx';
import styles from './audit.module.css';
import { AuditChart } from './audit-chart.tsx';
import { AuditFilters } from './audit-filters.tsx';
import { auditEvents, exportAddress, filtersOf } from './audit-query.ts';
import type { AuditSearch } from './audit-search.ts';
import { OnWhat, Who } from './event-ends.tsx';
import { eventInWords, outcomeWords } from './event-words.ts';
import { Reason } from './reason.tsx';
import { TextLink } from '../text-link.tsx';

const route = getRouteApi('/administration/admin/audit');

/** What happened, who did it, and the outcome. Events cannot be changed. */
export function AuditPage() {
  const navigate = route.useNavigate();
  const search = route.useSearch();
  const now = useNow();
  const filters = filtersOf(search, now);
  const tail = useTail();
  const auditLog = useInfiniteQuery({
    ...auditEvents(filters),
    // Refetching page by page would move older events while the user reads them.
    refetchInterval: ({ state }) => tail.isOn && state.data?.pages.length === 1 && tailMs,
  });
  const events = auditLog.data?.pages.flatMap(({ data }) => data) ?? [];
  const isLong = (auditLog.data?.pages.length ?? 0) > 1;
  return (
    <>
      <PageHead
        title="Audit log"
        intro="What happened, who did it, and the outcome. Events cannot be changed."
      >
        <Menu position="bottom-end" transitionProps={{ duration: 0 }}>
          <Menu.Target>
            <Button variant="default" leftSection={<DownloadIcon />}>
              Export
            </Button>
          </Menu.Target>
          <Menu.Dropdown>
            <Menu.Label>Events that match the filters, oldest first</Menu.Label>
            <Menu.Item component="a" href={exportAddress(filters, 'csv')} download>
              CSV, for spreadsheets
            </Menu.Item>
            <Menu.Item component="a" href={exportAddress(filters, 'ndjson')} download>
              NDJSON, verifiable
            </Menu.Item>
          </Menu.Dropdown>
        </Menu>
      </PageHead>
      {/* Remounts when the address changes otherwise: by Back, or by a link in the list. */}
      <AuditFilters
        key={JSON.stringify(search)}
        search={search}
        onChange={(next) => void navigate({ search: next })}
      />
      {isOfAll(search) && <AuditChart search={search} now={now} />}
      <div className={styles['live']}>
        <Switch
          label="Show new events every 10 seconds"
          checked={tail.isOn && !isLong}
          disabled={isLong}
          onChange={({ currentTarget }) => tail.turn(currentTarget.checked)}
        />
      </div>
      {auditLog.isPending && <TableLoading what="events" />}
      {auditLog.error !== null && <Problem error={auditLog.error} onRetry={() => void auditLog.refetch()} />}
      {auditLog.data !== undefined && events.length === 0 && <Nothing search={search} />}
      {events.length > 0 && (
        <Table
          caption="Events, newest first"
          columns={['Event', 'Actor', 'Target', 'Outcome', 'When']}
          isStale={auditLog.isPlaceholderData}
          isDense
        >
          {events.map((event) => (
            <Row key={event.id} of={event} now={now} />
          ))}
        </Table>
      )}
      {auditLog.hasNextPage && (
        <Button
          variant="default"
          mt="md"
          loading={auditLog.isFetchingNextPage}
          onClick={() => void auditLog.fetchNextPage()}
        >
          Show older events
        </Button>
      )}
    </>
  );
}

const tailMs = 10_000;
const tailEndsMs = 30 * 60_000;

/** Stops by itself: the session of an unattended page must be able to expire. */
function useTail() {
  const [isOn, turn] = useState(true);
  useEffect(() => {
    if (!isOn) return;
    const timer = setTimeout(() => turn(false), tailEndsMs);
    return () => clearTimeout(timer);
  }, [isOn]);
  return { isOn, turn };
}

/** The counts cover event kinds, outcomes and times only. Beside a list with narrower filters, the chart would mislead. */
function isOfAll({ actor, target, requestId, keyId }: AuditSearch): boolean {
  return [actor, target, requestId, keyId].every((one) => one === undefined);
}

function Nothing({ search }: { search: AuditSearch }) {
  if (Object.keys(search).length === 0) {
    return (
      <Empty picture={<ScrollIcon size={28} />} title="No events yet">
        <p className="quiet">
          Postern records sign-ins, refused requests, and changes to keys and sites here.
        </p>
      </Empty>
    );
  }
  return (
    <NoMatch
      button={
        <Button component={Link} to="/admin/audit" variant="default" size="xs">
          Show all events
        </Button>
      }
    >
      {search.requestId === undefined
        ? 'No event matches these filters.'
        : 'No event has this request id. Refusals are recorded within a minute. A request that succeeds leaves an event only if it changes something.'}
    </NoMatch>
  );
}

function Row({ of: event, now }: { of: Schemas['ListedAuditEvent']; now: number }) {
  const [label, color] = outcomeWords[event.outcome];
  return (
    <tr>
      <th scope="row" className={styles['what']} title={event.event}>
        <TextLink to="/admin/audit/$id" params={{ id: event.id }} inherit>
          {eventInWords(event)}
        </TextLink>
      </th>
      <td data-label="Actor" className="wrap">
        <Who of={event} />
      </td>
      <td data-label="Target" className="wrap">
        <OnWhat of={event} />
      </td>
      <td data-label="Outcome">
        <span className={styles['outcome']}>
          <Badge color={color}>{label}</Badge>
          <Reason of={event.reason} />
        </span>
      </td>
      <td data-label="When">
        <Moment at={event.time} now={now} isToSecond />
      </td>
    </tr>
  );
}
