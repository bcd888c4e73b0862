import { SegmentedControl, Skeleton } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { Schemas } from '../../api/contract.ts';
import { Problem } from '../../shell/problem.tsx';
import common from '../admin.module.css';
import { Chart } from '../charts/chart.tsx';
import { bucketsOf, labelOf, type Per } from '../charts/days.ts';
import { auditSummary } from '../queries.ts';
import styles from './audit.module.css';
import { type AuditSearch, rangeOf } from './audit-search.ts';

const views = [
  { value: '2d', label: '2 days' },
  { value: '30d', label: '30 days' },
  { value: '1y', label: '1 year' },
] as const;
const dayMs = 86_400_000;
const hourMs = 3_600_000;
const lengthMs = { '2d': 2 * dayMs, '30d': 30 * dayMs, '1y': 365 * dayMs } as const;

const series = [
  { name: 'success', label: 'Done', color: 'var(--postern-accent)' },
  { name: 'denied', label: 'Refused', color: 'var(--postern-bad)' },
  { name: 'failure', label: 'Failed', color: 'var(--postern-warn)' },
] as const;

const totalWords = { success: 'events done', denied: 'refused', failure: 'failed' } as const;

type Shown = Pick<AuditSearch, 'event' | 'outcome'>;

/** Number of events over time, for the selected kind, outcome and time range. */
export function AuditChart({ search, now }: { search: AuditSearch; now: number }) {
  const [view, setView] = useState<(typeof views)[number]['value']>('30d');
  const asked = askedOf(search, view, now);
  const { data, error, refetch } = useQuery(auditSummary(asked.query));
  return (
    <section className={`${common['card']} ${styles['chart']}`} aria-label="Events over time">
      <div className={common['head']}>
        <h2>Events over time</h2>
        {!asked.isChosen && (
          <SegmentedControl
            size="xs"
            aria-label="Length"
            value={view}
            onChange={setView}
            data={views.map(({ value, label }) => ({ value, label }))}
          />
        )}
        {asked.isCut && <span className="quiet">Only the last year of the selected range</span>}
      </div>
      {error !== null && <Problem error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && <Skeleton height={190} radius="md" />}
      {data !== undefined && <Picture of={data} shown={search} />}
    </section>
  );
}

/** The range of the filters, or else the length selected here. */
function askedOf(search: AuditSearch, view: (typeof views)[number]['value'], now: number) {
  const chosen = rangeOf(search, now);
  const isChosen = chosen.from !== undefined || chosen.to !== undefined;
  // Rounded to the hour, so that the query stays the same while the page is open.
  const end = chosen.to === undefined ? now - (now % hourMs) + hourMs : Date.parse(chosen.to);
  const earliest = end - (isChosen ? lengthMs['1y'] : lengthMs[view]);
  const wanted = chosen.from === undefined ? earliest : Date.parse(chosen.from);
  const start = Math.max(earliest, wanted - (wanted % hourMs));
  return {
    isChosen,
    isCut: isChosen && (chosen.from === undefined || wanted < earliest),
    query: {
      per: end - start <= 2 * dayMs + hourMs ? ('hour' as const) : ('day' as const),
      from: new Date(start).toISOString(),
      to: new Date(end).toISOString(),
    },
  };
}

function Picture({ of: { per, from, to, counts }, shown }: { of: Schemas['AuditSummary']; shown: Shown }) {
  const rows = rowsOf(counts, bucketsOf(from, to, per), per, shown.event);
  const seen = series.filter(({ name }) => shown.outcome === undefined || name === shown.outcome);
  const totals = seen.map(
    ({ name }) => `${rows.reduce((sum, row) => sum + row[name], 0)} ${totalWords[name]}`,
  );
  return (
    <Chart
      says={`${totals.join(', ')}.`}
      per={per === 'day' ? 'Day (UTC)' : 'Hour (UTC)'}
      rows={rows}
      series={seen}
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
