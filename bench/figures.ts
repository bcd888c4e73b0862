/** The result of every bench, and how it is printed. */
export type Figure = {
  /** The promise's id in bench/README.md. */
  readonly id: string;
  readonly what: string;
  readonly ours: string;
  readonly reference: string;
  /** Our value divided by the reference; for plain limits (seconds, megabytes) the value itself. */
  readonly ratio: number;
  readonly floor: string;
  readonly goal: string;
  readonly passes: boolean;
};

export type BenchOptions = {
  /** True: runs every step once and briefly, to test the bench. The figures are meaningless then. */
  readonly quick: boolean;
};

export type Bench = (options: BenchOptions) => Promise<Figure[]>;

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? Number.NaN)) / 2;
}

/**
 * Runs both sides alternately, in short rounds, and takes the median of the rounds' ratios. Adjacent rounds share the
 * other load of the machine, and one disturbed round is one of many. An extra first round does not count: it fills caches
 * and lets the compiler optimize. With one round there is none.
 */
export async function sideBySide(
  rounds: number,
  ours: (round: number) => Promise<number>,
  reference: (round: number) => Promise<number>,
): Promise<{ ours: number; reference: number; ratio: number }> {
  // A single round only tests the bench.
  if (rounds > 1) {
    await reference(0);
    await ours(0);
  }
  const left: number[] = [];
  const right: number[] = [];
  for (let round = 1; round <= rounds; round++) {
    // Alternates the order too: the second side runs on a warmer machine.
    if (round % 2 === 0) left.push(await ours(round));
    right.push(await reference(round));
    if (round % 2 === 1) left.push(await ours(round));
  }
  const ratios = left.map((value, index) => value / (right[index] ?? Number.NaN));
  // The spread of the rounds shows how much other load the machine had.
  console.error(`bench: ratios ${ratios.map((ratio) => ratio.toFixed(2)).join(' ')}`);
  return { ours: median(left), reference: median(right), ratio: median(ratios) };
}

export function perSecond(value: number): string {
  return `${Math.round(value).toLocaleString('en')}/s`;
}

export function print(figures: readonly Figure[]): void {
  const head = ['promise', 'what', 'ours', 'reference', 'ratio', 'floor', 'goal', 'pass'];
  const rows = figures.map((figure) => [
    figure.id,
    figure.what,
    figure.ours,
    figure.reference,
    figure.ratio.toFixed(figure.ratio >= 100 ? 0 : 2),
    figure.floor,
    figure.goal,
    figure.passes ? 'yes' : 'NO',
  ]);
  for (const row of [head, head.map(() => '---'), ...rows]) console.log(`| ${row.join(' | ')} |`);
}
