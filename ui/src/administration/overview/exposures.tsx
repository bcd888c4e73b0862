import { Alert, Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { api, unwrap } from '../../api/client.ts';
import type { Schemas } from '../../api/contract.ts';
import { Moment } from '../../shell/moment.tsx';
import { Problem } from '../../shell/problem.tsx';
import { useChange } from '../../shell/use-change.ts';
import { useServerNow } from '../now.ts';
import { serviceNotices } from '../queries.ts';
import { TextLink } from '../text-link.tsx';
import styles from './overview.module.css';

/** Unread notices about service keys and their sites: they have no owner who would read them. */
export function Exposures() {
  const { data, error, refetch } = useQuery(serviceNotices);
  const now = useServerNow();
  if (error !== null) return <Problem error={error} onRetry={() => void refetch()} />;
  if (data === undefined || data.data.length === 0) return null;
  const { items } = data.metadata.pagination;
  const isUrgent = data.data.some(({ kind }) => kind === 'key_exposed' || kind === 'key_dead_use');
  return (
    <Alert
      color={isUrgent ? 'red' : 'yellow'}
      mb="lg"
      title={items === 1 ? 'One notice about a service key' : `${items} notices about service keys`}
    >
      <ul className={styles['notices']}>
        {data.data.map((notice) => (
          <Notice key={notice.id} of={notice} now={now} />
        ))}
      </ul>
    </Alert>
  );
}

function Notice({ of: notice, now }: { of: Schemas['Notice']; now: number }) {
  const { run, error, isBusy } = useChange({
    act: () => unwrap(api.POST('/notices/{id}/read', { params: { path: { id: notice.id } } })),
    said: 'Marked as read.',
    refresh: ['admin', 'notices'],
  });
  return (
    <li>
      <span className="wrap">
        <bdi>{notice.message}</bdi>{' '}
        <span className="quiet">
          <Moment at={notice.createdAt} now={now} />
        </span>
        {notice.keyId !== null && (
          <>
            {' '}
            <TextLink
              to="/admin/service-keys/$id"
              params={{ id: notice.keyId }}
              inherit
              underline="always"
              aria-label={`View the key: ${notice.keyName ?? notice.keyId}`}
            >
              View the key{' '}
            </TextLink>
          </>
        )}
      </span>
      <Button
        variant="default"
        size="compact-sm"
        aria-label={`Mark as read: ${notice.keyName ?? notice.siteName ?? ''}`}
        loading={isBusy}
        onClick={run}
      >
        Mark as read
      </Button>
      {error !== undefined && <Problem error={error} />}
    </li>
  );
}
