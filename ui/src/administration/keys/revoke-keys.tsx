import { Alert, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api, unwrap } from '../../api/client.ts';
import { fromNow } from '../../shell/time.ts';
import type { Key } from '../../keys/key-words.ts';
import { Confirm } from '../../shell/confirm.tsx';
import common from '../admin.module.css';
import { sitesManagedBy } from '../queries.ts';
import { ReasonField } from '../reason-field.tsx';

type OneProps = {
  readonly of: Key;
  readonly now: number;
  readonly onClose: () => void;
  readonly onDone: () => void;
};

/** Everything that uses the key stops, and no key can change its sites afterwards. The dialog says both. */
export function RevokeServiceKey({ of: key, now, onClose, onDone }: OneProps) {
  const [note, setNote] = useState('');
  return (
    <Confirm
      act={() => revoke([key], note)}
      said={`${key.name} is revoked.`}
      refresh={['admin', 'keys']}
      confirm="Revoke for good"
      keep="Keep it"
      onClose={onClose}
      onDone={onDone}
    >
      <div className={common['stack']}>
        <Who of={key} now={now} />
        <SitesLeft of={key} />
        <Note value={note} onChange={setNote} />
      </div>
    </Confirm>
  );
}

/** Warns about sites that no key could manage any more, because that is easily overlooked. Also warns if the count is unknown. */
function SitesLeft({ of: key }: { of: Key }) {
  const { data: sites, error } = useQuery(sitesManagedBy(key.id));
  if (sites === 0 || (sites === undefined && error === null)) return null;
  const title =
    sites === undefined
      ? 'Its sites become unmanageable'
      : sites === 1
        ? 'The site it manages becomes unmanageable'
        : `The ${sites.toLocaleString()} sites it manages become unmanageable`;
  return (
    <Alert color="yellow" title={title}>
      The sites that it published are served until they expire. No successor can change, extend or delete
      them. An administrator can only take them down.
    </Alert>
  );
}

type ManyProps = {
  readonly of: readonly Key[];
  readonly now: number;
  readonly onClose: () => void;
  /** Runs before the refetch. */
  readonly onRevoked?: () => void;
  readonly onDone: () => void;
};

/** Revokes one or all selected keys of people, with a reason that their owners read in the key's timeline. */
export function RevokeUserKeys({ of: keys, now, onClose, onRevoked, onDone }: ManyProps) {
  const [note, setNote] = useState('');
  const owners = new Set(keys.map(({ owner }) => owner?.id ?? '')).size;
  const [first] = keys;
  return (
    <Confirm
      act={() => revoke(keys, note).then(onRevoked)}
      said={keys.length === 1 ? `${first?.name ?? ''} is revoked.` : `${keys.length} keys are revoked.`}
      refresh={['admin', 'keys']}
      confirm={keys.length === 1 ? 'Revoke for good' : `Revoke ${keys.length} keys for good`}
      keep={keys.length === 1 ? 'Keep it' : 'Keep them'}
      isReady={note.trim() !== ''}
      onClose={onClose}
      onDone={onDone}
    >
      <div className={common['stack']}>
        {keys.length === 1 && first !== undefined ? (
          <Who of={first} now={now} />
        ) : (
          <Text size="sm">
            {keys.length} keys of {owners} {owners === 1 ? 'person' : 'people'} are refused immediately,
            everywhere. This cannot be undone: their scripts will need new keys.
          </Text>
        )}
        <Note value={note} onChange={setNote} isNeeded />
      </div>
    </Confirm>
  );
}

async function revoke(keys: readonly Key[], note: string): Promise<void> {
  const ids = keys.map(({ id }) => id);
  const body = note.trim() === '' ? { ids } : { ids, note: note.trim() };
  await unwrap(api.POST('/tokens/revoke', { body }));
}

function Who({ of: key, now }: { of: Key; now: number }) {
  return (
    <Text size="sm">
      <b className="wrap">
        <bdi>{key.name}</bdi>
      </b>{' '}
      <code className="quiet">{key.id}</code>
      {key.owner !== null && (
        <>
          {' '}
          of <bdi>{key.owner.name ?? key.owner.id}</bdi>
        </>
      )}{' '}
      is refused immediately, everywhere. This cannot be undone.{' '}
      {key.lastUsedAt === null
        ? 'It was never used.'
        : `It was last used ${fromNow(Date.parse(key.lastUsedAt), now)}.`}
    </Text>
  );
}

type NoteProps = {
  readonly value: string;
  readonly onChange: (note: string) => void;
  readonly isNeeded?: boolean;
};

function Note({ value, onChange, isNeeded = false }: NoteProps) {
  return (
    <ReasonField
      description="Recorded in the audit log and in the key’s timeline, which its owner can read."
      placeholder="Found in a public log"
      isRequired={isNeeded}
      value={value}
      onChange={onChange}
    />
  );
}
