import { Badge, Button, Menu } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { DownloadIcon, ScrollIcon } from '../../app/icons.tsx';
import { Moment } from '../../app/moment.tsx';
import { useNow } from '../../app/now.ts';
import { Problem } from '../../app/problem.tsx';
import type { Schemas } from '../../api/contract.ts';
import { Empty, NoMatch, NoMatchLine } from '../../lists/empty.tsx';
import { PageHead } from '../../lists/page-head.tsx';
import { Table, TableLoading } from '../../lists/table.tsx';
import common from '../admin.module.css';
import styles from './audit.module.css';
import { AuditChart } from './audit-chart.tsx';
import { AuditFilters } from './audit-filters.tsx';
import { auditEvents, exportAddress, filtersOf } from './audit-query.ts';
import type { AuditSearch } from './audit-search.ts';
import { actorInWords, eventInWords, outcomeWords } from './event-words.ts';
import { Reason } from './reason.tsx';
import { TextLink } from '../text-link.tsx';

const route = getRouteApi('/administration/admin/audit');

/** What happened, who did it and how it ended. Nothing here can be changed by anybody. */
export function AuditPage() {
  const navigate = route.useNavigate();
  const search = route.useSearch();
  const now = useNow();
  const filters = filtersOf(search, now);
  const trail = useInfiniteQuery(auditEvents(filters));
  const events = trail.data?.pages.flatMap(({ data }) => data) ?? [];
  return (
    <>
      <PageHead
        title="Audit trail"
        intro="What happened, who did it and how it ended. It can be read, never changed."
      >
        <Menu position="bottom-end" transitionProps={{ duration: 0 }}>
          <Menu.Target>
            <Button variant="default" leftSection={<DownloadIcon />}>
              Export
            </Button>
          </Menu.Target>
          <Menu.Dropdown>
            <Menu.Label>What the filters show, oldest first</Menu.Label>
            <Menu.Item component="a" href={exportAddress(filters, 'csv')} download>
              CSV, for spreadsheets
            </Menu.Item>
            <Menu.Item component="a" href={exportAddress(filters, 'ndjson')} download>
              NDJSON, can be verified
            </Menu.Item>
          </Menu.Dropdown>
        </Menu>
      </PageHead>
      {/* Anew when the address changes by itself: back, or a link in the list. */}
      <AuditFilters
        key={JSON.stringify(search)}
        search={search}
        onChange={(next) => void navigate({ search: next })}
      />
      {isOfAll(search) && <AuditChart search={search} now={now} />}
      {trail.isPending && <TableLoading what="events" />}
      {trail.error !== null && <Problem error={trail.error} onRetry={() => void trail.refetch()} />}
      {trail.data !== undefined && events.length === 0 && <Nothing search={search} />}
      {events.length > 0 && (
        <Table
          caption="Events, newest first"
          columns={['What', 'Who', 'On what', 'How it ended', 'When']}
          isStale={trail.isPlaceholderData}
        >
          {events.map((event) => (
            <Row key={event.id} of={event} now={now} />
          ))}
        </Table>
      )}
      {trail.hasNextPage && (
        <Button
          variant="default"
          mt="md"
          loading={trail.isFetchingNextPage}
          onClick={() => void trail.fetchNextPage()}
        >
          Show older events
        </Button>
      )}
    </>
  );
}

/** The counts know kinds, outcomes and times, and nothing narrower: a picture beside a narrower list would mislead. */
function isOfAll({ actor, target, requestId, keyId }: AuditSearch): boolean {
  return [actor, target, requestId, keyId].every((one) => one === undefined);
}

function Nothing({ search }: { search: AuditSearch }) {
  if (Object.keys(search).length === 0) {
    return (
      <Empty picture={<ScrollIcon size={28} />} title="Nothing has happened yet">
        <p className="quiet">Sign-ins, keys, sites, refusals: each leaves a line here, in the same moment.</p>
      </Empty>
    );
  }
  return (
    <NoMatch>
      <NoMatchLine>
        {search.requestId === undefined
          ? 'No event is like this.'
          : 'No event belongs to this request. Refusals are written within a minute; requests that were answered leave no event unless they changed something.'}
      </NoMatchLine>
      <Button component={Link} to="/admin/audit" variant="default" size="xs">
        Show everything
      </Button>
    </NoMatch>
  );
}

function Row({ of: event, now }: { of: Schemas['AuditEvent']; now: number }) {
  const [label, color] = outcomeWords[event.outcome];
  const { actor, target } = event;
  return (
    <tr>
      <th scope="row" className={styles['what']}>
        <TextLink to="/admin/audit/$id" params={{ id: event.id }} inherit>
          {eventInWords(event)}
        </TextLink>
        <code>{event.event}</code>
      </th>
      <td data-label="Who" className={common['wrap']}>
        <bdi>{actor.name ?? actor.id ?? actorInWords(event, actor.kind)}</bdi>
      </td>
      <td data-label="On what" className={common['wrap']}>
        <code>{target.id}</code>
      </td>
      <td data-label="How it ended">
        <Badge className={common['badge']} variant="light" color={color} tt="none" fw={600}>
          {label}
        </Badge>
        <Reason of={event.reason} />
      </td>
      <td data-label="When">
        <Moment at={event.time} now={now} />
      </td>
    </tr>
  );
}
