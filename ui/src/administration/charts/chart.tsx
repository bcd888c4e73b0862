import { type BarRow, Bars, type Series } from '../../lists/bars.tsx';
import styles from './chart.module.css';

type ChartProps = {
  /** A sentence that says what the chart shows, for users who cannot see it. */
  readonly says: string;
  /** Heading of the first column of the table. */
  readonly per: string;
  readonly rows: readonly BarRow[];
  readonly series: readonly Series[];
};

/** A chart, and its numbers as a table for users who cannot see it. */
export function Chart({ says, per, rows, series }: ChartProps) {
  const isEmpty = rows.every((row) => series.every(({ name }) => row[name] === 0));
  return (
    <figure className={styles['figure']}>
      <div role="img" aria-label={says}>
        {isEmpty ? (
          <p className={styles['nothing']}>Nothing in this period.</p>
        ) : (
          <>
            <Bars rows={rows} series={series} />
            {series.length > 1 && <Legend of={series} />}
          </>
        )}
      </div>
      <figcaption>
        <details className={styles['numbers']}>
          <summary>As a table</summary>
          {/* It scrolls, so the keyboard has to reach it. */}
          {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
          <div className={styles['scroll']} tabIndex={0} role="region" aria-label={says}>
            <table>
              <thead>
                <tr>
                  <th scope="col">{per}</th>
                  {series.map(({ name, label }) => (
                    <th key={name} scope="col">
                      {label}
                    </th>
                  ))}
                </tr>
              </thead>
              <tbody>
                {rows.map((row) => (
                  <tr key={row.label}>
                    <th scope="row">{row.label}</th>
                    {series.map(({ name }) => (
                      <td key={name}>{(row[name] ?? 0).toLocaleString()}</td>
                    ))}
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </details>
      </figcaption>
    </figure>
  );
}

function Legend({ of: series }: { of: readonly Series[] }) {
  return (
    <ul className={styles['legend']}>
      {series.map(({ name, label, color }) => (
        <li key={name}>
          <i style={{ background: color }} />
          {label}
        </li>
      ))}
    </ul>
  );
}
