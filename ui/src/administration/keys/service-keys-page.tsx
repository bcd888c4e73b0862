import { Button, Modal } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useRef, useState } from 'react';
import { PlusIcon, RobotIcon } from '../../shell/icons.tsx';
import { useShortcut } from '../../shell/shortcuts.ts';
import { Empty, NoMatch } from '../../lists/empty.tsx';
import { PageHead } from '../../lists/page-head.tsx';
import { List } from '../../lists/list.tsx';
import type { Key } from '../../keys/key-words.ts';
import { useServerNow } from '../now.ts';
import { managedKeys } from '../queries.ts';
import { KeyFilters } from './key-filters.tsx';
import { keyOrders } from './managed-key-order.ts';
import { isFiltered, managedKeySearch, queryOf, type SearchPart } from './managed-key-search.ts';
import { ManagedKeyTable } from './managed-key-table.tsx';
import { ReplaceKey } from './replace-key.tsx';
import { RevokeServiceKey } from './revoke-keys.tsx';
import { focusIfLost } from '../../shell/focus.ts';

const route = getRouteApi('/administration/admin/service-keys');

const steps = [
  {
    do: 'One key for one machine.',
    why: 'One for each pipeline, bot or schedule, so that you can replace it alone.',
  },
  { do: 'It belongs to no person.', why: 'It keeps working when the person who created it leaves.' },
  {
    do: 'Public sites only.',
    why: 'It owns exactly the sites it publishes itself; a successor inherits none.',
  },
];

/** Service keys: what they may do, when they were last used, and buttons to revoke or replace them. */
export function ServiceKeysPage() {
  const navigate = route.useNavigate();
  const asked = route.useSearch();
  const keys = useQuery(managedKeys({ kind: 'service', ...queryOf(asked) }));
  const [revoking, setRevoking] = useState<Key>();
  const [replacing, setReplacing] = useState<Key>();
  const heading = useRef<HTMLHeadingElement>(null);
  const now = useServerNow();
  const show = (part: SearchPart) =>
    void navigate({ search: managedKeySearch({ ...asked, page: 1, ...part }), replace: true });
  useShortcut('n', () => void navigate({ to: '/admin/service-keys/new' }));
  const toHeading = () => focusIfLost(heading.current);

  return (
    <>
      <PageHead
        title="Service keys"
        intro="Identities for automation that does not act for a person."
        heading={heading}
      >
        <Button component={Link} to="/admin/service-keys/new" leftSection={<PlusIcon />}>
          New service key
        </Button>
      </PageHead>
      <KeyFilters search={asked} onChange={show} />
      <List
        what="service keys"
        found={keys}
        empty={
          !isFiltered(asked) ? (
            <Empty picture={<RobotIcon size={28} />} title="No active service keys" steps={steps}>
              <Button component={Link} to="/admin/service-keys/new">
                Create a service key
              </Button>
            </Empty>
          ) : (
            <NoMatch
              clear="Show active service keys"
              onClear={() => void navigate({ search: {}, replace: true })}
            >
              No service key matches these filters.
            </NoMatch>
          )
        }
      >
        {(items) => (
          <ManagedKeyTable
            keys={items}
            now={now}
            isStale={keys.isPlaceholderData}
            order={asked}
            onSort={(sort) => show(keyOrders.next(asked, sort))}
            whose="creator"
            onRevoke={setRevoking}
            onReplace={setReplacing}
          />
        )}
      </List>
      <Modal
        opened={revoking !== undefined}
        title="Revoke this service key?"
        onClose={() => setRevoking(undefined)}
      >
        {revoking !== undefined && (
          <RevokeServiceKey
            of={revoking}
            now={now}
            onClose={() => setRevoking(undefined)}
            onDone={toHeading}
          />
        )}
      </Modal>
      {replacing !== undefined && (
        <ReplaceKey
          key={replacing.id}
          of={replacing}
          onClose={() => {
            setReplacing(undefined);
            toHeading();
          }}
        />
      )}
    </>
  );
}
