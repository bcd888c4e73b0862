import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { Anchor, Title } from '@mantine/core';
import type { Schemas } from '../../api/contract.ts';
import { Moment } from '../../shell/moment.tsx';
import { useNow } from '../../shell/now.ts';
import { NoMatch } from '../../lists/empty.tsx';
import { List } from '../../lists/list.tsx';
import { Table } from '../../lists/table.tsx';
import { myRefusals } from '../queries.ts';

/** The last refused requests with the user's keys, so that no id is needed. */
export function LastRefusals() {
  const found = useQuery(myRefusals);
  const now = useNow();
  return (
    <section aria-labelledby="last">
      <Title order={2} size="h4" id="last" mb="sm">
        Last refused requests
      </Title>
      <List
        what="refused requests"
        found={found}
        empty={
          <NoMatch>
            No request with one of your keys was refused in the last 30 days. A refusal shows here within a
            minute.
          </NoMatch>
        }
      >
        {(items) => (
          <Table
            caption="Last refused requests"
            columns={['What', 'Key', 'Route', 'Times', 'When']}
            isStale={false}
            isDense
          >
            {items.map((one) => (
              <Row key={one.requestId} of={one} now={now} />
            ))}
          </Table>
        )}
      </List>
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
      <td data-label="Key" className="wrap">
        <KeyLink id={keyId} name={keyName} />
      </td>
      <td data-label="Route" className="wrap">
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
