import { SegmentedControl, Skeleton, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Bars } from '../../lists/bars.tsx';
import { Problem } from '../../shell/problem.tsx';
import { exactly } from '../../shell/time.ts';
import type { KeyHome } from '../key-home.ts';
import styles from './key-page.module.css';
import { keyTab, type KeyTab, type Span, spans } from './key-tab.ts';
import { barsOf, outcomes, type Bar } from './usage-words.ts';
import { type Range, usageAt } from '../queries.ts';

const ranges: Readonly<Record<Span, Range & { label: string }>> = {
  hour: { per: 'minute', count: 60, label: '1 hour' },
  day: { per: 'hour', count: 24, label: '24 hours' },
  month: { per: 'day', count: 30, label: '30 days' },
  quarter: { per: 'day', count: 90, label: '90 days' },
};

type UsageProps = {
  readonly home: KeyHome;
  readonly id: string;
  readonly now: number;
  /** From the address. */
  readonly span: Span | undefined;
  readonly onSpan: (tab: KeyTab) => void;
};

/** Requests with the key by their outcome, as a chart and as numbers. */
export function Usage({ home, id, now, span = 'day', onSpan }: UsageProps) {
  const { data, error, refetch } = useQuery(usageAt(home, id, ranges[span], now));
  return (
    <section className={styles['card']} aria-labelledby="usage">
      <div className={styles['bar']}>
        <Title order={2} size="h4" id="usage">
          Usage
        </Title>
        <SegmentedControl
          aria-label="Time"
          size="xs"
          value={span}
          onChange={(next) => onSpan(keyTab({ span: next }))}
          data={spans.map((value) => ({ value, label: ranges[value].label }))}
        />
      </div>
      {error !== null && <Problem error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && (
        <Skeleton height={220} role="status" aria-label="Loading the usage" />
      )}
      {data !== undefined && (
        <>
          <ul className={styles['totals']}>
            {outcomes.map(({ name, label, color }) => (
              <li key={name}>
                <b>{data.total[name].toLocaleString()}</b>
                <span>
                  <i className={styles['dot']} style={{ background: color }} />
                  {label}
                </span>
              </li>
            ))}
          </ul>
          {data.points.length === 0 ? (
            <p className={styles['nothing']}>
              This key was not used in this period. Requests appear here within a minute.
            </p>
          ) : (
            <Picture bars={barsOf(data)} />
          )}
        </>
      )}
    </section>
  );
}

function Picture({ bars }: { bars: readonly Bar[] }) {
  const busy = bars.filter((bar) => outcomes.some(({ name }) => bar[name] > 0));
  return (
    <>
      <Bars rows={bars} series={outcomes.filter(({ name }) => bars.some((bar) => bar[name] > 0))} />
      <details className={styles['numbers']}>
        <summary>As numbers</summary>
        {/* Its rows may be more than there is room for, so the keyboard has to reach it. */}
        {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
        <div tabIndex={0} role="region" aria-label="Usage as numbers">
          <table>
            <thead>
              <tr>
                <th scope="col">From</th>
                {outcomes.map(({ name, label }) => (
                  <th key={name} scope="col">
                    {label}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {busy.map((bar) => (
                <tr key={bar.at}>
                  <th scope="row">{exactly(bar.at)}</th>
                  {outcomes.map(({ name }) => (
                    <td key={name}>{bar[name].toLocaleString()}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
    </>
  );
}
