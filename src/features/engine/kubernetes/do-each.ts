import { EngineUnavailable } from '../contract.ts';

/** Runs `work` for each item in turn. An unavailable one does not stop the others; the first such error is thrown at the end. */
export async function doEach<T>(all: readonly T[], work: (one: T) => Promise<void>): Promise<void> {
  let first: EngineUnavailable | undefined;
  for (const one of all)
    try {
      await work(one);
    } catch (error) {
      if (!(error instanceof EngineUnavailable)) throw error;
      first ??= error;
    }
  if (first !== undefined) throw first;
}
