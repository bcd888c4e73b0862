/**
 * Removes expired entries of a Map, a few at a time, so that neither a timer nor a long pause is needed. Call it with a
 * few steps whenever the Map grows: then the Map holds at most a constant multiple of the live entries.
 */
export type Sweep = (steps: number, now: number) => void;

export function createSweep<K, V>(map: Map<K, V>, isDead: (value: V, now: number) => boolean): Sweep {
  let rest = map.entries();
  return (steps, now) => {
    for (let step = 0; step < steps; step++) {
      const next = rest.next();
      if (next.done) {
        rest = map.entries();
        return;
      }
      const [key, value] = next.value;
      if (isDead(value, now)) map.delete(key);
    }
  };
}
