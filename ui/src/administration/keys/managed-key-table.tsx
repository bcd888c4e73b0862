import { Anchor, Badge, Button, Checkbox } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { Schemas } from '../../api/contract.ts';
import { Moment } from '../../shell/moment.tsx';
import { Table } from '../../lists/table.tsx';
import { End, LastUsed, Repositories, Rotation } from '../../keys/key-cells.tsx';
import { isOver, type Key, standingOf } from '../../keys/key-words.ts';
import { Sparkline } from '../../keys/sparkline.tsx';
import { Scopes, Standing } from '../../keys/standing.tsx';
import common from '../admin.module.css';
import { type KeyOrder, keyOrders, type KeySort } from './managed-key-order.ts';
import styles from './managed-key-table.module.css';
import { canBeReplaced, homeOf, isUnused, unusedWords } from './managed-key-words.ts';
import { usagesOf } from '../../keys/queries.ts';

type TableProps = {
  readonly keys: readonly Key[];
  readonly order: KeyOrder;
  readonly onSort: (sort: KeySort) => void;
  readonly now: number;
  readonly isStale: boolean;
  /** Says whose each key is; service keys have no owner, but a creator. */
  readonly whose: 'owner' | 'creator';
  readonly onRevoke: (key: Key) => void;
  readonly onReplace?: (key: Key) => void;
  readonly onOwner?: (id: string) => void;
  /** Ids of the selected keys. Without it, keys cannot be selected. */
  readonly chosen?: ReadonlySet<string>;
  readonly onChoose?: (ids: readonly string[], isChosen: boolean) => void;
};

export function ManagedKeyTable(props: TableProps) {
  const { keys, order, onSort, isStale, whose } = props;
  const { data: usages } = useQuery(
    usagesOf(
      keys.map(({ id }) => id),
      whose === 'owner' ? '/admin/user-keys' : '/admin/service-keys',
    ),
  );
  const sorted = (name: string, sort: KeySort) => ({
    name,
    order: keyOrders.directionIn(order, sort),
    onSort: () => onSort(sort),
  });
  return (
    <Table
      caption={whose === 'owner' ? 'Keys of users' : 'Service keys'}
      columns={[
        sorted('Name', 'name'),
        ...(whose === 'owner' ? ['Owner'] : []),
        'May do',
        sorted('Created', 'created'),
        sorted('Last used', 'used'),
        sorted('State', 'ending'),
      ]}
      hasActions
      isStale={isStale}
    >
      {keys.map((key) => (
        <Row key={key.id} of={key} usages={usages} {...props} />
      ))}
    </Table>
  );
}

type RowProps = TableProps & { readonly of: Key; readonly usages: Schemas['KeyUsages'] | undefined };

function Row({
  of: key,
  keys,
  usages,
  now,
  whose,
  chosen,
  onChoose,
  onRevoke,
  onReplace,
  onOwner,
}: RowProps) {
  const standing = standingOf(key, now);
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
            <Anchor
              inherit
              c="inherit"
              renderRoot={(props) => <Link to={`${homeOf(key)}/$id`} params={{ id: key.id }} {...props} />}
            >
              <bdi>{key.name}</bdi>
            </Anchor>
            <code>{key.id}</code>
          </span>
        </span>
      </th>
      {whose === 'owner' && (
        <td data-label="Owner" className={common['person']}>
          <Person of={key.owner} {...(onOwner && { onOwner })} />
        </td>
      )}
      <td data-label="May do">
        <div className={styles['rights']}>
          <Scopes of={key.scopes} />
          <Repositories of={key} />
        </div>
      </td>
      <td data-label="Created">
        <span className={styles['created']}>
          <Moment at={key.createdAt} now={now} />
          {whose === 'creator' && (
            <span>
              by <Person of={key.createdBy} />
            </span>
          )}
        </span>
      </td>
      <td data-label="Last used" className={styles['used']}>
        <LastUsed of={key} now={now} />
        {usages !== undefined && <Sparkline usages={usages} id={key.id} />}
      </td>
      <td data-label="State">
        <span className={common['badges']}>
          <Standing of={standing} />
          {key.credential === 'federated' && <Badge color="gray">Federated</Badge>}
          {isUnused(key, now) && <Badge color="yellow">{unusedWords}</Badge>}
          <Rotation of={key} among={keys} />
        </span>
        <End of={key} now={now} reader="administrator" />
      </td>
      <td>
        {key.status === 'active' && (
          <span className={common['rowButtons']}>
            {onReplace !== undefined && canBeReplaced(key) && (
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
  if (person === null) return <span className="quiet">nobody</span>;
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
