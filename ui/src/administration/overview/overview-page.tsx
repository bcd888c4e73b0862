import { Skeleton, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { Schemas } from '../../api/contract.ts';
import { Problem } from '../../shell/problem.tsx';
import { PageHead } from '../../lists/page-head.tsx';
import common from '../admin.module.css';
import { Chart } from '../charts/chart.tsx';
import { bucketsOf, labelOf } from '../charts/days.ts';
import { useServerNow } from '../now.ts';
import { endingKeys, keyTotals } from '../queries.ts';
import { Storage } from '../sites/storage.tsx';
import { Counts } from './counts.tsx';
import { EndsNext } from './ends-next.tsx';
import { Exposures } from './exposures.tsx';
import styles from './overview.module.css';
import { TextLink } from '../text-link.tsx';

const dayMs = 86_400_000;

/** What administrators need first: refused requests, keys that expire soon, and exposed keys. */
export function OverviewPage() {
  return (
    <>
      <PageHead title="Overview" intro="How keys are used, what expires soon, and what needs attention." />
      <Exposures />
      <Counts />
      <div className={styles['grid']}>
        <div className={styles['column']}>
          <Requests />
          <Next />
        </div>
        <div className={styles['column']}>
          <Ending />
          <Storage />
        </div>
      </div>
    </>
  );
}

const outcomes = [
  { name: 'allowed', label: 'Answered', color: 'var(--postern-accent)' },
  { name: 'denied', label: 'Refused', color: 'var(--postern-bad)' },
  { name: 'limited', label: 'Rate limited', color: 'var(--postern-warn)' },
  { name: 'dead', label: 'Inactive keys', color: 'var(--postern-soft)' },
] as const;

function Requests() {
  const now = useServerNow();
  const to = now - (now % dayMs) + dayMs;
  const query = {
    per: 'day',
    from: new Date(to - 30 * dayMs).toISOString(),
    to: new Date(to).toISOString(),
  } as const;
  const { data, error, refetch } = useQuery(keyTotals(query));
  return (
    <section className={common['card']} aria-labelledby="requests">
      <div className={common['head']}>
        <h2 id="requests">Requests with keys</h2>
        <span className="quiet">30 days</span>
      </div>
      {error !== null && <Problem error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && <Skeleton height={220} radius="md" />}
      {data !== undefined && (
        <>
          <Figures of={data.total} />
          <Chart
            says={`In 30 days ${data.total.allowed} requests with keys were answered and ${data.total.denied + data.total.limited + data.total.dead} refused.`}
            per="Day (UTC)"
            rows={requestRows(data)}
            series={outcomes}
          />
        </>
      )}
    </section>
  );
}

function Figures({ of: total }: { of: Schemas['UsageCounts'] }) {
  return (
    <ul className={styles['figures']}>
      {outcomes.map(({ name, label }) => (
        <li key={name}>
          <b>{total[name].toLocaleString()}</b>
          <span>{label}</span>
        </li>
      ))}
    </ul>
  );
}

function requestRows({ from, to, points }: Schemas['KeyUsage']) {
  const counts = new Map(points.map((point) => [Date.parse(point.from), point.counts]));
  return bucketsOf(from, to, 'day').map((at) => {
    const { allowed = 0, denied = 0, limited = 0, failed = 0, dead = 0 } = counts.get(at) ?? {};
    // A failed request was authorized and then met an internal error.
    return { label: labelOf(at, 'day'), allowed: allowed + failed, denied, limited, dead };
  });
}

function Ending() {
  const { data, error, refetch } = useQuery(endingKeys);
  const rows = (data ?? []).map(({ day, personal, service }) => ({
    label: labelOf(Date.parse(day), 'day'),
    personal,
    service,
  }));
  const sum = (of: 'personal' | 'service') => rows.reduce((total, row) => total + row[of], 0);
  return (
    <section className={common['card']} aria-labelledby="ending">
      <div className={common['head']}>
        <h2 id="ending">Keys that expire soon</h2>
        <span className="quiet">30 days ahead</span>
      </div>
      {error !== null && <Problem error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && <Skeleton height={220} radius="md" />}
      {data !== undefined &&
        (sum('personal') + sum('service') === 0 ? (
          <Text size="sm">No key expires in the next 30 days.</Text>
        ) : (
          <>
            <ul className={styles['figures']}>
              <li>
                <b>{sum('personal').toLocaleString()}</b>
                <span>Keys of users</span>
              </li>
              <li>
                <b>{sum('service').toLocaleString()}</b>
                <span>Service keys</span>
              </li>
            </ul>
            <Chart
              says={`${sum('personal')} keys of users and ${sum('service')} service keys expire in the next 30 days.`}
              per="Day (UTC)"
              rows={rows}
              series={[
                { name: 'personal', label: 'Keys of users', color: 'var(--postern-accent)' },
                { name: 'service', label: 'Service keys', color: 'var(--postern-warn)' },
              ]}
            />
            <EndsNext />
          </>
        ))}
    </section>
  );
}

function Next() {
  return (
    <section className={common['card']} aria-labelledby="next">
      <div className={common['head']}>
        <h2 id="next">Check these</h2>
      </div>
      <ul className={styles['links']}>
        <li>
          <TextLink to="/admin/user-keys" search={{ only: ['unused'] }} inherit>
            Keys unused for 30 days
          </TextLink>
        </li>
        <li>
          <TextLink to="/admin/user-keys" search={{ only: ['endless', 'broad'] }} inherit>
            Keys without an expiry that reach every repository
          </TextLink>
        </li>
        <li>
          <TextLink to="/admin/audit" search={{ outcome: 'denied', span: '24h' }} inherit>
            Requests refused in the last 24 hours
          </TextLink>
        </li>
        <li>
          <TextLink to="/admin/audit" search={{ event: 'api_key.dead_use', span: '30d' }} inherit>
            Uses of expired, revoked or superseded keys in the last 30 days
          </TextLink>
        </li>
      </ul>
    </section>
  );
}
