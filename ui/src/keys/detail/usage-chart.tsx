import '@mantine/charts/styles.css';
import { BarChart } from '@mantine/charts';
import styles from './key-page.module.css';
import { type Bar, outcomes } from './usage-words.ts';

/** The picture of a key's usage. The numbers it shows are in a table beside it, for who cannot see it. */
export function UsageChart({ bars }: { bars: readonly Bar[] }) {
  const shown = outcomes.filter(({ name }) => bars.some((bar) => bar[name] > 0));
  return (
    <div aria-hidden="true" className={styles['picture']}>
      <BarChart
        h={220}
        data={bars.map((bar) => ({ ...bar }))}
        dataKey="label"
        type="stacked"
        tickLine="none"
        gridAxis="x"
        yAxisProps={{ width: 36, allowDecimals: false }}
        xAxisProps={{ interval: 'equidistantPreserveStart', minTickGap: 24 }}
        barProps={{ isAnimationActive: false, maxBarSize: 28 }}
        // The highest number stands on the edge, half above it.
        barChartProps={{ accessibilityLayer: false, margin: { top: 12 } }}
        series={shown.map(({ name, label, color }) => ({ name, label, color }))}
      />
    </div>
  );
}
