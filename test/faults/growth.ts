/** Whether something that should stay as it is grows, in measurements that jump about. Pure. */
export type Growth = {
  /** The middle of the values after the warm-up. */
  readonly median: number;
  /** What the trend adds from the first to the last value after the warm-up; below 0 when it falls. */
  readonly added: number;
};

/** Part of the samples that is looked at by nobody: caches fill, and code is compiled. */
const warmUp = 0.3;

/**
 * The trend is the median of the slopes of all pairs (Theil and Sen): a third of the values may be anything at all and not
 * change it much. `values`: taken at equal distances. @throws RangeError when fewer than 4 are left
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
