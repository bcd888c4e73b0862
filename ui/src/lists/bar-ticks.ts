/** Whole numbers at equal distances, from 0 to at least `most`, at most five of them. */
export function ticksOf(most: number): number[] {
  const least = Math.max(1, most / 4);
  const power = 10 ** Math.floor(Math.log10(least));
  const step =
    [1, 2, 5, 10].map((one) => one * power).find((one) => one >= least && Number.isInteger(one)) ?? 1;
  const count = Math.max(1, Math.ceil(most / step));
  return Array.from({ length: count + 1 }, (_, at) => at * step);
}
