import { Button, SegmentedControl, Tooltip } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useRef, useState } from 'react';
import { PlusIcon } from '../shell/icons.tsx';
import { useNow } from '../shell/now.ts';
import { Problem } from '../shell/problem.tsx';
import { PageHead, Tools } from '../lists/page-head.tsx';
import { List } from '../lists/list.tsx';
import { SearchField } from '../lists/search-field.tsx';
import { FirstKey, NoKeyMatches } from './empty.tsx';
import { KeyFilters } from './key-filters.tsx';
import { askedBy, isFiltered, type KeySearch, keySearch, keyStates } from './key-search.ts';
import { KeyTable } from './key-table.tsx';
import type { Key } from './key-words.ts';
import styles from './keys-page.module.css';
import { LimitReached } from './limit-reached.tsx';
import { Meter } from './meter.tsx';
import { RevokeAll } from './revoke-all.tsx';
import { RevokeDialog } from './revoke-dialog.tsx';
import { myKeys, myPolicy, usagesOf } from './queries.ts';
import { focusIfLost } from '../shell/focus.ts';

const route = getRouteApi('/settings/keys');
const pageSize = 20;
const stateLabels = { active: 'Active', expired: 'Expired', revoked: 'Revoked', all: 'All' } as const;

/** The user's keys: what they may do, when they expire, and a button to revoke each. */
export function KeysPage() {
  const navigate = route.useNavigate();
  const shown = route.useSearch();
  const { page: _page, ...kept } = shown;
  const { state = 'active', search = '' } = kept;
  const policy = useQuery(myPolicy);
  const keys = useQuery(myKeys(askedBy(shown, pageSize)));
  const { data: usages } = useQuery(usagesOf((keys.data?.data ?? []).map(({ id }) => id)));
  const [revoking, setRevoking] = useState<Key>();
  const heading = useRef<HTMLHeadingElement>(null);
  const now = useNow() + (policy.data?.clockOffsetMs ?? 0);
  const { activeKeys } = policy.data ?? {};
  const isFull = activeKeys !== undefined && activeKeys.count >= activeKeys.limit;
  const show = (next: KeySearch) => void navigate({ search: keySearch(next), replace: true });

  return (
    <>
      <PageHead
        title="API keys"
        intro="A key lets a script act for you, within the scopes and repositories you give it."
        heading={heading}
      >
        {policy.data !== undefined && (
          <Meter
            {...policy.data.activeKeys}
            hasPair={(keys.data?.data ?? []).some(
              ({ replacedBy, status }) => replacedBy !== null && status === 'active',
            )}
          />
        )}
        <NewKeyButton reasons={policy.data?.canCreate === false ? policy.data.reasons : []} />
      </PageHead>
      {policy.error !== null && <Problem error={policy.error} onRetry={() => void policy.refetch()} />}
      <Tools>
        <SearchField
          label="Search by name or id"
          placeholder="Search by name or id"
          value={search}
          onChange={(text) => show({ ...kept, search: text })}
        />
        <SegmentedControl
          aria-label="State"
          className={styles['states']}
          value={state}
          onChange={(value) => show({ ...kept, state: value })}
          data={keyStates.map((value) => ({ value, label: stateLabels[value] }))}
        />
        <KeyFilters shown={shown} onChange={show} />
      </Tools>
      {isFull && <LimitReached now={now} onRevoke={setRevoking} />}
      <List
        what="keys"
        found={keys}
        empty={
          state === 'active' && !isFiltered(shown) ? (
            <FirstKey onShowAll={() => show({ state: 'all' })} />
          ) : (
            <NoKeyMatches shown={shown} onClear={() => show({})} />
          )
        }
      >
        {(items) => (
          <KeyTable
            keys={items}
            usages={usages}
            now={now}
            isStale={keys.isPlaceholderData}
            onRevoke={setRevoking}
          />
        )}
      </List>
      {activeKeys !== undefined && activeKeys.count > 0 && (
        <RevokeAll count={activeKeys.count} onRevoked={() => focusIfLost(heading.current)} />
      )}
      <RevokeDialog
        revoking={revoking}
        now={now}
        onClose={() => setRevoking(undefined)}
        onRevoked={() => focusIfLost(heading.current)}
      />
    </>
  );
}

function NewKeyButton({ reasons }: { reasons: readonly { message: string }[] }) {
  if (reasons.length === 0) {
    return (
      <Button component={Link} to="/settings/keys/new" leftSection={<PlusIcon />}>
        New key
      </Button>
    );
  }
  return (
    <Tooltip label={reasons.map(({ message }) => message).join(' ')} multiline w={260}>
      <Button
        leftSection={<PlusIcon />}
        data-disabled
        aria-disabled
        onClick={(event) => event.preventDefault()}
      >
        New key
      </Button>
    </Tooltip>
  );
}
