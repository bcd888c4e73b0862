import type { Schemas } from '../api/contract.ts';
import styles from './sparkline.module.css';

const dayMs = 86_400_000;
const height = 18;
const barWidth = 4;
const step = 5;

type SparklineProps = { usages: Schemas['KeyUsages']; id: string };

/** The last days of one key, with a bar for each: answered requests below, refused ones on top. */
export function Sparkline({ usages: { from, to, keys }, id }: SparklineProps) {
  const points = keys.find((key) => key.id === id)?.points ?? [];
  const first = Date.parse(from);
  const days = Math.round((Date.parse(to) - first) / dayMs);
  const bars = points.map(({ from: at, counts: { allowed, ...others } }) => ({
    day: Math.round((Date.parse(at) - first) / dayMs),
    good: allowed,
    bad: Object.values(others).reduce((sum, one) => sum + one, 0),
  }));
  const most = Math.max(1, ...bars.map(({ good, bad }) => good + bad));
  const good = bars.reduce((sum, bar) => sum + bar.good, 0);
  const bad = bars.reduce((sum, bar) => sum + bar.bad, 0);
  if (good + bad === 0) return null;
  // A single request among thousands must still be seen.
  const tall = (count: number) => (count === 0 ? 0 : Math.max(2, (count / most) * height));
  const words = `${good.toLocaleString()} requests answered, ${bad.toLocaleString()} refused, in ${days} days`;
  return (
    <svg
      className={styles['spark']}
      role="img"
      aria-label={words}
      width={days * step - 1}
      height={height + 3}
      viewBox={`0 0 ${days * step - 1} ${height + 3}`}
    >
      <title>{words}</title>
      <path className={styles['ground']} d={`M0 ${height + 2.5}H${days * step - 1}`} />
      {bars.map((bar) => {
        const x = bar.day * step;
        const low = tall(bar.good);
        const top = Math.min(tall(bar.bad), height + 2 - low);
        return (
          <g key={bar.day}>
            <rect className={styles['good']} x={x} y={height + 2 - low} width={barWidth} height={low} />
            <rect className={styles['bad']} x={x} y={height + 2 - low - top} width={barWidth} height={top} />
          </g>
        );
      })}
    </svg>
  );
}
