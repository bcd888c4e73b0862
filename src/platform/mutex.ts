/** Runs work one at a time, in the order of the calls. */
export type Mutex = {
  /** Resolves when the caller has the turn, which it must give back. */
  enter(): Promise<void>;
  leave(): void;
};

export function createMutex(): Mutex {
  const line: (() => void)[] = [];
  let isTaken = false;
  return {
    async enter() {
      if (isTaken) await new Promise<void>((resolve) => line.push(resolve));
      isTaken = true;
    },
    leave() {
      const next = line.shift();
      if (next === undefined) isTaken = false;
      else next();
    },
  };
}
