import { Badge, Button } from '@mantine/core';
import { Moment } from '../../app/moment.tsx';
import { Table } from '../../lists/table.tsx';
import { endOf, type Key, standingOf, standingWords } from './key-words.ts';
import styles from './key-table.module.css';

type TableProps = {
  keys: readonly Key[];
  now: number;
  /** An answer to an earlier question, shown until the new one comes. */
  isStale: boolean;
  onRevoke: (key: Key) => void;
};

export function KeyTable({ keys, now, isStale, onRevoke }: TableProps) {
  return (
    <Table
      caption="API keys"
      columns={['Name', 'May do', 'Repositories', 'Created', 'Last used', 'State']}
      hasActions
      isStale={isStale}
    >
      {keys.map((key) => (
        <Row key={key.id} of={key} now={now} onRevoke={onRevoke} />
      ))}
    </Table>
  );
}

function Row({ of: key, now, onRevoke }: { of: Key; now: number; onRevoke: (key: Key) => void }) {
  const standing = standingOf(key, now);
  const [label, color] = standingWords[standing];
  const isOver = standing === 'revoked' || standing === 'expired';
  const end = endOf(key);
  return (
    <tr data-over={isOver}>
      <th scope="row" className={styles['name']}>
        <bdi>{key.name}</bdi>
        <code className="quiet">{key.id}</code>
      </th>
      <td data-label="May do">
        <span className={styles['scopes']}>
          {key.scopes.map((scope) => (
            <code key={scope} className={styles['scope']}>
              {scope}
            </code>
          ))}
        </span>
      </td>
      <td data-label="Repositories">
        <Repositories of={key} />
      </td>
      <td data-label="Created">
        <Moment at={key.createdAt} now={now} />
      </td>
      <td data-label="Last used">
        {key.lastUsedAt === null ? (
          <span className="quiet">Never</span>
        ) : (
          <Moment at={key.lastUsedAt} now={now} />
        )}
      </td>
      <td data-label="State">
        <Badge className={styles['badge']} variant="light" color={color} tt="none" fw={600}>
          {label}
        </Badge>
        {end.at !== null && (
          <span className={styles['end']}>
            {end.word} <Moment at={end.at} now={now} />
          </span>
        )}
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

function Repositories({ of: { repositories: reach } }: { of: Key }) {
  if (reach.mode === 'all') return <span className={styles['broad']}>All repositories</span>;
  const { repositories: names } = reach;
  if (names.length === 0) return <span className="quiet">None left</span>;
  if (names.length === 1) return <span className={styles['repository']}>{names[0]}</span>;
  return (
    <details className={styles['more']}>
      <summary>{names.length} repositories</summary>
      <ul>
        {names.map((name) => (
          <li key={name}>{name}</li>
        ))}
      </ul>
    </details>
  );
}
