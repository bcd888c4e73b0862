import '@mantine/charts/styles.css';
import { BarChart } from '@mantine/charts';
import type { ChartProps } from './chart.tsx';

/** The chart alone, loaded on demand by pages that have one. */
export function Bars({ rows, series }: Pick<ChartProps, 'rows' | 'series'>) {
  return (
    <BarChart
      h={220}
      data={[...rows]}
      dataKey="label"
      type="stacked"
      series={series.map(({ name, label, color }) => ({ name, label, color }))}
      gridAxis="x"
      tickLine="none"
      withLegend={series.length > 1}
      legendProps={{ verticalAlign: 'bottom', itemSorter: null }}
      barProps={{ isAnimationActive: false, maxBarSize: 28 }}
      // Leaves space for the highest axis label, half of which is above the edge.
      barChartProps={{ accessibilityLayer: false, margin: { top: 12 } }}
      xAxisProps={{ interval: 'equidistantPreserveStart', minTickGap: 24, tickMargin: 8 }}
      // Each label has its line.
      yAxisProps={{ allowDecimals: false, interval: 0, width: 48 }}
      valueFormatter={(value) => value.toLocaleString()}
      tooltipAnimationDuration={0}
    />
  );
}
