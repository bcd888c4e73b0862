import { Button, Pagination, SegmentedControl, TextInput, Title, Tooltip } from '@mantine/core';
import { useDebouncedCallback } from '@mantine/hooks';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useEffect, useRef, useState } from 'react';
import { myKeys, myPolicy } from '../../api/queries.ts';
import { PlusIcon, SearchIcon } from '../../app/icons.tsx';
import { useNow } from '../../app/now.ts';
import { Problem } from '../../app/problem.tsx';
import { useShortcut } from '../../app/shortcuts.ts';
import { FirstKey, NoMatch } from './empty.tsx';
import { type KeySearch, keySearch, keyStates, searchTextFrom } from './key-search.ts';
import { KeyTable, KeyTableLoading } from './key-table.tsx';
import type { Key } from './key-words.ts';
import styles from './keys-page.module.css';
import { Meter } from './meter.tsx';
import { RevokeDialog } from './revoke-dialog.tsx';

const route = getRouteApi('/settings/keys');
const pageSize = 20;
const stateLabels = { active: 'Active', expired: 'Expired', revoked: 'Revoked', all: 'All' } as const;

/** My keys: what they may do, when they end, and the way to end them. */
export function KeysPage() {
  const asked = route.useSearch();
  const navigate = route.useNavigate();
  const { state = 'active', search = '', page = 1 } = asked;
  const policy = useQuery(myPolicy);
  const keys = useQuery(
    myKeys({ page, limit: pageSize, search, status: state === 'all' ? undefined : state }),
  );
  const [revoking, setRevoking] = useState<Key>();
  const heading = useRef<HTMLHeadingElement>(null);
  const now = useNow() + (policy.data?.clockOffsetMs ?? 0);
  const total = keys.data?.metadata.pagination.total ?? 0;
  const show = (next: KeySearch) =>
    void navigate({ search: keySearch({ state, search, ...next }), replace: true });

  // The last key of the last page was revoked: what is left is on the page before.
  useEffect(() => {
    if (total > 0 && page > total) void navigate({ search: { ...asked, page: total }, replace: true });
  }, [asked, navigate, page, total]);

  return (
    <>
      <title>API keys · Postern</title>
      <div className={styles['head']}>
        <div className={styles['intro']}>
          <Title order={1} size="h2" tabIndex={-1} ref={heading}>
            API keys
          </Title>
          <p className="quiet">
            A key lets a script act for you, within the scopes and repositories you give it.
          </p>
        </div>
        {policy.data !== undefined && <Meter {...policy.data.activeKeys} />}
        <NewKeyButton reasons={policy.data?.canCreate === false ? policy.data.reasons : []} />
      </div>
      {policy.error !== null && <Problem error={policy.error} onRetry={() => void policy.refetch()} />}
      <div className={styles['tools']}>
        <SearchField value={search} onChange={(text) => show({ search: text })} />
        <SegmentedControl
          aria-label="State"
          className={styles['states']}
          value={state}
          onChange={(value) => show({ state: value })}
          data={keyStates.map((value) => ({ value, label: stateLabels[value] }))}
        />
      </div>
      {keys.isPending && <KeyTableLoading />}
      {keys.error !== null && <Problem error={keys.error} onRetry={() => void keys.refetch()} />}
      {keys.data !== undefined &&
        (keys.data.data.length > 0 ? (
          <KeyTable keys={keys.data.data} now={now} isStale={keys.isPlaceholderData} onRevoke={setRevoking} />
        ) : state === 'active' && search === '' ? (
          <FirstKey onShowAll={() => show({ state: 'all' })} />
        ) : (
          <NoMatch state={state} search={search} onClear={() => show({ state: 'active', search: '' })} />
        ))}
      {total > 1 && (
        <Pagination
          className={styles['pages']}
          total={total}
          value={page}
          onChange={(next) => show({ page: next })}
          size="sm"
          getControlProps={(control) => ({ 'aria-label': `${control} page` })}
          getItemProps={(number) => ({ 'aria-label': `Page ${number}` })}
        />
      )}
      <RevokeDialog
        revoking={revoking}
        now={now}
        onClose={() => setRevoking(undefined)}
        onRevoked={() => heading.current?.focus()}
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

/** Types on without waiting for the address; `/` brings one here. */
function SearchField({ value, onChange }: { value: string; onChange: (text: string) => void }) {
  const [text, setText] = useState(value);
  const field = useRef<HTMLInputElement>(null);
  const send = useDebouncedCallback(onChange, 250);
  // The address may change by itself (back, a cleared filter); what is being typed is newer than it.
  useEffect(() => {
    if (document.activeElement !== field.current) setText(value);
  }, [value]);
  useShortcut('/', () => field.current?.focus());
  return (
    <TextInput
      ref={field}
      className={styles['search']}
      type="search"
      aria-label="Search by name or id"
      placeholder="Start of a name, or an id"
      leftSection={<SearchIcon />}
      maxLength={200}
      value={text}
      onChange={({ currentTarget }) => {
        const next = searchTextFrom(currentTarget.value);
        setText(next);
        send(next);
      }}
    />
  );
}
