import { createHook } from 'node:async_hooks';

/**
 * Keeps process.nextTick fast for as long as the process lives. Each entry of its queue is an object with computed
 * names, for which V8 generates fast code as long as it sees the same hidden classes. A collection at a moment when the
 * queue is empty throws those classes away, the next entries get others, and from then on every tick takes the slow path:
 * five times as long, a tenth of what a small HTTP answer costs. One entry that is never let go keeps the classes.
 *
 * Call it once, before anything else. It changes nothing but speed; on a Node where entries are made in another way it
 * keeps one small object for nothing. Measured in bench/README.md (P4).
 */
export function keepTickShapes(): void {
  const hook = createHook({
    init(_id, type, _trigger, entry) {
      if (type === 'TickObject') kept.push(entry);
    },
  });
  hook.enable();
  process.nextTick(() => undefined);
  hook.disable();
}

const kept: object[] = [];
