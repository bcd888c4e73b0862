import type { Clock } from '../src/core/clock.ts';

/** Virtual time, which advances only to the next due event: a minute of a hundred processes takes a second. */
export class VirtualTime implements Clock {
  #now = 0;
  /** Sorted, the earliest last. */
  readonly #due: { readonly at: number; readonly run: () => void }[] = [];

  now(): number {
    return this.#now;
  }

  at(ms: number, run: () => void): void {
    const at = Math.max(ms, this.#now);
    let [low, high] = [0, this.#due.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      const there = this.#due[middle];
      // Events with equal times run in the order in which they were added.
      if (there !== undefined && there.at > at) low = middle + 1;
      else high = middle;
    }
    this.#due.splice(low, 0, { at, run });
  }

  async wait(ms: number): Promise<void> {
    await new Promise<void>((resolve) => this.at(this.#now + ms, resolve));
  }

  /** Runs until `end`, in milliseconds; later events are discarded. */
  async run(end: number): Promise<void> {
    for (let next = this.#due.pop(); next !== undefined && next.at <= end; next = this.#due.pop()) {
      this.#now = next.at;
      next.run();
      // Lets everything run that follows from the event without a delay.
      await new Promise((resolve) => setImmediate(resolve));
    }
    this.#now = end;
  }
}
