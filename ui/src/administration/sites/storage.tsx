import { Skeleton, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Problem } from '../../shell/problem.tsx';
import common from '../admin.module.css';
import { bytesInWords } from '../../shell/bytes.ts';
import { countOf } from '../../shell/count.ts';
import { siteStorage } from '../queries.ts';
import styles from './sites.module.css';

/** Storage of the ten largest owners, each with a bar relative to the first. */
export function Storage() {
  const { data, error, refetch } = useQuery(siteStorage);
  const owners = data?.data.owners ?? [];
  const most = owners[0]?.bytes ?? 1;
  const others = (data?.metadata.pagination.items ?? 0) - owners.length;
  return (
    <section className={common['card']} aria-labelledby="storage">
      <div className={common['head']}>
        <h2 id="storage">Storage by owner</h2>
        {data !== undefined && <span className="quiet">{bytesInWords(data.data.totalBytes)} in total</span>}
      </div>
      {error !== null && <Problem error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && <Skeleton height={80} radius="md" />}
      {data !== undefined && owners.length === 0 && <Text size="sm">No owner stores anything yet.</Text>}
      {owners.length > 0 && (
        <ol className={styles['storage']}>
          {owners.map(({ owner, sites, bytes }) => (
            <li key={`${owner.kind} ${owner.id}`}>
              <span className="wrap">
                <bdi>{owner.name ?? owner.id}</bdi>
                {owner.kind === 'service_key' && <span className="quiet"> (service key)</span>}
              </span>
              <meter min={0} max={most} value={bytes} aria-hidden="true" />
              <span>
                {bytesInWords(bytes)} · {countOf(sites, 'site')}
              </span>
            </li>
          ))}
        </ol>
      )}
      {others > 0 && (
        <Text size="sm" mt="sm" className="quiet">
          And {others.toLocaleString()} more who store less.
        </Text>
      )}
    </section>
  );
}
