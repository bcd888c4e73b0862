import { onTestFinished } from 'vitest';

/** Counts the turns that other tasks get, however long each takes. */
export function countTurns(): { turns(): number } {
  let turns = 0;
  const count = () => {
    turns += 1;
    next = setImmediate(count);
  };
  let next = setImmediate(count);
  onTestFinished(() => clearImmediate(next));
  return { turns: () => turns };
}
