import { SegmentedControl, Skeleton } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { Schemas } from '../../api/contract.ts';
import { Problem } from '../../app/problem.tsx';
import common from '../admin.module.css';
import { Chart } from '../charts/chart.tsx';
import { bucketsOf, labelOf, type Per } from '../charts/days.ts';
import { auditSummary } from '../queries.ts';
import { given } from '../search.ts';

const views = [
  { value: '2d', label: '2 days', per: 'hour' },
  { value: '30d', label: '30 days', per: 'day' },
  { value: '1y', label: 'A year', per: 'day' },
] as const;
const dayMs = 86_400_000;
const lengthMs = { '2d': 2 * dayMs, '30d': 30 * dayMs, '1y': 365 * dayMs } as const;

const series = [
  { name: 'success', label: 'Done', color: 'var(--postern-accent)' },
  { name: 'denied', label: 'Refused', color: 'var(--postern-bad)' },
  { name: 'failure', label: 'Failed', color: 'var(--postern-warn)' },
];

/** How much happened when, of one kind where one is chosen. */
export function AuditChart({ event, now }: { event: string | undefined; now: number }) {
  const [view, setView] = useState<(typeof views)[number]['value']>('30d');
  const per = views.find(({ value }) => value === view)?.per ?? 'day';
  // To the hour, so that the question stays the same while the page is open.
  const end = now - (now % 3_600_000) + 3_600_000;
  const query = given({
    per,
    from: new Date(end - lengthMs[view]).toISOString(),
    to: new Date(end).toISOString(),
  });
  const { data, error, refetch } = useQuery(auditSummary(query));
  return (
    <section className={common['card']} aria-label="Events over time">
      <div className={common['head']}>
        <h2>Events over time</h2>
        <SegmentedControl
          size="xs"
          aria-label="Length"
          value={view}
          onChange={setView}
          data={views.map(({ value, label }) => ({ value, label }))}
        />
      </div>
      {error !== null && <Problem error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && <Skeleton height={220} radius="md" />}
      {data !== undefined && <Picture of={data} event={event} />}
    </section>
  );
}

function Picture({
  of: { per, from, to, counts },
  event,
}: {
  of: Schemas['AuditSummary'];
  event: string | undefined;
}) {
  const rows = rowsOf(counts, bucketsOf(from, to, per), per, event);
  const total = (name: 'success' | 'denied' | 'failure') => rows.reduce((sum, row) => sum + row[name], 0);
  return (
    <Chart
      says={`${total('success')} events done, ${total('denied')} refused, ${total('failure')} failed.`}
      per={per === 'day' ? 'Day (UTC)' : 'Hour (UTC)'}
      rows={rows}
      series={series}
    />
  );
}

function rowsOf(
  counts: Schemas['AuditSummary']['counts'],
  buckets: readonly number[],
  per: Per,
  event: string | undefined,
) {
  const rows = new Map(
    buckets.map((at) => [at, { label: labelOf(at, per), success: 0, denied: 0, failure: 0 }]),
  );
  for (const one of counts) {
    const row = rows.get(Date.parse(one.from));
    if (row !== undefined && (event === undefined || one.event === event)) row[one.outcome] += one.count;
  }
  return [...rows.values()];
}
