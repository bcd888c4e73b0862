/** Bounds one run, so that a flood's leftovers cannot keep a job's lease for ever. */
const mostRounds = 100;

/** Removes rows, `batch` at a time, until a round finds fewer than that; `remove` resolves with how many went. */
export async function inBatches(batch: number, remove: (limit: number) => Promise<number>): Promise<void> {
  for (let round = 0; round < mostRounds; round += 1) {
    if ((await remove(batch)) < batch) return;
  }
}
