import { type PointerEvent, useState } from 'react';
import styles from './bars.module.css';
import { ticksOf } from './bar-ticks.ts';

export type Series = { readonly name: string; readonly label: string; readonly color: string };
export type BarRow = { readonly label: string } & Readonly<Record<string, string | number>>;

type BarsProps = {
  /** One column each, from left to right. */
  readonly rows: readonly BarRow[];
  /** From the bottom up. */
  readonly series: readonly Series[];
};

/**
 * Stacked columns; the numbers of the one under the pointer are beside it. Each series is one path, however many columns
 * there are. For users who cannot see it, the page shows the same numbers as a table.
 */
export function Bars({ rows, series }: BarsProps) {
  const [pointed, setPointed] = useState<number>();
  const count = rows.length;
  const ticks = ticksOf(Math.max(...rows.map((row) => sumOf(row, series))));
  const top = ticks.at(-1) ?? 1;
  const point = ({ nativeEvent, currentTarget }: PointerEvent) =>
    setPointed(Math.min(count - 1, Math.floor((nativeEvent.offsetX / currentTarget.clientWidth) * count)));
  return (
    <div className={styles['bars']} aria-hidden="true">
      <div className={styles['ticks']}>
        {ticks.toReversed().map((tick) => (
          <span key={tick}>{tick.toLocaleString()}</span>
        ))}
      </div>
      {/* The keyboard has the same numbers in the table. */}
      <div className={styles['plot']} onPointerMove={point} onPointerLeave={() => setPointed(undefined)}>
        <svg data-picture="bars" viewBox={`0 0 ${count} ${top}`} preserveAspectRatio="none">
          {ticks.map((tick) => (
            <path key={tick} className={styles['line']} d={`M0 ${top - tick}H${count}`} />
          ))}
          {pointed !== undefined && <rect className={styles['column']} x={pointed} width={1} height={top} />}
          {series.map(({ name, color }, at) => (
            <path key={name} fill={color} d={pathOf(rows, series.slice(0, at), name, top)} />
          ))}
        </svg>
        <Readout rows={rows} series={series} at={pointed} />
      </div>
      <div className={styles['labels']} data-long={hasLong(rows)}>
        {labelled(rows).map((at) => (
          <span key={at} style={{ left: `${(100 * (at + 0.5)) / count}%` }}>
            {rows[at]?.label}
          </span>
        ))}
      </div>
    </div>
  );
}

function Readout({ rows, series, at = -1 }: BarsProps & { at: number | undefined }) {
  const row = rows[at];
  if (row === undefined) return null;
  const fromLeft = (100 * (at + 0.5)) / rows.length;
  return (
    <div
      className={styles['readout']}
      style={fromLeft < 50 ? { left: `${fromLeft}%` } : { right: `${100 - fromLeft}%` }}
    >
      <b>{row.label}</b>
      {series.map(({ name, label, color }) => (
        <span key={name}>
          <i style={{ background: color }} /> {label} <b>{numberOf(row, name).toLocaleString()}</b>
        </span>
      ))}
    </div>
  );
}

const numberOf = (row: BarRow, name: string) => Number(row[name] ?? 0);
const sumOf = (row: BarRow, series: readonly Series[]) =>
  series.reduce((sum, { name }) => sum + numberOf(row, name), 0);

/** The rectangles of one series, each on top of those below it. A column takes four fifths of its place. */
function pathOf(rows: readonly BarRow[], below: readonly Series[], name: string, top: number): string {
  return rows
    .map((row, at) => {
      const height = numberOf(row, name);
      return height === 0 ? '' : `M${at + 0.1} ${top - sumOf(row, below)}h.8v${-height}h-.8z`;
    })
    .join('');
}

/** Which columns have room for their label: at equal distances, fewer where labels are long. */
function labelled(rows: readonly BarRow[]): number[] {
  const step = Math.ceil(rows.length / (hasLong(rows) ? 4 : 6));
  // Half of a label at the very end would be outside.
  return rows.flatMap((_, at) => (at % step === 0 && at < rows.length - step / 4 ? [at] : []));
}

const hasLong = (rows: readonly BarRow[]) => rows.some(({ label }) => label.length > 8);
