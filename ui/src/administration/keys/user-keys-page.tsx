import { Button, Modal } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useRef, useState } from 'react';
import { CardIcon } from '../../shell/icons.tsx';
import { Empty, NoMatch } from '../../lists/empty.tsx';
import { PageHead } from '../../lists/page-head.tsx';
import { List } from '../../lists/list.tsx';
import type { Key } from '../../keys/key-words.ts';
import { useServerNow } from '../now.ts';
import { PickField } from '../pick-field.tsx';
import { managedKeys } from '../queries.ts';
import { KeyFilters } from './key-filters.tsx';
import { keyOrders } from './managed-key-order.ts';
import { isFiltered, managedKeySearch, queryOf, type SearchPart } from './managed-key-search.ts';
import { ManagedKeyTable } from './managed-key-table.tsx';
import { RevokeUserKeys } from './revoke-keys.tsx';
import styles from './user-keys-page.module.css';
import { focusIfLost } from '../../shell/focus.ts';

const route = getRouteApi('/administration/admin/user-keys');

/** The keys of people: an administrator reads and revokes them, and never holds or changes one. */
export function UserKeysPage() {
  const navigate = route.useNavigate();
  const asked = route.useSearch();
  const keys = useQuery(managedKeys({ kind: 'personal', ...queryOf(asked) }));
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [revoking, setRevoking] = useState<readonly Key[]>([]);
  const heading = useRef<HTMLHeadingElement>(null);
  const now = useServerNow();
  const shown = keys.data?.data ?? [];
  // A selected key that is no longer on the page must not be revoked unseen.
  const marked = shown.filter(({ id, status }) => chosen.has(id) && status === 'active');
  const show = (part: SearchPart) => {
    setChosen(new Set());
    void navigate({ search: managedKeySearch({ ...asked, page: 1, ...part }), replace: true });
  };
  const choose = (ids: readonly string[], isChosen: boolean) => {
    const next = new Set(chosen);
    for (const id of ids) {
      if (isChosen) next.add(id);
      else next.delete(id);
    }
    setChosen(next);
  };

  return (
    <>
      <PageHead
        title="User keys"
        intro="Everyone’s personal keys. You can view and revoke them. Only the owner can change what a key may do."
        heading={heading}
      />
      <KeyFilters search={asked} onChange={show}>
        <PickField
          className={styles['owner']}
          of="people"
          aria-label="Owner"
          placeholder="Any owner"
          id={asked.owner}
          onPick={(owner = '') => show({ owner })}
        />
      </KeyFilters>
      <div className={styles['bulk']}>
        <Button
          size="xs"
          variant="default"
          onClick={() =>
            choose(
              shown.map(({ id }) => id),
              marked.length < active(shown).length,
            )
          }
          disabled={active(shown).length === 0}
        >
          {marked.length > 0 && marked.length === active(shown).length
            ? 'Clear selection'
            : 'Select all on this page'}
        </Button>
        <Button size="xs" color="red" disabled={marked.length === 0} onClick={() => setRevoking(marked)}>
          Revoke selected…
        </Button>
        <span role="status" className="quiet">
          {marked.length === 0 ? '' : `${marked.length} selected`}
        </span>
      </div>
      <List
        what="keys"
        found={keys}
        onTurn={() => setChosen(new Set())}
        empty={
          !isFiltered(asked) ? (
            <Empty picture={<CardIcon size={28} />} title="No user has an active key">
              <p className="quiet">Users create their own keys under “API keys” in Settings.</p>
            </Empty>
          ) : (
            <NoMatch
              clear="Show all active keys"
              onClear={() => void navigate({ search: {}, replace: true })}
            >
              No key matches these filters.
            </NoMatch>
          )
        }
      >
        {() => (
          <ManagedKeyTable
            keys={shown}
            now={now}
            isStale={keys.isPlaceholderData}
            order={asked}
            onSort={(sort) => show(keyOrders.next(asked, sort))}
            whose="owner"
            onRevoke={(key) => setRevoking([key])}
            onOwner={(owner) => show({ owner })}
            chosen={chosen}
            onChoose={choose}
          />
        )}
      </List>
      <Modal
        opened={revoking.length > 0}
        title={revoking.length === 1 ? 'Revoke this key?' : `Revoke ${revoking.length} keys?`}
        onClose={() => setRevoking([])}
      >
        <RevokeUserKeys
          of={revoking}
          now={now}
          onClose={() => setRevoking([])}
          onRevoked={() => setChosen(new Set())}
          onDone={() => focusIfLost(heading.current)}
        />
      </Modal>
    </>
  );
}

function active(keys: readonly Key[]): readonly Key[] {
  return keys.filter(({ status }) => status === 'active');
}
