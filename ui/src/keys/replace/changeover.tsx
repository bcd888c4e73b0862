import { Alert, Anchor, Button, Loader, Skeleton } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { Command } from '../../shell/command.tsx';
import { Moment } from '../../shell/moment.tsx';
import { useNow } from '../../shell/now.ts';
import { Problem } from '../../shell/problem.tsx';
import { askWhoAmI } from '../../shell/snippets.ts';
import { exactly } from '../../shell/time.ts';
import { isOver, type Key, standingOf } from '../key-words.ts';
import styles from '../new/new-key.module.css';
import { RevokeDialog } from '../revoke-dialog.tsx';
import own from './replace.module.css';
import { Steps } from './steps.tsx';
import { myKey, myPolicy } from '../queries.ts';

const askEveryMs = 5_000;

/** The last two steps: the new key is in use, and the old one is revoked or expires. Polls both keys. */
export function Changeover({ old, newId }: { old: Key; newId: string }) {
  const { data: policy } = useQuery(myPolicy);
  const now = useNow() + (policy?.clockOffsetMs ?? 0);
  const fresh = useQuery({ ...myKey(newId), refetchInterval: askEveryMs });
  // The first use of the new key brings its expiry forward.
  const before = useQuery({ ...myKey(old.id), refetchInterval: askEveryMs });
  const [isRevoking, setRevoking] = useState(false);
  if (fresh.data === undefined) {
    return fresh.error === null ? (
      <Skeleton height={200} radius="lg" aria-label="Loading the new key" role="status" />
    ) : (
      <Problem error={fresh.error} onRetry={() => void fresh.refetch()} />
    );
  }
  const current = before.data ?? old;
  const standing = standingOf(current, now);
  const hasEnded = isOver(standing);
  const atWork = fresh.data.lastUsedAt !== null;
  return (
    <>
      <Steps at={hasEnded ? 5 : atWork ? 4 : 3} />
      <div className={styles['card']}>
        <div className={own['facts']}>
          {hasEnded ? (
            <Over old={current} fresh={fresh.data} atWork={atWork} />
          ) : (
            <>
              <Proof of={fresh.data} atWork={atWork} now={now} />
              <OldEnds of={current} atWork={atWork} now={now} />
              <div className={own['buttons']}>
                <Button color="red" variant={atWork ? 'filled' : 'light'} onClick={() => setRevoking(true)}>
                  Revoke the old key now
                </Button>
              </div>
            </>
          )}
        </div>
      </div>
      <RevokeDialog
        revoking={isRevoking ? current : undefined}
        now={now}
        onClose={() => setRevoking(false)}
        onRevoked={() => document.querySelector<HTMLElement>('main')?.focus()}
      />
    </>
  );
}

function Proof({ of: key, atWork, now }: { of: Key; atWork: boolean; now: number }) {
  if (atWork) {
    return (
      <Alert color="green" title="The new key is in use" role="status">
        <KeyName of={key} /> was used
        {key.lastUsedAt !== null && (
          <>
            {' '}
            <Moment at={key.lastUsedAt} now={now} />
          </>
        )}
        .
      </Alert>
    );
  }
  return (
    <>
      <p className={own['waiting']} role="status">
        <Loader size="sm" aria-hidden="true" /> Waiting for the first use of the new key
      </p>
      <p>
        Give <KeyName of={key} /> to the script, or make a request with it yourself. This page shows the use
        within a minute.
      </p>
      <Command text={askWhoAmI()} of="use the new key once" />
    </>
  );
}

function OldEnds({ of: old, atWork, now }: { of: Key; atWork: boolean; now: number }) {
  if (old.expiresAt === null) return null;
  return (
    <p>
      The old key <KeyName of={old} /> expires by itself <Moment at={old.expiresAt} now={now} isAhead />, on{' '}
      {exactly(Date.parse(old.expiresAt))}
      {atWork ? '.' : ', or soon after the new one is first used.'}
    </p>
  );
}

function Over({ old, fresh, atWork }: { old: Key; fresh: Key; atWork: boolean }) {
  return (
    <>
      <Alert
        color={atWork ? 'green' : 'yellow'}
        title={atWork ? 'Replaced' : 'The old key no longer works'}
        role="status"
      >
        <KeyName of={old} /> no longer works.
        {!atWork && ' Nothing has used the new one yet.'}
      </Alert>
      <div className={own['buttons']}>
        <Button renderRoot={(props) => <Link to="/settings/keys/$id" params={{ id: fresh.id }} {...props} />}>
          Go to the new key
        </Button>
      </div>
      <p className="quiet">
        If something still uses the old key, its page counts the request under “Inactive keys”.{' '}
        <Anchor
          inherit
          underline="always"
          renderRoot={(props) => <Link to="/settings/keys/$id" params={{ id: old.id }} {...props} />}
        >
          View the old key
        </Anchor>
      </p>
    </>
  );
}

function KeyName({ of: { id, name } }: { of: Key }) {
  return (
    <>
      <b>
        <bdi>{name}</bdi>
      </b>{' '}
      <code className="quiet">{id}</code>
    </>
  );
}
