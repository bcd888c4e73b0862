/** Bounds one run, so that the leftovers of a flood cannot hold a job's lease forever. */
const maxRounds = 100;

/** Removes rows, `batch` at a time, until a round removes fewer; `remove` resolves with the number removed. */
export async function inBatches(batch: number, remove: (limit: number) => Promise<number>): Promise<void> {
  for (let round = 0; round < maxRounds; round += 1) {
    if ((await remove(batch)) < batch) return;
  }
}
