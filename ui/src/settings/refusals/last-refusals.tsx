import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { Anchor, Title } from '@mantine/core';
import type { Schemas } from '../../api/contract.ts';
import { Moment } from '../../shell/moment.tsx';
import { useNow } from '../../shell/now.ts';
import { Problem } from '../../shell/problem.tsx';
import { NoMatch, NoMatchLine } from '../../lists/empty.tsx';
import { Table, TableLoading } from '../../lists/table.tsx';
import { myRefusals } from '../queries.ts';
import styles from './refusals.module.css';

/** The last refused requests with the user's keys, so that no id is needed. */
export function LastRefusals() {
  const { data, error, refetch } = useQuery(myRefusals);
  const now = useNow();
  return (
    <section aria-labelledby="last">
      <Title order={2} size="h4" id="last" mb="sm">
        Last refused requests
      </Title>
      {error !== null && <Problem error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && <TableLoading what="refused requests" />}
      {data?.length === 0 && (
        <NoMatch>
          <NoMatchLine>
            No request with one of your keys was refused in the last 30 days. A refusal shows here within a
            minute.
          </NoMatchLine>
        </NoMatch>
      )}
      {data !== undefined && data.length > 0 && (
        <Table
          caption="Last refused requests"
          columns={['What', 'Key', 'Route', 'Times', 'When']}
          isStale={false}
          isDense
        >
          {data.map((one) => (
            <Row key={one.requestId} of={one} now={now} />
          ))}
        </Table>
      )}
    </section>
  );
}

function Row({ of: refusal, now }: { of: Schemas['KeyRefusal']; now: number }) {
  const { requestId, status, code, keyId, keyName, route, count, lastAt } = refusal;
  return (
    <tr>
      <th scope="row">
        <Anchor
          inherit
          renderRoot={(props) => <Link to="/settings/refusals" search={{ requestId }} {...props} />}
        >
          {status} <code>{code}</code>
        </Anchor>
      </th>
      <td data-label="Key" className={styles['wrap']}>
        <KeyLink id={keyId} name={keyName} />
      </td>
      <td data-label="Route" className={styles['wrap']}>
        {route === null ? <span className="quiet">none reached</span> : <code>{route}</code>}
      </td>
      <td data-label="Times">{count.toLocaleString()}</td>
      <td data-label="When">
        <Moment at={lastAt} now={now} />
      </td>
    </tr>
  );
}

function KeyLink({ id, name }: { id: string; name: string }) {
  return (
    <Anchor inherit renderRoot={(props) => <Link to="/settings/keys/$id" params={{ id }} {...props} />}>
      <bdi>{name}</bdi>
    </Anchor>
  );
}
