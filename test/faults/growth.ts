/** Detects growth in a noisy series of measurements. Pure. */
export type Growth = {
  /** The median of the values after the warm-up. */
  readonly median: number;
  /** The growth by the trend from the first to the last value after the warm-up; below 0 when it falls. */
  readonly added: number;
};

/** The part of the samples that is ignored: meanwhile caches fill and code is compiled. */
const warmUp = 0.3;

/**
 * The trend is the median of the slopes of all pairs (Theil and Sen), which tolerates a third of outliers. `values`:
 * measured at equal intervals. @throws RangeError when fewer than 4 are left
 */
export function growthOf(values: readonly number[]): Growth {
  const settled = values.slice(Math.floor(values.length * warmUp));
  if (settled.length < 4) throw new RangeError(`${values.length} samples are too few to see a trend in.`);
  const slopes: number[] = [];
  settled.forEach((value, at) => {
    settled.slice(0, at).forEach((earlier, then) => slopes.push((value - earlier) / (at - then)));
  });
  return { median: medianOf(settled), added: medianOf(slopes) * (settled.length - 1) };
}

function medianOf(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const [low = 0, high = 0] = [sorted[sorted.length % 2 === 0 ? middle - 1 : middle], sorted[middle]];
  return (low + high) / 2;
}
