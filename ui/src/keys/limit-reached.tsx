import { Alert, Anchor, Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { Moment } from '../shell/moment.tsx';
import type { Key } from './key-words.ts';
import styles from './keys-page.module.css';
import { myKeys } from './queries.ts';

/** Shown at the limit: the keys that were unused longest, each with a button to revoke it. */
export function LimitReached({ now, onRevoke }: { now: number; onRevoke: (key: Key) => void }) {
  const { data } = useQuery(myKeys({ status: 'active', sort: 'lastUsedAt', order: 'asc', limit: 20 }));
  const idle = (data?.data ?? [])
    .map((key) => ({ key, since: key.lastUsedAt ?? key.createdAt }))
    .sort((a, b) => Date.parse(a.since) - Date.parse(b.since))
    .slice(0, 3);
  if (idle.length === 0) return null;
  return (
    <Alert color="yellow" mb="md" title="You have reached the limit of active keys">
      These keys have been unused longest. Revoke one that you no longer need.
      <ul className={styles['full']}>
        {idle.map(({ key, since }) => (
          <li key={key.id}>
            <span>
              <Anchor
                inherit
                fw={600}
                renderRoot={(props) => <Link to="/settings/keys/$id" params={{ id: key.id }} {...props} />}
              >
                <bdi>{key.name}</bdi>
              </Anchor>{' '}
              {key.lastUsedAt === null ? 'never used, created' : 'last used'} <Moment at={since} now={now} />
            </span>
            <Button
              size="compact-sm"
              variant="default"
              aria-label={`Make room: revoke ${key.name}`}
              onClick={() => onRevoke(key)}
            >
              Revoke
            </Button>
          </li>
        ))}
      </ul>
    </Alert>
  );
}
