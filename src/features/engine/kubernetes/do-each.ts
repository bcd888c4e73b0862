import { EngineUnavailable } from '../contract.ts';

/** One after the other. One that is unavailable holds up no other: its error, the first of them, comes at the end. */
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
