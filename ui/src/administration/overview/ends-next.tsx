import { useQuery } from '@tanstack/react-query';
import { Moment } from '../../shell/moment.tsx';
import { Problem } from '../../shell/problem.tsx';
import { homeOf } from '../keys/managed-key-words.ts';
import { useServerNow } from '../now.ts';
import { managedKeys } from '../queries.ts';
import { TextLink } from '../text-link.tsx';
import styles from './overview.module.css';

/** The keys of all owners that expire next, with links to their pages. */
export function EndsNext() {
  const { data, error, refetch } = useQuery(
    managedKeys({ kind: 'all', status: 'active', sort: 'expiresAt', order: 'asc', limit: 5 }),
  );
  const now = useServerNow();
  if (error !== null) return <Problem error={error} onRetry={() => void refetch()} />;
  const next = data?.data ?? [];
  return (
    <ol className={styles['next']} aria-label="Expires next">
      {next.map(
        (key) =>
          key.expiresAt !== null && (
            <li key={key.id}>
              <span className="wrap">
                <TextLink to={`${homeOf(key)}/$id`} params={{ id: key.id }} inherit>
                  <bdi>{key.name}</bdi>
                </TextLink>{' '}
                <span className="quiet">
                  {key.type === 'service' ? (
                    'service key'
                  ) : (
                    <>
                      of <bdi>{key.owner?.name ?? key.owner?.id ?? 'nobody'}</bdi>
                    </>
                  )}
                </span>
              </span>
              <Moment at={key.expiresAt} now={now} isAhead />
            </li>
          ),
      )}
    </ol>
  );
}
