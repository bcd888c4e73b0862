import { Anchor, Badge } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import type { Schemas } from '../api/contract.ts';
import { Table } from '../lists/table.tsx';
import { Moment } from '../shell/moment.tsx';
import { useNow } from '../shell/now.ts';
import styles from './agents.module.css';

/** Pages that list sessions: the person's own, and the administrator's. */
export type SessionHome = '/settings/agents/sessions' | '/admin/agents/sessions';

export type Session = Schemas['AgentSession'] & {
  /** Only for administrators. */
  readonly user?: Schemas['AgentSessionOfAnyone']['user'];
};

type TableProps = {
  readonly home: SessionHome;
  readonly sessions: readonly Session[];
  readonly isStale: boolean;
};

export function SessionTable({ home, sessions, isStale }: TableProps) {
  const now = useNow();
  const hasPeople = home === '/admin/agents/sessions';
  const columns = ['Client', ...(hasPeople ? ['Person'] : []), 'State', 'Calls', 'Started', 'Last call'];
  return (
    <Table caption="Agent sessions" columns={columns} isStale={isStale}>
      {sessions.map(({ id, clientId, user, isOpen, calls, startedAt, lastCallAt }) => (
        <tr key={id}>
          <th scope="row" className={styles['name']}>
            <Anchor inherit renderRoot={(props) => <Link to={`${home}/$id`} params={{ id }} {...props} />}>
              {clientId}
            </Anchor>
            <code>{id}</code>
          </th>
          {hasPeople && (
            <td data-label="Person" className={styles['person']}>
              <bdi>{user?.name ?? user?.id}</bdi>
            </td>
          )}
          <td data-label="State">
            <StateBadge isOpen={isOpen} />
          </td>
          <td data-label="Calls">{calls.toLocaleString()}</td>
          <td data-label="Started">
            <Moment at={startedAt} now={now} />
          </td>
          <td data-label="Last call">
            <Moment at={lastCallAt} now={now} />
          </td>
        </tr>
      ))}
    </Table>
  );
}

/** A session ends after 30 minutes without a call, or when its client loses access. */
export function StateBadge({ isOpen }: { isOpen: boolean }) {
  return <Badge color={isOpen ? 'green' : 'gray'}>{isOpen ? 'Open' : 'Ended'}</Badge>;
}
