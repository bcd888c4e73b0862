import { Anchor, Button } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import type { Schemas } from '../api/contract.ts';
import { Moment } from '../shell/moment.tsx';
import { Table } from '../lists/table.tsx';
import { End, LastUsed, Repositories, Rotation } from './key-cells.tsx';
import { isOver, type Key, standingOf } from './key-words.ts';
import styles from './key-table.module.css';
import { Sparkline } from './sparkline.tsx';
import { Scopes, Standing } from './standing.tsx';

type TableProps = {
  keys: readonly Key[];
  /** Undefined until the usage is known. */
  usages: Schemas['KeyUsages'] | undefined;
  now: number;
  /** The rows are of the previous query, shown until the new response arrives. */
  isStale: boolean;
  onRevoke: (key: Key) => void;
};

export function KeyTable({ keys, usages, now, isStale, onRevoke }: TableProps) {
  return (
    <Table
      caption="API keys"
      columns={['Name', 'May do', 'Repositories', 'Created', 'Last used', 'State']}
      hasActions
      isStale={isStale}
    >
      {keys.map((key) => (
        <Row key={key.id} of={key} keys={keys} usages={usages} now={now} onRevoke={onRevoke} />
      ))}
    </Table>
  );
}

type RowProps = Pick<TableProps, 'keys' | 'usages' | 'now' | 'onRevoke'> & { of: Key };

function Row({ of: key, keys, usages, now, onRevoke }: RowProps) {
  const standing = standingOf(key, now);
  return (
    <tr data-over={isOver(standing)}>
      <th scope="row" className={styles['name']}>
        <Anchor
          inherit
          c="inherit"
          renderRoot={(props) => <Link to="/settings/keys/$id" params={{ id: key.id }} {...props} />}
        >
          <bdi>{key.name}</bdi>
        </Anchor>
        <code className="quiet">{key.id}</code>
      </th>
      <td data-label="May do">
        <Scopes of={key.scopes} />
      </td>
      <td data-label="Repositories">
        <Repositories of={key} />
      </td>
      <td data-label="Created">
        <Moment at={key.createdAt} now={now} />
      </td>
      <td data-label="Last used" className={styles['used']}>
        <LastUsed of={key} now={now} />
        {usages !== undefined && <Sparkline usages={usages} id={key.id} />}
      </td>
      <td data-label="State">
        <Standing of={standing} /> <Rotation of={key} among={keys} />
        <End of={key} now={now} reader="owner" />
      </td>
      <td>
        {key.status === 'active' && (
          <Button variant="default" size="xs" aria-label={`Revoke ${key.name}`} onClick={() => onRevoke(key)}>
            Revoke
          </Button>
        )}
      </td>
    </tr>
  );
}
