import { hour, second } from '../../core/clock.ts';
import { concerns } from '../../platform/database/change-feed.ts';

/**
 * Tracks open response bodies, uploads and WebSockets. The gateway cuts a stream that outlasts its grant or its site or
 * Environment. It also cuts one when the access changes or the content is switched off (contract 10.10).
 */
export type OpenStreams = {
  /** Call the returned function when the stream has ended. `cut` ends it before that. */
  enter(cut: () => void, stream: OpenStream): () => void;
  /** Cuts the streams whose grant was ended before its time. For a job that runs twice a second. */
  checkGrants(): Promise<void>;
};

export type OpenStream = {
  /** The site or the Environment. */
  readonly targetId: string;
  readonly label: string;
  readonly epoch: number;
  /** Until the end of the grant or of the target; Infinity = no end is set. */
  readonly msLeft: number;
  /** Absent: the stream ends with the target alone. */
  readonly grant?: { readonly name: string; holds(): Promise<boolean> } | undefined;
};

/** Node fires a timer of more than 24 days immediately, so a long wait is checked again after this time. */
const maxTimerMs = hour;

export function createOpenStreams(deps: {
  subscribe(listener: (change: { topic: string; subject: string }) => void): void;
  readonly topic: 'site' | 'environment';
  /** The epoch in which a label may be read now; undefined when it may not be read at all. */
  epochOf(label: string): number | undefined | Promise<number | undefined>;
  /** The value that this process read last. */
  isEnabled(): boolean;
  /** Called when the configuration changes, and again while it cannot be read. */
  readEnabled(): Promise<boolean>;
}): OpenStreams {
  type Entry = OpenStream & { readonly cut: () => void; readonly endsAt: number };
  const open = new Set<Entry>();
  // One timer for all streams: most bodies are sent in a moment, and a timer for each would cost more than that.
  let timer: { readonly at: number; readonly handle: NodeJS.Timeout } | undefined;

  function cutAt(endsAt: number): void {
    if (timer !== undefined && timer.at <= endsAt) return;
    if (endsAt === Infinity) return;
    clearTimeout(timer?.handle);
    const handle = setTimeout(cutEnded, Math.min(maxTimerMs, Math.max(0, endsAt - performance.now())));
    handle.unref();
    timer = { at: endsAt, handle };
  }

  function cutEnded(): void {
    timer = undefined;
    const now = performance.now();
    for (const stream of open) {
      if (stream.endsAt <= now) stream.cut();
      else cutAt(stream.endsAt);
    }
  }

  /** Cuts the stream unless it may still be read. A check that fails cuts it too. */
  function check(stream: Entry): void {
    const settle = (epoch: number | undefined) => {
      if (stream.epoch !== epoch) stream.cut();
    };
    const epoch = deps.epochOf(stream.label);
    if (epoch instanceof Promise) epoch.then(settle, () => stream.cut());
    else settle(epoch);
  }

  deps.subscribe((change) => {
    const { topic } = change;
    // Also while no stream is open: a body may begin before the change is read.
    if (topic === 'config') void followSwitch();
    if (topic !== deps.topic) return;
    for (const stream of open) if (concerns(change, stream.targetId)) check(stream);
  });

  async function followSwitch(): Promise<void> {
    try {
      if (!(await deps.readEnabled())) cutAll();
    } catch {
      cutAll();
      setTimeout(() => void followSwitch(), second).unref();
    }
  }

  function cutAll(): void {
    for (const { cut } of open) cut();
  }

  return {
    enter(cut, stream) {
      const endsAt = performance.now() + stream.msLeft;
      const entry: Entry = { ...stream, cut, endsAt };
      open.add(entry);
      // The target, or the switch, may have changed between the check and now.
      if (deps.isEnabled()) check(entry);
      else cut();
      cutAt(endsAt);
      return () => void open.delete(entry);
    },
    async checkGrants() {
      const byGrant = Map.groupBy(open, ({ grant }) => grant?.name);
      await Promise.all(
        Array.from(byGrant, async ([, streams]) => {
          const [{ grant } = {}] = streams;
          if (grant !== undefined && !(await grant.holds())) for (const { cut } of streams) cut();
        }),
      );
    },
  };
}
