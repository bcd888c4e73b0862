/**
 * The limiter's algorithm, pure and exact (contract 4): never more than the limit in *any* rolling 60 seconds.
 * Time is divided into slots. A slot counts whole until its last instant is 60 seconds old, so capacity returns at most
 * one slot late, and an owner needs at most 601 slots at any limit. redis-source.ts has the same algorithm in Lua.
 */
export const windowMs = 60_000;
export const slotMs = 100;

/** Slots that still count, including the current one: 601 of 100 ms. */
export const liveSlots = (widthMs: number) => windowMs / widthMs + 1;

const firstCapacity = 4;

/**
 * The requests of one owner. Every `now` is in milliseconds and never goes back (steady-clock.ts ensures that). A ring of
 * (slot, count) pairs, oldest first, grows as needed. The total is stored, so a spend costs the same at every limit and
 * allocates nothing.
 */
export class RollingWindow {
  readonly #slotMs: number;
  readonly #live: number;
  /** Slot numbers are kept relative to the first, to fit 32 bits. */
  readonly #origin: number;
  #ring = new Uint32Array(2 * firstCapacity);
  #mask = firstCapacity - 1;
  #head = 0;
  #size = 0;
  #total = 0;
  #present = 0;
  #presentEndsAt: number;

  constructor(now: number, widthMs = slotMs) {
    this.#slotMs = widthMs;
    this.#live = liveSlots(widthMs);
    this.#origin = Math.floor(now / widthMs);
    this.#presentEndsAt = (this.#origin + 1) * widthMs;
  }

  /** Counts one request if the limit allows; a refused one leaves no trace. */
  spend(now: number, limit: number): boolean {
    this.#advance(now);
    if (this.#total >= limit) return false;
    const newest = this.#newest();
    const at = this.#size > 0 && this.#at(newest) === this.#present ? newest : this.#open();
    this.#ring[at + 1] = this.#at(at + 1) + 1;
    this.#total += 1;
    return true;
  }

  /** Requests that count at `now`. */
  used(now: number): number {
    this.#advance(now);
    return this.#total;
  }

  /** Milliseconds until the oldest counted slot is free again; 0 when nothing is counted. */
  resetMs(now: number): number {
    this.#advance(now);
    return this.#size === 0 ? 0 : this.#freeAt(this.#head) - now;
  }

  /**
   * The exact milliseconds until one more request is allowed: any earlier it is refused, then it is allowed, unless another
   * request spends first. 0 when it is allowed now. Walks past the oldest slot only after the limit was lowered.
   */
  retryAfterMs(now: number, limit: number): number {
    this.#advance(now);
    let excess = this.#total - limit + 1;
    if (excess <= 0) return 0;
    for (let index = 0; index < this.#size; index++) {
      const at = (this.#head + index) & this.#mask;
      excess -= this.#at(2 * at + 1);
      if (excess <= 0) return this.#freeAt(at) - now;
    }
    // Only a limit below 1 reaches this line. No wait would be long enough, so return one whole window.
    return windowMs;
  }

  /** Only one comparison until the current slot has ended. */
  #advance(now: number): void {
    if (now >= this.#presentEndsAt) this.#moveTo(Math.floor(now / this.#slotMs) - this.#origin);
  }

  /** Removes the slots that no longer count. */
  #moveTo(slot: number): void {
    this.#present = slot;
    this.#presentEndsAt = (this.#origin + slot + 1) * this.#slotMs;
    while (this.#size > 0 && this.#at(2 * this.#head) + this.#live <= slot) {
      this.#total -= this.#at(2 * this.#head + 1);
      this.#head = (this.#head + 1) & this.#mask;
      this.#size -= 1;
    }
  }

  /** Index of the newest pair; meaningless while the ring is empty. */
  #newest(): number {
    return 2 * ((this.#head + this.#size - 1) & this.#mask);
  }

  #open(): number {
    if (this.#size > this.#mask) this.#grow();
    this.#size += 1;
    const at = this.#newest();
    this.#ring[at] = this.#present;
    this.#ring[at + 1] = 0;
    return at;
  }

  #grow(): void {
    const ring = new Uint32Array(2 * this.#ring.length);
    const oldest = this.#ring.subarray(2 * this.#head);
    ring.set(oldest);
    ring.set(this.#ring.subarray(0, 2 * this.#head), oldest.length);
    this.#ring = ring;
    this.#head = 0;
    this.#mask = ring.length / 2 - 1;
  }

  #freeAt(index: number): number {
    return (this.#origin + this.#at(2 * index) + this.#live) * this.#slotMs;
  }

  #at(index: number): number {
    // The index is always inside the ring; the fallback only satisfies the compiler.
    return this.#ring[index] ?? 0;
  }
}
