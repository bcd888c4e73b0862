import { Badge, Button, Checkbox } from '@mantine/core';
import { Table } from '../../lists/table.tsx';
import { End, LastUsed, Repositories } from '../../settings/keys/key-cells.tsx';
import { isOver, type Key, standingOf } from '../../settings/keys/key-words.ts';
import { Scopes, Standing } from '../../settings/keys/standing.tsx';
import common from '../admin.module.css';
import styles from './managed-key-table.module.css';
import { isUnused, unusedWords } from './managed-key-words.ts';

type TableProps = {
  readonly keys: readonly Key[];
  readonly now: number;
  readonly isStale: boolean;
  /** Says whose each key is; service keys have no owner, but a creator. */
  readonly whose: 'owner' | 'creator';
  readonly onRevoke: (key: Key) => void;
  readonly onReplace?: (key: Key) => void;
  readonly onOwner?: (id: string) => void;
  /** Ids of those that are chosen; without it nothing can be. */
  readonly chosen?: ReadonlySet<string>;
  readonly onChoose?: (ids: readonly string[], isChosen: boolean) => void;
};

export function ManagedKeyTable(props: TableProps) {
  const { keys, isStale, whose } = props;
  return (
    <Table
      caption={whose === 'owner' ? 'Keys of users' : 'Service keys'}
      columns={[
        'Name',
        whose === 'owner' ? 'Owner' : 'Created by',
        'May do',
        'Repositories',
        'Last used',
        'State',
      ]}
      hasActions
      isStale={isStale}
    >
      {keys.map((key) => (
        <Row key={key.id} of={key} {...props} />
      ))}
    </Table>
  );
}

function Row({
  of: key,
  now,
  whose,
  chosen,
  onChoose,
  onRevoke,
  onReplace,
  onOwner,
}: TableProps & { of: Key }) {
  const standing = standingOf(key, now);
  const person = whose === 'owner' ? key.owner : key.createdBy;
  return (
    <tr data-over={isOver(standing)}>
      <th scope="row">
        <span className={styles['name']}>
          {chosen !== undefined && key.status === 'active' && (
            <Checkbox
              size="xs"
              aria-label={`Choose ${key.name}`}
              checked={chosen.has(key.id)}
              onChange={({ currentTarget }) => onChoose?.([key.id], currentTarget.checked)}
            />
          )}
          <span>
            <bdi>{key.name}</bdi>
            <code>{key.id}</code>
          </span>
        </span>
      </th>
      <td data-label={whose === 'owner' ? 'Owner' : 'Created by'} className={common['person']}>
        <Person of={person} {...(onOwner && { onOwner })} />
      </td>
      <td data-label="May do">
        <Scopes of={key.scopes} />
      </td>
      <td data-label="Repositories">
        <Repositories of={key} />
      </td>
      <td data-label="Last used">
        <LastUsed of={key} now={now} />
      </td>
      <td data-label="State">
        <span className={common['badges']}>
          <Standing of={standing} />
          {isUnused(key, now) && (
            <Badge className={common['badge']} variant="light" color="yellow" tt="none" fw={600}>
              {unusedWords}
            </Badge>
          )}
          {key.replacedBy !== null && key.status === 'active' && (
            <Badge className={common['badge']} variant="light" color="blue" tt="none" fw={600}>
              Being replaced
            </Badge>
          )}
        </span>
        <End of={key} now={now} reader="administrator" />
      </td>
      <td>
        {key.status === 'active' && (
          <span className={`${common['rowButtons']} ${styles['actions']}`}>
            {onReplace !== undefined && key.replacedBy === null && key.replaces === null && (
              <Button
                variant="default"
                size="xs"
                aria-label={`Replace ${key.name}`}
                onClick={() => onReplace(key)}
              >
                Replace
              </Button>
            )}
            <Button
              variant="default"
              size="xs"
              aria-label={`Revoke ${key.name}`}
              onClick={() => onRevoke(key)}
            >
              Revoke
            </Button>
          </span>
        )}
      </td>
    </tr>
  );
}

function Person({ of: person, onOwner }: { of: Key['owner']; onOwner?: (id: string) => void }) {
  if (person === null) return <span className="quiet">Nobody</span>;
  const name = person.name ?? person.id;
  if (onOwner === undefined) return <bdi>{name}</bdi>;
  return (
    <button
      type="button"
      className={styles['owner']}
      aria-label={`Show only keys of ${name}`}
      onClick={() => onOwner(person.id)}
    >
      <bdi>{name}</bdi>
    </button>
  );
}
