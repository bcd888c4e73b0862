import { Button } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Moment } from '../../shell/moment.tsx';
import { Problem } from '../../shell/problem.tsx';
import { Table } from '../../lists/table.tsx';
import { stoppedSites } from '../queries.ts';
import styles from './sites.module.css';

/** Sites that administrators took down, latest first; nothing while there are none. */
export function StoppedSites({ now, onPutBack }: { now: number; onPutBack: (id: string) => void }) {
  const { data, error, refetch } = useQuery(stoppedSites);
  if (error !== null) return <Problem error={error} onRetry={() => void refetch()} />;
  if (data === undefined || data.data.length === 0) return null;
  const { items } = data.metadata.pagination;
  return (
    <section className={styles['stopped']} aria-labelledby="stopped">
      <h2 id="stopped">Taken down</h2>
      <Table
        caption="Sites that were taken down"
        columns={['Site', 'Owner', 'Reason', 'Since']}
        hasActions
        isStale={false}
      >
        {data.data.map((site) => (
          <tr key={site.id}>
            <th scope="row">
              <code>{site.id}</code>
            </th>
            <td data-label="Owner" className="wrap">
              <bdi>{site.owner.name ?? site.owner.id}</bdi>
            </td>
            <td data-label="Reason" className="wrap">
              <bdi>{site.reason ?? ''}</bdi>
            </td>
            <td data-label="Since">
              <Moment at={site.takenDownAt} now={now} />
            </td>
            <td>
              <Button
                variant="default"
                size="xs"
                aria-label={`Reinstate ${site.id}`}
                onClick={() => onPutBack(site.id)}
              >
                Reinstate
              </Button>
            </td>
          </tr>
        ))}
      </Table>
      {items > data.data.length && (
        <p className="quiet">
          The latest {data.data.length} of {items}.
        </p>
      )}
    </section>
  );
}
